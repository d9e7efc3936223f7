"""Tells receivers what happens to jobs: who commits hands it over, and a thread does the rest."""

import logging
from collections import deque
from threading import Condition, Thread
from typing import Final

from muster.controller.alerting.job_news import JobNewsSource
from muster.controller.alerting.outbox import Outbox
from muster.controller.alerting.telling import message_of, receivers_of
from muster.controller.mail.notices import is_anothers
from muster.controller.watching.left_out import LeftOut
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change, Transaction
from muster.model.value import Instant
from muster.stores.base import Batch

log = logging.getLogger("muster.alerts")

MOST_REMEMBERED: Final = 20_000
"""So many commits wait to be looked at; of what comes then nobody is told."""

CLOSING_PATIENCE_S: Final = 2.0


class JobTeller:
    """A companion of the controller."""

    def __init__(
        self, record: Record, news: JobNewsSource, outbox: Outbox, clock: Clock, left_out: LeftOut
    ) -> None:
        self._record = record
        self._news = news
        self._outbox = outbox
        self._clock = clock
        self._left_out = left_out
        self._new: deque[tuple[Batch, tuple[Change, ...]]] = deque()
        self._changed = Condition()
        self._began_at: Instant | None = None
        self._leads = False
        self._is_closing = False
        self._thread = Thread(target=self._run, name="job-news", daemon=True)

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """Something was committed. It must be quick, and is nothing where nobody is told."""
        if not self._leads or not (self._record.site.alerts.jobs or batch.site is not None):
            return
        if is_anothers(batch, self._record):
            return
        with self._changed:
            if len(self._new) < MOST_REMEMBERED:
                self._new.append((batch, changes))
            else:
                self._left_out.count("job_news", len(changes))
            self._changed.notify()

    def begin(self, transaction: Transaction) -> None:
        """This process leads from now on."""
        with self._changed:
            if self._thread.ident is None:
                self._thread.start()
            self._leads, self._began_at = True, transaction.now
            self._changed.notify()

    def rest(self) -> None:
        """Another process leads, and tells."""
        with self._changed:
            self._leads, self._began_at = False, None
            self._new.clear()

    def close(self) -> None:
        """Nobody is told of what still waits for others like it."""
        with self._changed:
            self._leads = False
            self._is_closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_PATIENCE_S)

    def _run(self) -> None:
        while self._awaits_lead():
            try:
                self._turn(self._clock())
            except Exception:
                log.exception("a mistake in telling what happens to jobs")
            with self._changed:
                self._changed.wait_for(self._is_to_turn, self._pause_s())

    def _awaits_lead(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._leads or self._is_closing)
            return not self._is_closing

    def _is_to_turn(self) -> bool:
        return bool(self._new) or self._began_at is not None or self._is_closing

    def _pause_s(self) -> float | None:
        next_at = self._news.next_at()
        return None if next_at is None else max(0.0, (next_at - self._clock()) / 1_000)

    def _turn(self, now: Instant) -> None:
        with self._changed:
            began_at, self._began_at = self._began_at, None
            new, self._new = self._new, deque()
        if began_at is not None:
            self._news.begin(began_at)
        self._news.follow_routes(now)
        for batch, changes in new:
            self._news.take(batch, changes, now)
        alerting = self._record.site.alerts
        receivers = {each.name: each for each in receivers_of(alerting)}
        for told in self._news.due(now):
            # Since it was to be told, the rules may have changed.
            if told.key.address.receiver in receivers:
                self._outbox.use(receivers.values())
                self._outbox.put(message_of(told, alerting))
