"""What was measured, in a file of its own beside the journal's database."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import apsw

from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.minutes import MinuteBlock
from muster.model.value import DeviceId, Instant, JobId
from muster.stores.measured.base import FORMAT, PastQuery, Settled
from muster.stores.measured.talks import Asks, Talks
from muster.stores.sqlite import WORDS

T = TypeVar("T")

PATIENCE_MS = 1_000

_TALKS = Talks()


class SqliteMeasured:
    """In the file at `path`, which only its owner can read. Opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._link: Any = None
        self._inode = -1

    def keep(self, settled: Settled) -> None:
        self._run(lambda: _TALKS.keeping(settled))

    def report(self, job: JobId, attempt: int | None = None) -> JobReport | None:
        return self._run(lambda: _TALKS.report(job, attempt))

    def reports(self, query: PastQuery) -> tuple[JobReport, ...]:
        return self._run(lambda: _TALKS.reports(query))

    def uses(self, since: Instant) -> tuple[FleetUse, ...]:
        return self._run(lambda: _TALKS.uses(since))

    def holdings(
        self, since: Instant, until: Instant, device: DeviceId | None = None
    ) -> tuple[Holding, ...]:
        return self._run(lambda: _TALKS.holdings(since, until, device))

    def minutes(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        return self._run(lambda: _TALKS.minutes(job, attempt))

    def forget(self, before: Instant, minutes_before: Instant) -> None:
        self._run(lambda: _TALKS.forgetting(before, minutes_before))
        with self._lock:
            self._opened().execute("PRAGMA incremental_vacuum(2000)").fetchall()

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _run(self, talk: Callable[[], Asks[T]]) -> T:
        """All of it in one transaction."""
        with self._lock:
            link = self._opened()
            with link:
                return _told(link, talk())

    def _opened(self) -> Any:
        """The file as it is now: one that was taken away, or replaced, is let go."""
        if self._link is not None and self._is_same():
            return self._link
        self._let_go()
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        link: Any = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            link = self._prepared(link)
        except BaseException:
            link.close()
            raise
        self._link, self._inode = link, self._path.stat().st_ino
        return link

    def _prepared(self, link: Any) -> Any:
        link.set_busy_timeout(PATIENCE_MS)
        ((found,),) = link.execute("PRAGMA user_version").fetchall()
        if found not in {0, FORMAT}:
            link.close()
            self._path.replace(self._path.with_name(f"{self._path.name}.old"))
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            link = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            found = 0
        if not found:
            link.execute("PRAGMA auto_vacuum=2").fetchall()
        link.execute("PRAGMA journal_mode=WAL").fetchall()
        link.execute("PRAGMA synchronous=NORMAL").fetchall()
        if not found:
            with link:
                _told(link, _TALKS.making(WORDS))
                link.execute(f"PRAGMA user_version={FORMAT}").fetchall()
        return link

    def _is_same(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _let_go(self) -> None:
        if self._link is not None:
            self._link.close(True)  # noqa: FBT003 - apsw takes `force` by position as well
        self._link = None


def _told(link: Any, talk: Asks[T]) -> T:
    try:
        wish = next(talk)
        while True:
            wish = talk.send(link.execute(wish.sql, wish.given).fetchall())
    except StopIteration as done:
        return done.value
