"""What the Slurm door writes, it reads back as it was."""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from muster.doors.slurm.words.formats import (
    Column,
    cut_table,
    long_form,
    picked_form,
    rendered,
    short_form,
)
from muster.doors.slurm.words.formats import Field as Shown
from muster.doors.slurm.words.hostlist import compressed, expanded, ranges_text
from muster.doors.slurm.words.options import Manner, Option, Takes, parsed
from muster.doors.slurm.words.sizes import memory_mib, memory_text
from muster.doors.slurm.words.times import (
    instant,
    instant_text,
    limit,
    long_text,
    past_instant,
    short_text,
)
from muster.model.value import MINUTE, Duration, Instant, replace

PREFIXES = st.from_regex(r"\A[a-z][a-z0-9-]{0,6}[a-z-]\Z")
NUMBERS = st.tuples(st.integers(0, 2_000), st.integers(1, 5)).map(
    lambda pair: str(pair[0]).zfill(pair[1])
)
NAMES = st.one_of(PREFIXES, st.builds(str.__add__, PREFIXES, NUMBERS))
FORMS = ("%Y-%m-%dT%H:%M:%S", "%m%d%yT%H:%M:%S", "%m/%d/%yT%H:%M:%S", "%m.%d.%y %H:%M:%S")
LIMITS = st.integers(0, 400 * 24 * 60).map(lambda minutes: Duration(minutes * MINUTE))


PAST = st.integers(1_000_000_000, 1_900_000_000)


@given(PAST, st.sampled_from(FORMS))
def test_days_and_times_of_the_past_are_read_in_every_form(seconds: int, form: str) -> None:
    there = datetime.fromtimestamp(seconds, UTC)
    zone = ZoneInfo("UTC")

    read = past_instant(there.strftime(form), Instant(1_900_000_000_000), zone)

    assert instant_text(read, zone=zone) == there.strftime("%Y-%m-%dT%H:%M:%S")


@given(st.lists(st.tuples(st.integers(-30, 30), st.text("abc|+ ", max_size=40)), min_size=1))
def test_a_cell_of_sacct_is_as_wide_as_asked_and_marks_what_it_cuts(
    cells: list[tuple[int, str]],
) -> None:
    fields = {f"f{at}": Shown(header="h", get=_reader(at)) for at in range(len(cells))}
    form, unknown = picked_form([f"f{at}%{w}" for at, (w, _) in enumerate(cells)], fields)

    (line,) = cut_table(form, fields, [[text for _, text in cells]], header=False)

    assert unknown == []
    assert len(line) == sum(abs(width) + 1 for width, _ in cells)
    for width, text in cells:
        cell, line = line[: abs(width)], line[abs(width) + 1 :]
        assert (cell.endswith("+") and cell[:-1] == text[: abs(width) - 1]) or (
            cell.strip() == text.strip() or not width
        )


def _reader(at: int) -> Callable[[list[str]], str]:
    return lambda row: row[at]


@given(st.lists(NAMES, max_size=40))
def test_a_compressed_list_expands_to_the_same_names(names: list[str]) -> None:
    assert list(expanded(compressed(names))) == names


@given(st.lists(st.integers(0, 500), max_size=40))
def test_a_long_row_of_nodes_becomes_one_range(numbers: list[int]) -> None:
    ordered = sorted(set(numbers))

    text = compressed(f"n{number}" for number in ordered)

    assert list(expanded(text)) == [f"n{number}" for number in ordered]
    assert text.count("n") == bool(ordered)


@given(st.sets(st.integers(0, 1_000)))
def test_ranges_name_every_number_once(numbers: set[int]) -> None:
    text = ranges_text(sorted(numbers))

    read = list(expanded(f"[{text}]")) if text else []

    assert list(map(int, read)) == sorted(numbers)


@given(LIMITS)
def test_limits_are_read_as_they_are_written(span: Duration) -> None:
    assert limit(long_text(span)) == span
    assert limit(short_text(span)) == span


@given(st.integers(0, 4_000_000_000))
def test_instants_are_read_as_they_are_written(seconds: int) -> None:
    at = Instant(seconds * 1_000)

    text = instant_text(at)

    # An hour that the clock shows twice in autumn is read as the first.
    assert abs(instant(text, Instant(0)) - at) in {0, 3_600_000}


@given(st.integers(0, 2**34))
def test_sizes_are_read_as_they_are_written(mib: int) -> None:
    assert memory_mib(memory_text(mib)) == mib


@given(st.text("abc xyz", max_size=30), st.integers(1, 30), st.booleans())
def test_a_column_is_exactly_as_wide_as_it_was_asked_to_be(
    text: str, width: int, right: bool
) -> None:
    fields = {"j": Shown[str](header="NAME", get=lambda row: row)}
    form = short_form(f"%{'.' if right else ''}{width}j|")

    head, line = rendered(form, fields, [text], header=True)

    assert [len(each) for each in (head, line)] == [width + 1] * 2
    assert line[:-1] == (text[:width].rjust(width) if right else text[:width].ljust(width))


@given(
    st.lists(
        st.builds(
            Column,
            field=st.sampled_from(["jobid", "name", "state"]),
            width=st.integers(1, 99),
            right=st.booleans(),
        ),
        max_size=6,
    )
)
def test_long_forms_are_read_as_they_are_written(columns: list[Column]) -> None:
    text = ",".join(f"{each.field}:{'.' if each.right else ''}{each.width}" for each in columns)

    assert list(long_form(text).columns) == [
        replace(column, written=column.field) for column in columns
    ]


OPTIONS = (
    Option(name="nodes", short="N", takes=Takes.MUST),
    Option(name="name", short="J", takes=Takes.MUST),
    Option(name="hold", short="H"),
    Option(name="nice", takes=Takes.MAY),
)
GIVEN = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["nodes", "name"]), st.from_regex(r"\A[a-z0-9=]{1,8}\Z")),
        st.tuples(st.just("hold"), st.none()),
    ),
    max_size=8,
)


@given(GIVEN, st.data())
def test_options_mean_the_same_in_every_spelling(
    given_options: list[tuple[str, str | None]], data: st.DataObject
) -> None:
    words: list[str] = []
    for name, value in given_options:
        short = {"nodes": "N", "name": "J", "hold": "H"}[name]
        if value is None:
            words += data.draw(st.sampled_from([[f"--{name}"], [f"-{short}"], ["--ho"]]))
            continue
        spellings = [
            [f"--{name}={value}"],
            [f"--{name}", value],
            [f"-{short}{value}"],
            [f"-{short}", value],
        ]
        words += data.draw(st.sampled_from(spellings))

    read = parsed(OPTIONS, [*words, "script", "--foo"], Manner(command="x", permute=False))

    assert list(read.given) == given_options
    assert read.rest == ("script", "--foo")
