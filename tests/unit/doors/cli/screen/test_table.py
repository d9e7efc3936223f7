from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.screen.table import Column, lines

Row = tuple[str, str, str]

COLUMNS: list[Column[Row]] = [
    Column("ID", lambda row: row[0], "right"),
    Column("NAME", lambda row: row[1], "flexible"),
    Column("STATE", lambda row: row[2], "state"),
]
ROWS: list[Row] = [("7", "train", "running"), ("12", "a long name", "pending")]


def test_columns_are_aligned_and_lines_have_no_spaces_at_their_end() -> None:
    assert lines(ROWS, COLUMNS, Screen()) == [
        "ID  NAME         STATE",
        " 7  train        running",
        "12  a long name  pending",
    ]


def test_without_headers_only_the_rows_count_for_the_width() -> None:
    assert lines([("7", "x", "up")], COLUMNS, Screen(), headers=False) == ["7  x  up"]


def test_a_narrow_screen_cuts_the_flexible_columns_only() -> None:
    shown = lines(ROWS, COLUMNS, Screen(width=21))

    assert shown == [
        "ID  NAME      STATE",
        " 7  train     running",
        "12  a long …  pending",
    ]


def test_a_spare_column_is_left_out_before_a_name_is_cut() -> None:
    spare: Column[Row] = Column("SPARE", lambda row: row[2], "spare")
    columns = [*COLUMNS, spare]

    shown = lines(ROWS, columns, Screen(width=24))

    assert shown == [
        "ID  NAME         STATE",
        " 7  train        running",
        "12  a long name  pending",
    ]


def test_a_column_is_never_cut_to_nothing() -> None:
    shown = lines(ROWS, COLUMNS, Screen(width=5))

    assert shown[2] == "12  a lon…  pending"


def test_in_a_file_nothing_is_cut() -> None:
    shown = lines([("7", "x" * 500, "running")], COLUMNS, Screen(width=None))

    assert "x" * 500 in shown[1]


def test_states_are_coloured_and_still_aligned() -> None:
    rows = [("7", "a", "up"), ("8", "b", "draining")]
    columns = [COLUMNS[2], COLUMNS[1]]

    shown = lines(rows, columns, Screen(colour=True), headers=False)

    assert shown == ["\x1b[32mup      \x1b[0m  a", "\x1b[33mdraining\x1b[0m  b"]


def test_wide_characters_count_twice() -> None:
    shown = lines([("7", "日本", "up"), ("8", "abcd", "up")], COLUMNS, Screen(), headers=False)

    assert shown == ["7  日本  up", "8  abcd  up"]


def test_a_cell_cannot_steer_the_terminal() -> None:
    shown = lines([("7", "\x1b[2J", "up")], COLUMNS, Screen(), headers=False)

    assert shown == ["7  �[2J  up"]
