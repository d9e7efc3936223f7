"""Rows that come and go in any number are read in order."""

from hypothesis import given
from hypothesis import strategies as st

from muster.schedule.state.sorted_rows import SortedRows

Row = tuple[int, int, str]

ADD, REMOVE, READ = "add", "remove", "read"


@given(
    st.lists(
        st.tuples(st.sampled_from((ADD, ADD, REMOVE, READ)), st.integers(0, 400)), max_size=300
    )
)
def test_rows_are_those_that_were_added_and_did_not_go(steps: list[tuple[str, int]]) -> None:
    rows: SortedRows[Row] = SortedRows()
    there: dict[tuple[int, int], Row] = {}
    for step, number in steps:
        key = (number % 7, number)
        if step == ADD and key not in there:
            there[key] = (*key, "row")
            rows.add(there[key])
        elif step == REMOVE and key in there:
            del there[key]
            rows.remove(key)
        elif step == READ:
            assert rows.read() == sorted(there.values())
    assert rows.read() == sorted(there.values())


def test_a_row_may_go_and_come_back_between_two_readings() -> None:
    rows: SortedRows[Row] = SortedRows()
    rows.add((1, 1, "first"))
    rows.read()
    rows.remove((1, 1))
    rows.add((1, 1, "second"))
    assert rows.read() == [(1, 1, "second")]
