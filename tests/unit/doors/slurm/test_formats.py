from muster.doors.slurm.formats import (
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
    form = long_form("JobID:###x###,Name,State:.8,'Nodes: ,GresUsed:'")

    assert form.columns == (
        Column(field="jobid", suffix="###x###"),
        Column(field="name", width=20),
        Column(field="state", width=8, right=True),
        Column(field="nodes", suffix=" "),
        Column(field="gresused", suffix="'"),
    )


def test_unknown_columns_are_named_and_left_out() -> None:
    form, lost = known(short_form("%i %? %j"), FIELDS)

    assert [column.field for column in form.columns] == ["i", "j"]
    assert lost == ["?"]


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
