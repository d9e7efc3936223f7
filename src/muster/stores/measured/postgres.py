"""What was measured, in tables of its own beside the journal's: with sessions of its own.

A server that is away, slow or full loses what was measured meanwhile, and nothing else: no session
of the journal is used, and none is waited for.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import DeviceId, Instant, JobId
from muster.stores.measured.base import FORMAT, PastQuery, Settled
from muster.stores.measured.talks import TABLES, Asks, Talks
from muster.stores.pg_sessions import MIGRATION_LOCK, Server, Session, over
from muster.stores.postgres import WORDS, numbered
from muster.stores.talking import Say

T = TypeVar("T")

PATIENCE_S = 2.0
"""So long we try to get a session, and so long an answer may take."""

_TALKS = Talks(f"measured{FORMAT}_")


class PostgresMeasured:
    """In one database, found at `dsn`. Nothing is asked of the server before it is needed."""

    def __init__(self, dsn: str) -> None:
        self._server = Server(dsn)
        self._writing = _Line(self._server)
        self._reading = _Line(self._server)

    def keep(self, settled: Settled) -> None:
        self._server.run(self._writing.run(lambda: _TALKS.keeping(settled)))

    def report(self, job: JobId, attempt: int | None = None) -> JobReport | None:
        return self._read(lambda: _TALKS.report(job, attempt))

    def reports(self, query: PastQuery) -> tuple[JobReport, ...]:
        return self._read(lambda: _TALKS.reports(query))

    def uses(self, since: Instant) -> tuple[FleetUse, ...]:
        return self._read(lambda: _TALKS.uses(since))

    def holdings(
        self, since: Instant, until: Instant, device: DeviceId | None = None
    ) -> tuple[Holding, ...]:
        return self._read(lambda: _TALKS.holdings(since, until, device))

    def minutes(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        return self._read(lambda: _TALKS.minutes(job, attempt))

    def forget(self, before: Instant, minutes_before: Instant) -> None:
        self._server.run(self._writing.run(lambda: _TALKS.forgetting(before, minutes_before)))

    def close(self) -> None:
        for line in (self._writing, self._reading):
            self._server.run(line.close())
        self._server.close()

    def _read(self, talk: Callable[[], Asks[T]]) -> T:
        return self._server.run(self._reading.run(talk))


class _Line:
    """One session, used by one after the other; a broken one is had again when it is needed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._turn = asyncio.Lock()
        self._session: Session | None = None

    async def run(self, talk: Callable[[], Asks[T]]) -> T:
        async with self._turn:
            session = await self._opened()
            turn = session.transaction()
            try:
                await turn.start()
                result = await _told(session, talk())
                await turn.commit()
            except BaseException:
                # Whatever it was: a session that is begun again is in no doubtful state.
                session.terminate()
                raise
            return result

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and not session.is_closed():
            await over(session)

    async def _opened(self) -> Session:
        if self._session is None or self._session.is_closed():
            session = await self._server.session(patience_s=PATIENCE_S)
            try:
                await _made(session)
            except BaseException:
                session.terminate()
                raise
            self._session = session
        return self._session


async def _made(session: Session) -> None:
    turn = session.transaction()
    await turn.start()
    await _told(session, _making())
    await turn.commit()


def _making() -> Asks[None]:
    yield Say(sql="SELECT pg_advisory_xact_lock(?)", given=(MIGRATION_LOCK,))
    yield from _TALKS.making(WORDS)
    for number in range(1, FORMAT):
        for table in TABLES:
            yield Say(sql=f"DROP TABLE IF EXISTS measured{number}_{table}")


async def _told(session: Session, talk: Asks[T]) -> T:
    try:
        wish = next(talk)
        while True:
            wish = talk.send(
                await session.fetch(numbered(wish.sql), *wish.given, timeout=PATIENCE_S)
            )
    except StopIteration as done:
        return done.value
    finally:
        talk.close()
