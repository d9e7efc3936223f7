"""Sessions with PostgreSQL: the thread they live in, how they begin, and what their ends mean."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from threading import Thread
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has none

from muster.model.errors import StoreDownError, StoreError, StoreFullError, StoreLockedError
from muster.stores.talking import Row

T = TypeVar("T")

log = logging.getLogger("muster.stores")

CHANNEL = "muster"
LEADER_LOCK = 0x6D757374_6C656164
MIGRATION_LOCK = 0x6D757374_6D696772

PATIENCE_S = 5.0
"""So long we try to get a session before the server counts as down."""

ANSWER_S = 60.0
"""So long one statement may take."""

LEADER_ANSWER_S = 2.0
"""A leader that hears nothing from the server for so long does not know that it leads."""

ASK_EVERY_S = 10.0
"""So often a session that only listens asks whether the server is still there."""

PAUSE_S = 0.5
"""Between two tries to get a session back."""

SETTINGS = {
    "application_name": "muster",
    "lock_timeout": "2000",
    # So that the server lets go of the leader's lock soon after its machine vanished.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}

LOST: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    # What it says when the server hangs up at the very moment at which something is asked.
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.AdminShutdownError,
    asyncpg.exceptions.CrashShutdownError,
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.IdleSessionTimeoutError,
)
"""The session is over, or there is none; another may be had later."""


class PgTransaction(Protocol):
    """What we use of asyncpg's transactions."""

    async def start(self) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...


class Session(Protocol):
    """What we use of asyncpg's connections."""

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Row]: ...
    async def fetchval(self, query: str, *args: Any, timeout: float | None = None) -> Any: ...
    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> PgTransaction: ...
    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...


_connect = cast("Callable[..., Awaitable[Session]]", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType] - untyped


class Server:
    """One PostgreSQL database, and the thread in which all sessions with it live."""

    def __init__(self, dsn: str) -> None:
        self.where = _where(dsn)
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="postgres", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do this there, and wait for it here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def session(self, *, patience_s: float = PATIENCE_S) -> Session:
        return await _connect(
            self._dsn, timeout=patience_s, command_timeout=ANSWER_S, server_settings=SETTINGS
        )

    def meaning(self, error: Exception) -> StoreError | None:
        """What this error means to us, if a person can do something about it."""
        match error:
            case asyncpg.exceptions.DiskFullError():
                return StoreFullError(self.where)
            case asyncpg.exceptions.LockNotAvailableError() | asyncpg.DeadlockDetectedError():
                return StoreLockedError(self.where)
            case (
                asyncpg.exceptions.InsufficientResourcesError()
                | asyncpg.exceptions.OperatorInterventionError()
                | asyncpg.exceptions.InvalidAuthorizationSpecificationError()
                | asyncpg.exceptions.InvalidCatalogNameError()
                | asyncpg.exceptions.ReadOnlySQLTransactionError()
                | asyncpg.exceptions.PostgresIOError()
            ):
                return StoreDownError(self.where, str(error))
            case _ if isinstance(error, LOST):
                return StoreDownError(self.where, str(error) or "no answer in time")
            case asyncpg.PostgresError():
                return StoreError(f"{self.where} did not take it ({error}); nothing was written")
            case _:
                return None

    def close(self) -> None:
        # What was cut off closes its socket at the loop's next turn.
        self.run(asyncio.sleep(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LeaderLock:
    """The leader's place: a lock that the server holds for as long as our session lives."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session: Session | None = None
        self._leads = False

    async def take(self) -> bool:
        """Do we lead? A server that does not answer has no leader."""
        try:
            return await self._take()
        except (*LOST, asyncpg.PostgresError) as error:
            log.warning("no lead: %s", error)
            await self.leave()
            return False

    async def leave(self) -> None:
        session, self._session, self._leads = self._session, None, False
        if session is not None:
            await over(session)

    async def _take(self) -> bool:
        if self._session is None or self._session.is_closed():
            self._leads = False
            self._session = await self._server.session(patience_s=LEADER_ANSWER_S)
        if self._leads:
            await self._session.fetchval("SELECT 1", timeout=LEADER_ANSWER_S)
            return True
        self._leads = await self._session.fetchval(
            "SELECT pg_try_advisory_lock($1)", LEADER_LOCK, timeout=LEADER_ANSWER_S
        )
        return self._leads


class Ear:
    """Hears when anybody commits, and wakes; also when it may have missed something."""

    def __init__(self, server: Server, wake: Callable[[], None]) -> None:
        self._server = server
        self._wake = wake
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Returns when it hears, or when it cannot for now."""
        heard = asyncio.Event()
        self._task = asyncio.create_task(self._stay(heard))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await heard.wait()

    async def close(self) -> None:
        # A library on the way may take a cancellation for the end of something else.
        while self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=PAUSE_S)

    async def _stay(self, heard: asyncio.Event) -> None:
        while True:
            try:
                await self._hear(heard)
            except (*LOST, asyncpg.PostgresError) as error:
                log.warning("not heard for a moment: %s", error)
            heard.set()
            await asyncio.sleep(PAUSE_S)

    async def _hear(self, heard: asyncio.Event) -> None:
        session = await self._server.session()
        ended = asyncio.Event()
        try:
            session.add_termination_listener(lambda *_: ended.set())
            await session.add_listener(CHANNEL, lambda *_: self._wake())
            self._wake()
            heard.set()
            await _until(ended, session)
        finally:
            await over(session)


async def over(session: Session) -> None:
    """End a session, politely if the server still listens."""
    try:
        await session.close(timeout=LEADER_ANSWER_S)
    except (*LOST, asyncpg.PostgresError):
        session.terminate()


async def _until(ended: asyncio.Event, session: Session) -> None:
    """Wait for the end of a session; ask now and then, for a dead line is silent."""
    while not ended.is_set():
        try:
            async with asyncio.timeout(ASK_EVERY_S):
                await ended.wait()
        except TimeoutError:
            await session.fetchval("SELECT 1", timeout=PATIENCE_S)


def _where(dsn: str) -> str:
    """The address without the password."""
    parts = urlsplit(dsn)
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
