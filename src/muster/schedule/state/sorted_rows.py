"""Rows that are kept in order while thousands of them come and go between two readings."""

from bisect import bisect_left, insort
from typing import Any, Generic, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])

FEW = 8
"""So many changes, and one for each `ROWS_PER_CHANGE` rows, are made one by one."""

ROWS_PER_CHANGE = 64


class SortedRows(Generic[Row]):
    """Tuples in order; all fields but the last are a row's key, which no two rows share.

    Changes are gathered, and made when the rows are read: where they are many, by sorting once.
    """

    __slots__ = ("_added", "_gone", "_rows")

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._added: dict[tuple[Any, ...], Row] = {}
        self._gone: set[tuple[Any, ...]] = set()

    def add(self, row: Row) -> None:
        """One more row."""
        self._added[row[:-1]] = row

    def remove(self, key: tuple[Any, ...]) -> None:
        """The row with this key goes."""
        if self._added.pop(key, None) is None:
            self._gone.add(key)

    def read(self) -> list[Row]:
        """All rows in order; not to be changed."""
        changes = len(self._added) + len(self._gone)
        if not changes:
            return self._rows
        if changes <= FEW + len(self._rows) // ROWS_PER_CHANGE:
            for key in self._gone:
                del self._rows[bisect_left(self._rows, key)]
            for row in self._added.values():
                insort(self._rows, row)
        else:
            if self._gone:
                self._rows = [row for row in self._rows if row[:-1] not in self._gone]
            self._rows += self._added.values()
            self._rows.sort()
        self._added.clear()
        self._gone.clear()
        return self._rows
