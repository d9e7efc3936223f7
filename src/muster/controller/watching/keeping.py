"""Hands what was judged to its store, in a thread of its own: nothing ever waits for that.

What does not fit into the queue, or what the store does not take, is lost and counted; it is said
once, and again after it was well in between.
"""

import logging
from collections.abc import Callable
from queue import Empty, Full, Queue
from threading import Thread

from muster.controller.watching.left_out import LeftOut
from muster.model.value import DAY, Duration, Instant
from muster.stores.measured.base import MeasuredStore, Settled

log = logging.getLogger("muster.telemetry")

MOST_QUEUED = 1_000
CLOSING_PATIENCE_S = 5.0
"""A disk that does not answer does not keep Muster from ending."""

KEPT = Duration(400 * DAY)
MINUTES_KEPT = Duration(30 * DAY)
_FORGET_EVERY = Duration(DAY)


class Keeping:
    """One thread that writes; `put` never waits."""

    def __init__(
        self, store: MeasuredStore, left_out: LeftOut, clock: Callable[[], Instant]
    ) -> None:
        self._store = store
        self._left_out = left_out
        self._clock = clock
        self._queue: Queue[Settled | None] = Queue(MOST_QUEUED)
        self._fails = False
        self._forgot_at = Instant(0)
        self._thread = Thread(target=self._run, name="measured", daemon=True)

    def put(self, settled: Settled) -> None:
        """Have it kept, soon."""
        if self._thread.ident is None:
            self._thread.start()
        try:
            self._queue.put_nowait(settled)
        except Full:
            self._left_out.count("measured", 1)

    def close(self) -> None:
        """Write what is queued, and end."""
        if self._thread.ident is not None:
            while True:
                try:
                    self._queue.put_nowait(None)
                    break
                except Full:
                    self._drop_one()
            self._thread.join(CLOSING_PATIENCE_S)
        self._store.close()

    def _run(self) -> None:
        while (settled := self._queue.get()) is not None:
            self._write(settled)

    def _write(self, settled: Settled) -> None:
        try:
            self._store.keep(settled)
            self._forget()
        except Exception:
            self._left_out.count("measured", 1)
            if not self._fails:
                log.exception("what was measured is not kept; jobs go on as before")
            self._fails = True
            return
        self._fails = False

    def _forget(self) -> None:
        now = self._clock()
        if now - self._forgot_at >= _FORGET_EVERY:
            self._forgot_at = now
            self._store.forget(
                Instant(max(0, now - KEPT)), minutes_before=Instant(max(0, now - MINUTES_KEPT))
            )

    def _drop_one(self) -> None:
        try:
            self._queue.get_nowait()
        except Empty:
            return
