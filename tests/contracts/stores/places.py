"""Where stores keep things in tests: opened as often as a test likes, closed at its end."""

from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol, cast

import apsw

from databases import Postgres
from muster.stores.memory import MemoryStore
from muster.stores.opening import WholeStore, open_store
from muster.stores.sqlite import Link


class Place(Protocol):
    """A place where a store keeps things."""

    def open(self) -> WholeStore:
        """As another process would: it finds what is there."""
        ...

    def another(self) -> AbstractContextManager["Place"]:
        """Another place of the same kind, with nothing there."""
        ...

    def close(self) -> None: ...


class MemoryPlace:
    """There is only one store in a process's memory, so it is the same one each time."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self) -> WholeStore:
        return self._store

    def another(self) -> AbstractContextManager["MemoryPlace"]:
        return closing(MemoryPlace())

    def close(self) -> None:
        self._store.close()


class _Addressed:
    """Stores that are found by their address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: list[WholeStore] = []

    def open(self) -> WholeStore:
        store = open_store(self.url)
        self._opened.append(store)
        return store

    def shut(self, store: WholeStore) -> None:
        """Close one of them early."""
        self._opened.remove(store)
        store.close()

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self._opened.clear()


class SqlitePlace(_Addressed):
    """One file in this folder."""

    def __init__(self, folder: Path, name: str = "muster.db") -> None:
        self.path = folder / name
        super().__init__(f"sqlite:///{self.path}")
        self._numbers = count(1)

    def another(self) -> AbstractContextManager["SqlitePlace"]:
        name = f"{self.path.name}.{next(self._numbers)}"
        return closing(SqlitePlace(self.path.parent, name))


class PostgresPlace(_Addressed):
    """A schema of its own in the server that the tests started."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        super().__init__(server.new_address())
        self.schema = self.url.rpartition("=")[2]

    def another(self) -> AbstractContextManager["PostgresPlace"]:
        return closing(PostgresPlace(self.server))


@contextmanager
def sqlite_file(path: Path) -> Generator[Link]:
    """The database as another program sees it."""
    connection = apsw.Connection(str(path))
    try:
        yield cast("Link", connection)
    finally:
        connection.close()
