"""The store in one file beside the program: SQLite, one writing connection, readers beside it."""

import errno
import fcntl
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock
from typing import Any, Protocol, TypeVar, cast

import apsw

from muster.model.errors import (
    StoreDamagedError,
    StoreDownError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)
from muster.model.value import Instant, JobId, Value
from muster.stores.base import Batch
from muster.stores.keeping import TableStore
from muster.stores.migrating import migrating
from muster.stores.tables import Table
from muster.stores.talking import Drop, Put, Row, Say, Talk, Wish, marks

T = TypeVar("T")

WORDS = {"int": "INTEGER", "text": "TEXT", "blob": "BLOB", "compact": "WITHOUT ROWID"}

PATIENCE_MS = 2_000
"""So long we wait for another program that holds the database."""

INCREMENTAL = 2
"""What `auto_vacuum` is called that gives pages back when it is asked to."""

GIVEN_BACK = 2_000
LARGE_BYTES = 512 * 1_048_576
"""Writing a larger file again would take long; `muster backup` and `muster restore` do it."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_OF_ALL = """PRAGMA temp_store=MEMORY;"""
_OF_THE_WRITER = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA cache_size=-65536;
PRAGMA journal_size_limit=67108864;
"""
# Readers never checkpoint: two connections that do would have to agree about the WAL's end.
_OF_READERS = """
PRAGMA query_only=1;
PRAGMA wal_autocheckpoint=0;
"""


class Rows(Protocol):
    """What a statement found."""

    def fetchall(self) -> list[Row]: ...


class Link(Protocol):
    """What we use of `apsw.Connection`, whose own types name things that Python 3.11 lacks."""

    in_transaction: bool
    system_errno: int

    def execute(self, statements: str, bindings: Sequence[Any] | None = None) -> Rows: ...

    def executemany(self, statements: str, rows: Iterable[Sequence[Any]]) -> object: ...

    def close(self, force: bool = False) -> None: ...  # noqa: FBT001, FBT002 - apsw's signature


class SqliteStore(TableStore):
    """Keeps everything in the file at `path`, which only its owner can read."""

    def __init__(self, path: Path, *, patience_ms: int = PATIENCE_MS) -> None:
        self._file = SqliteDatabase(path, patience_ms=patience_ms)
        super().__init__(self._file)
        self._seat = _FileLock(path.with_name(path.name + ".lead"))
        self._listeners: list[Callable[[], None]] = []

    def append(self, batch: Batch) -> None:
        super().append(batch)
        for wake in tuple(self._listeners):
            wake()

    def forget(self, before: Instant, *, limit: int) -> int:
        forgotten = super().forget(before, limit=limit)
        if forgotten:
            self._file.give_back()
        return forgotten

    def listen(self, wake: Callable[[], None]) -> None:
        self._listeners.append(wake)

    def lead(self) -> bool:
        return self._seat.take()

    def step_down(self) -> None:
        self._seat.leave()

    def close(self) -> None:
        self.step_down()
        super().close()


class Found(Value):
    """What a database file says of itself. version: 0 where nothing was ever written."""

    schema_number: int
    version: int
    next_job: JobId


def examined(path: Path) -> Found:
    """Look at a database file that others may be using, page by page; StoreError if it is bad."""
    with _errors_told(path):
        link = cast("Link", apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))
        try:
            faults = link.execute("PRAGMA quick_check(1)").fetchall()
            if faults != [("ok",)]:
                raise StoreDamagedError(str(path), str(faults[0][0]))
            known = link.execute("SELECT name FROM sqlite_master WHERE name = 'meta'").fetchall()
            if not known:
                return Found(schema_number=0, version=0, next_job=JobId(1))
            sql = "SELECT schema_number, version, next_job FROM meta WHERE id = 1"
            ((schema_number, version, next_job),) = link.execute(sql).fetchall()
        finally:
            link.close()
    return Found(schema_number=schema_number, version=version, next_job=next_job)


def copy_database(path: Path, to: Path) -> None:
    """A whole copy of a database in use, as it was at one moment; only its owner can read it."""
    with _errors_told(to):
        os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with _errors_told(path):
        source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        source.set_busy_timeout(PATIENCE_MS)
        copy = apsw.Connection(str(to), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with copy.backup("main", source, "main") as copying:
                copying.step()
            # One file, whole, without a log beside it and without what it does not need.
            statements = f"PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum={INCREMENTAL}; VACUUM"
            cast("Link", copy).execute(statements).fetchall()
        finally:
            copy.close()
            source.close()


class SqliteDatabase:
    """Runs talks: those that write one after the other, those that read beside them."""

    def __init__(self, path: Path, *, patience_ms: int) -> None:
        self._path = path
        self._patience_ms = patience_ms
        self._writing = Lock()
        self._writer = self._opened()
        self._idle: LifoQueue[Link] = LifoQueue()
        try:
            self.write(lambda: migrating(str(path), WORDS))
        except BaseException:
            self._writer.close()
            raise

    def read(self, talk: Callable[[], Talk[T]]) -> T:
        with _errors_told(self._path), self._reader() as connection:
            return _in_transaction(connection, "BEGIN", talk())

    def write(self, talk: Callable[[], Talk[T]]) -> T:
        with self._writing, _errors_told(self._path, self._writer):
            return _in_transaction(self._writer, "BEGIN IMMEDIATE", talk())

    def give_back(self) -> None:
        """Pages that hold nothing any more go back to the disk, a few at a time."""
        with self._writing, _errors_told(self._path, self._writer):
            self._writer.execute(f"PRAGMA incremental_vacuum({GIVEN_BACK})").fetchall()

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()
        with self._writing:
            # The last to close moves the WAL into the file, and there may be no room for it:
            # then the WAL stays, and nothing is lost.
            with suppress(apsw.Error):
                self._writer.close()
            self._writer.close(True)  # noqa: FBT003 - apsw takes `force` by position as well

    def _opened(self) -> Link:
        with _errors_told(self._path):
            # SQLite gives the files beside it the same rights.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = _connected(self._path, self._patience_ms)
            _let_shrink(connection, self._path)
            _told(connection, _OF_THE_WRITER)
            return connection

    @contextmanager
    def _reader(self) -> Generator[Link]:
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = _connected(self._path, self._patience_ms)
            _told(connection, _OF_READERS)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)


class _FileLock:
    """The leader's place: a lock on a file, which the kernel takes back when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        if self._file is not None:
            return True
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def leave(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def _errors_told(path: Path, link: Link | None = None) -> Generator[None]:
    """Translate what went wrong, as far as a person can do something about it."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLockedError(str(path)) from error
    except apsw.FullError as error:
        raise StoreFullError(str(path)) from error
    except (PermissionError, IsADirectoryError) as error:
        raise StoreReadOnlyError(str(path), error.strerror or str(error), os.geteuid()) from error
    except (apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise StoreReadOnlyError(str(path), str(error), os.geteuid()) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamagedError(str(path), str(error)) from error
    except (apsw.IOError, OSError) as error:
        number = error.errno if isinstance(error, OSError) else getattr(link, "system_errno", 0)
        if number in NO_ROOM:
            raise StoreFullError(str(path)) from error
        raise StoreDownError(str(path), str(error)) from error
    except (apsw.CantOpenError, apsw.ProtocolError) as error:
        raise StoreDownError(str(path), str(error)) from error
    except apsw.Error as error:
        raise StoreError(f"{path} did not take it ({error}); nothing was written") from error


def _connected(path: Path, patience_ms: int) -> Link:
    opened = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    opened.set_busy_timeout(patience_ms)
    connection = cast("Link", opened)
    _told(connection, _OF_ALL)
    return connection


def _let_shrink(connection: Link, path: Path) -> None:
    """A file that can give pages back; one that cannot is written again, unless it is large."""
    try:
        if connection.execute("PRAGMA auto_vacuum").fetchall() == [(INCREMENTAL,)]:
            return
        is_new = path.stat().st_size == 0
        connection.execute(f"PRAGMA auto_vacuum={INCREMENTAL}").fetchall()
        if not is_new and path.stat().st_size < LARGE_BYTES:
            connection.execute("VACUUM").fetchall()
    except BaseException:
        connection.close()
        raise


def _told(connection: Link, settings: str) -> None:
    try:
        connection.execute(settings).fetchall()
    except BaseException:
        connection.close()
        raise


def _in_transaction(connection: Link, begin: str, talk: Talk[T]) -> T:
    connection.execute(begin)
    try:
        result = _run(connection, talk)
        connection.execute("COMMIT")
    except BaseException:
        # Some failures have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _run(connection: Link, talk: Talk[T]) -> T:
    try:
        wish = next(talk)
        while True:
            wish = talk.send(_granted(connection, wish))
    except StopIteration as done:
        return done.value
    finally:
        talk.close()


def _granted(connection: Link, wish: Wish) -> list[Row]:
    match wish:
        case Say(sql=sql, given=given):
            return connection.execute(sql, given).fetchall()
        case Put(table=table, rows=rows):
            return _many(connection, _put_sql(table), rows)
        case Drop(table=table, columns=columns, rows=rows):
            return _many(connection, _drop_sql(table, columns), rows)


def _many(connection: Link, sql: str, rows: list[tuple[Any, ...]]) -> list[Row]:
    connection.executemany(sql, rows)
    return []


@cache
def _put_sql(table: Table) -> str:
    values = marks(len(table.columns))
    names = ", ".join(table.names)
    return f"INSERT INTO {table.name} ({names}) VALUES ({values}){table.at_conflict()}"  # noqa: S608 - our own names


@cache
def _drop_sql(table: Table, columns: tuple[str, ...]) -> str:
    where = " AND ".join(f"{column} = ?" for column in columns)
    return f"DELETE FROM {table.name} WHERE {where}"  # noqa: S608 - our own names
