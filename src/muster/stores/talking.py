"""How shared SQL talks to either database: it yields what it wants and is sent the rows.

Everything that both databases say in the same words is a generator of these wishes. A database
runs it inside one transaction, in its own way, and knows nothing of jobs.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from muster.model.value import Value
from muster.stores.tables import Table

T = TypeVar("T")
Row = Sequence[Any]
"""One row as a database gives it; the caller knows the columns."""

AT_ONCE = 500
"""So many keys stand in one `IN (...)`."""


class Say(Value):
    """One statement with `?` for each parameter; its rows come back."""

    sql: str
    given: tuple[Any, ...] = ()


class Put(Value):
    """Rows of one table, in the order of its columns; they replace what has the same key."""

    table: Table
    rows: list[tuple[Any, ...]]


class Drop(Value):
    """Delete the rows of a table in which these columns have these values."""

    table: Table
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


Wish = Say | Put | Drop
Talk = Generator[Wish, list[Row], T]


class Database(Protocol):
    """Runs talks, each in a transaction of its own; failures come out as `StoreError`."""

    def read(self, talk: Callable[[], Talk[T]]) -> T:
        """Any thread may call; what is read belongs to one moment."""
        ...

    def write(self, talk: Callable[[], Talk[T]]) -> T:
        """All of it, durably, or nothing."""
        ...

    def close(self) -> None: ...


def rows_of(sql: str, keys: Iterable[Any]) -> Talk[list[Row]]:
    """The rows for many keys; `sql` says `IN (?)` for them."""
    found: list[Row] = []
    for some in pieces(keys, AT_ONCE):
        found += yield Say(sql=sql.replace("IN (?)", f"IN ({marks(len(some))})"), given=some)
    return found


def pieces(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """The same items in order, some at a time."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield some


def marks(count: int) -> str:
    return ", ".join("?" * count)
