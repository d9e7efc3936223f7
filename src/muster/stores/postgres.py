"""The store that several processes share: PostgreSQL through asyncpg, behind plain calls."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

from muster.model.errors import StoreDownError
from muster.stores.appending import appending
from muster.stores.base import Batch
from muster.stores.keeping import TableStore
from muster.stores.migrating import migrating
from muster.stores.pg_sessions import (
    CHANNEL,
    LOST,
    MIGRATION_LOCK,
    PAUSE_S,
    Ear,
    LeaderLock,
    Server,
    Session,
    over,
)
from muster.stores.tables import ColumnType, Table
from muster.stores.talking import Drop, Put, Row, Say, Talk, Wish

T = TypeVar("T")

# The order of letters must be that of bytes, as it is with SQLite: whole queues are ranges.
WORDS = {"int": "BIGINT", "text": 'TEXT COLLATE "C"', "blob": "BYTEA", "compact": ""}
ARRAYS = {ColumnType.INT: "bigint[]", ColumnType.TEXT: "text[]", ColumnType.BLOB: "bytea[]"}

READERS = 4
"""So many may read at the same time."""

DOUBT_TRIES = 20
"""So often we ask, half a second apart, what became of a commit that was not answered."""


class PostgresStore(TableStore):
    """Keeps everything in one database. `dsn` is as libpq has it: postgresql://user@host/name."""

    def __init__(self, dsn: str) -> None:
        self._server = Server(dsn)
        try:
            super().__init__(PostgresDatabase(self._server))
        except BaseException:
            self._server.close()
            raise
        self._seat = LeaderLock(self._server)
        self._ears: list[Ear] = []

    def append(self, batch: Batch) -> None:
        self._write(lambda: _appending_aloud(batch))

    def listen(self, wake: Callable[[], None]) -> None:
        ear = Ear(self._server, wake)
        self._ears.append(ear)
        self._server.run(ear.open())

    def lead(self) -> bool:
        return self._server.run(self._seat.take())

    def step_down(self) -> None:
        self._server.run(self._seat.leave())

    def close(self) -> None:
        for ear in self._ears:
            self._server.run(ear.close())
        self.step_down()
        super().close()
        self._server.close()


class PostgresDatabase:
    """Runs talks: those that write in one session, one after the other; readers beside it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(READERS)
        self._writer: Session | None = None
        self._idle: list[Session] = []
        try:
            self.write(lambda: _migrating_alone(server.where))
        except BaseException:
            self.close()
            raise

    def read(self, talk: Callable[[], Talk[T]]) -> T:
        return self._server.run(self._told(self._read(talk)))

    def write(self, talk: Callable[[], Talk[T]]) -> T:
        return self._server.run(self._told(self._write(talk)))

    def close(self) -> None:
        self._server.run(self._close())

    async def _told(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except Exception as error:
            meant = self._server.meaning(error)
            if meant is None:
                raise
            raise meant from error

    async def _read(self, talk: Callable[[], Talk[T]]) -> T:
        async with self._reading:
            try:
                return await self._read_once(talk)
            except LOST:
                # The session may have died while it was idle; reading twice does no harm.
                return await self._read_once(talk)

    async def _read_once(self, talk: Callable[[], Talk[T]]) -> T:
        session = await self._reader()
        turn = session.transaction(isolation="repeatable_read", readonly=True)
        try:
            await turn.start()
            result = await _run(session, talk())
            await turn.commit()
        except BaseException:
            session.terminate()
            raise
        self._idle.append(session)
        return result

    async def _reader(self) -> Session:
        while self._idle:
            session = self._idle.pop()
            if not session.is_closed():
                return session
        return await self._server.session()

    async def _write(self, talk: Callable[[], Talk[T]]) -> T:
        async with self._writing:
            try:
                return await self._write_once(talk)
            except _LostBeforeCommitError:
                try:
                    return await self._write_once(talk)
                except _LostBeforeCommitError as error:
                    raise StoreDownError(self._server.where, str(error)) from error

    async def _write_once(self, talk: Callable[[], Talk[T]]) -> T:
        session = await self._live_writer()
        turn = session.transaction()
        try:
            await turn.start()
            result = await _run(session, talk())
            number = await session.fetchval("SELECT pg_current_xact_id()::text")
        except LOST as error:
            session.terminate()
            raise _LostBeforeCommitError(str(error) or "no answer in time") from error
        except BaseException:
            await _rolled_back(session, turn)
            raise
        try:
            await turn.commit()
        except LOST as error:
            session.terminate()
            if not await self._was_committed(number):
                raise StoreDownError(self._server.where, str(error)) from error
        return result

    async def _live_writer(self) -> Session:
        if self._writer is None or self._writer.is_closed():
            self._writer = await self._server.session()
        return self._writer

    async def _was_committed(self, number: str) -> bool:
        """What became of a transaction whose end we did not hear.

        A server that stays away leaves it open: then the next append finds the version taken.
        """
        for _ in range(DOUBT_TRIES):
            try:
                session = await self._server.session()
                status = await session.fetchval("SELECT pg_xact_status($1::text::xid8)", number)
                await over(session)
            except LOST:
                status = None
            if status in {"committed", "aborted"}:
                return status == "committed"
            await asyncio.sleep(PAUSE_S)
        return False

    async def _close(self) -> None:
        sessions = [*self._idle, *([] if self._writer is None else [self._writer])]
        self._idle, self._writer = [], None
        for session in sessions:
            await over(session)


class _LostBeforeCommitError(Exception):
    """The session broke when nothing could have been written yet."""


def _migrating_alone(where: str) -> Talk[None]:
    yield Say(sql="SELECT pg_advisory_xact_lock(?)", given=(MIGRATION_LOCK,))
    yield from migrating(where, WORDS)


def _appending_aloud(batch: Batch) -> Talk[None]:
    yield from appending(batch)
    yield Say(sql="SELECT pg_notify(?, '')", given=(CHANNEL,))


async def _rolled_back(session: Session, turn: Any) -> None:
    try:
        await turn.rollback()
    except BaseException:
        session.terminate()
        raise


async def _run(session: Session, talk: Talk[T]) -> T:
    try:
        wish = next(talk)
        while True:
            wish = talk.send(await _granted(session, wish))
    except StopIteration as done:
        return done.value
    finally:
        talk.close()


async def _granted(session: Session, wish: Wish) -> list[Row]:
    match wish:
        case Say(sql=sql, given=given):
            return await session.fetch(numbered(sql), *given)
        case Put(table=table, rows=rows):
            return await session.fetch(_put_sql(table), *_columns(_newest(table, rows)))
        case Drop(table=table, columns=columns, rows=rows):
            return await session.fetch(_drop_sql(table, columns), *_columns(rows))


def _newest(table: Table, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """One row for each key: PostgreSQL does not change a row twice in one statement."""
    if not table.key:
        return rows
    places = table.key_places
    return list({tuple(row[place] for place in places): row for row in rows}.values())


def _columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def numbered(sql: str) -> str:
    """The same statement with `$1`, `$2` ... for the marks; none of ours has a mark in a text."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


@cache
def _put_sql(table: Table) -> str:
    names = ", ".join(table.names)
    kinds = tuple(kind for _, kind in table.columns)
    source = f"SELECT * FROM unnest({_arrays(kinds)})"  # noqa: S608 - our own names
    return f"INSERT INTO {table.name} ({names}) {source}{table.at_conflict()}"


@cache
def _drop_sql(table: Table, columns: tuple[str, ...]) -> str:
    keys = _arrays(tuple(table.kind(column) for column in columns))
    named = ", ".join(columns)
    same = " AND ".join(f"t.{column} = k.{column}" for column in columns)
    return f"DELETE FROM {table.name} t USING unnest({keys}) AS k({named}) WHERE {same}"  # noqa: S608 - our own names


def _arrays(kinds: tuple[ColumnType, ...]) -> str:
    return ", ".join(f"${place}::{ARRAYS[kind]}" for place, kind in enumerate(kinds, 1))
