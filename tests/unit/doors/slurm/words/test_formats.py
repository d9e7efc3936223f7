from muster.doors.slurm.words.formats import (
    Column,
    Field,
    cut_table,
    known,
    long_form,
    parsable,
    picked_form,
    rendered,
    short_form,
)

FIELDS = {
    "i": Field[int](header="JOBID", get=str),
    "j": Field[int](header="NAME", get=lambda row: f"job{row}"),
}
BY_NAME = {
    "jobid": Field[int](header="JobID", get=str, width=-6),
    "state": Field[int](header="State", get=lambda _: "CANCELLED by 0", width=10),
}


def test_a_short_form_has_widths_sides_and_text_between() -> None:
    lines = rendered(short_form('"%.4i"|%6j;'), FIELDS, [7], header=True)

    assert list(lines) == ['"JOBI"|NAME  ;', '"   7"|job7  ;']


def test_a_doubled_percent_is_one() -> None:
    assert list(rendered(short_form("%%i|%%j"), FIELDS, [7], header=False)) == ["7|job7"]


def test_a_long_form_has_sizes_or_suffixes() -> None:
    form = long_form("JobID:###x###,Name,State:.8,GresUsed:'")

    assert form.columns == (
        Column(field="jobid", suffix="###x###", written="JobID"),
        Column(field="name", width=20, written="Name"),
        Column(field="state", width=8, right=True, written="State"),
        Column(field="gresused", suffix="'", written="GresUsed"),
    )


def test_unknown_letters_are_named_and_shown_as_they_were_written() -> None:
    form, lost = known(short_form("%i %.5? %2"), FIELDS)

    assert [column.field + column.suffix for column in form.columns] == ["i ", "%.5? ", "%2"]
    assert lost == ["?", ""]


def test_unknown_names_are_named_and_leave_what_follows_them() -> None:
    form, lost = known(long_form("JobID:4,What:|,Name"), BY_NAME)

    assert [column.suffix for column in form.columns][1] == "|"
    assert lost[0] == "What"


def test_a_table_of_sacct_marks_what_it_cuts() -> None:
    form, unknown = picked_form(["JobID", "state", "state%-16", "what"], BY_NAME)

    assert unknown == ["what"]
    assert list(cut_table(form, BY_NAME, [12], header=True)) == [
        "JobID       State State            ",
        "------ ---------- ---------------- ",
        "12     CANCELLED+ CANCELLED by 0   ",
    ]
    assert list(parsable(form, BY_NAME, [12], header=True, ends=("|", "|"))) == [
        "JobID|State|State|",
        "12|CANCELLED by 0|CANCELLED by 0|",
    ]
