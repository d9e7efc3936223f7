"""Mail about jobs, sent while this process leads: one after the other, in a thread of its own.

A mail is sent at most once. What waits to be sent is in memory alone, so that it is lost when the
process is killed; what happens to jobs while nobody leads is heard by the next leader, and mailed.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Condition, Thread

from muster.controller.mail.notices import ArrayOver, NoticeSource, Outgoing
from muster.controller.world.journal import Clock, KeepingStore
from muster.controller.world.transaction import Change, Transaction
from muster.lifecycle.notices import Notice, notices_of_array
from muster.model.errors import MusterError
from muster.model.history import Ended
from muster.model.launch import Launch
from muster.model.value import JobId, Value, replace
from muster.stores.base import Batch, HistoryQuery

log = logging.getLogger("muster.mail")

MOST_WAITING = 10_000
"""So many mails may wait to be sent; what comes then is not sent."""

CLOSING_PATIENCE_S = 5.0
"""Mails that wait when Muster ends are sent for so long."""

PAGE = 1_000


class Letter(Value):
    """A mail: to whom, its subject, and what the program that sends it finds around it."""

    to: str
    subject: str
    env: Mapping[str, str] = {}
    body: str = ""


Errand = Outgoing | Letter


class Post(Value):
    """How a notice is put into words, and what sends it: that may take a while, or fail."""

    written: Callable[[Notice, Launch | None], Letter]
    send: Callable[[Letter], None]


class MailSender:
    """Sends mail; others only add to what waits for it, and never wait themselves."""

    def __init__(self, news: NoticeSource, store: KeepingStore, clock: Clock, post: Post) -> None:
        self._news = news
        self._store = store
        self._clock = clock
        self._post = post
        self._leads = False
        self._is_closing = False
        self._waiting: deque[Errand] = deque()
        self._changed = Condition()
        self._thread = Thread(target=self._run, name="mail", daemon=True)
        self._thread.start()

    def begin(self, transaction: Transaction) -> None:
        """The command with which this process begins to lead: what comes after it is ours."""
        with self._changed:
            self._news.begin(transaction)
            self._leads = True

    def rest(self) -> None:
        """Another process leads; what waits for its turn here is still sent."""
        with self._changed:
            self._leads = False

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """Something was committed; called in the order of commits."""
        with self._changed:
            if not self._leads:
                return
            try:
                self._add(self._news.of(batch, changes))
            except Exception:
                # What was committed stays so, whatever becomes of the mails about it.
                log.exception("a mistake in finding out who wants mail")
            self._changed.notify()

    def post(self, letter: Letter) -> None:
        """Send this too, after what waits already."""
        with self._changed:
            self._add((letter,))
            self._changed.notify()

    def close(self) -> None:
        """Send what waits, for a short while; then stop."""
        with self._changed:
            self._leads = False
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSING_PATIENCE_S)
        if self._waiting:
            log.warning("Muster ends with %d mails that were not sent", len(self._waiting))

    def _add(self, found: Iterable[Errand]) -> None:
        for each in found:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(each)
            else:
                log.warning("too many mails wait; this one is not sent: %s", each)

    def _run(self) -> None:
        while (errand := self._next()) is not None:
            try:
                if isinstance(errand, Letter):
                    self._deliver(errand)
                    continue
                for notice in self._notices(errand):
                    self._send(notice)
            except Exception:
                log.exception("a mistake in sending mail")

    def _next(self) -> Errand | None:
        """What to do next, as soon as there is something; nothing when all is over."""
        with self._changed:
            while True:
                if self._leads:
                    self._add(self._news.due(self._clock()))
                if self._waiting:
                    return self._waiting.popleft()
                if self._is_closing:
                    return None
                self._changed.wait(self._patience_s())

    def _patience_s(self) -> float | None:
        next_at = self._news.next_at() if self._leads else None
        return None if next_at is None else max(0.0, (next_at - self._clock()) / 1_000)

    def _notices(self, errand: Outgoing) -> tuple[Notice, ...]:
        match errand:
            case Notice():
                return (errand,)
            case ArrayOver(array=array):
                return notices_of_array(tuple(self._parts(array)))

    def _parts(self, array: JobId) -> Iterator[Ended]:
        query = HistoryQuery(arrays=(array,), limit=PAGE)
        page = self._store.ended(query)
        yield from page.jobs
        while page.next is not None:
            page = self._store.ended(replace(query, after=page.next))
            yield from page.jobs

    def _send(self, notice: Notice) -> None:
        part = notice.job.spec.array
        launch = self._store.launch(notice.job.id if part is None else part.array)
        self._deliver(self._post.written(notice, launch))

    def _deliver(self, letter: Letter) -> None:
        try:
            self._post.send(letter)
        except (MusterError, OSError) as error:
            log.warning("no mail to %s (%s): %s", letter.to, letter.subject, error)
        else:
            log.info("mail to %s: %s", letter.to, letter.subject)
