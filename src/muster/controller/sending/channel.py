"""One sink and its thread, so that none waits for another, and no job for any."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Condition, Thread
from typing import Final

from muster.controller.sending.queue import LineQueue
from muster.controller.sending.wire import HttpWire, NotTakenError, UdpWire
from muster.model.queue import is_within
from muster.model.sinks import Sent, Sink, SinkKind
from muster.model.value import Instant, QueuePath
from muster.telemetry.family import Family
from muster.telemetry.sinks.dogstatsd import USUAL, Deltas, chosen, datagrams
from muster.telemetry.sinks.lines import Line
from muster.telemetry.sinks.loki import loki_post
from muster.telemetry.sinks.otlp import Origin, log_post, metric_posts
from muster.telemetry.sinks.post import Post

log = logging.getLogger("muster.sinks")

GATHERING_S: Final = 1.0
"""So long lines are gathered before they are sent."""

PAUSES_S: Final = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Between two tries of a batch, unless the sink says how long. After the last it is lost."""

CLOSING_PATIENCE_S: Final = 2.0
OUTCOMES: Final = ("sent", "failed", "dropped")

Families = Callable[[QueuePath | None], Iterable[Family]]
"""All metrics of now that may be told of this queue, or of all."""


class Channel:
    """Takes lines at once, whatever becomes of them."""

    def __init__(
        self,
        sink: Sink,
        families: Families,
        origin: Origin,
        pauses_s: tuple[float, ...] = PAUSES_S,
        gathering_s: float = GATHERING_S,
    ) -> None:
        self.sink = sink
        self.problem = ""
        self.lines: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.series: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._families = families
        self._origin = origin
        self._pauses_s = pauses_s
        self._gathering_s = gathering_s
        self._http = HttpWire(sink)
        self._udp = UdpWire(sink)
        self._deltas = Deltas()
        self._queue = LineQueue()
        self._metrics_at: Instant | None = None
        self._changed = Condition()
        self._is_closing = False
        self._thread = Thread(target=self._run, name=f"sink-{sink.name}", daemon=True)
        self._thread.start()

    @property
    def wants_log(self) -> bool:
        return Sent.LOG in self.sink.sends

    def wants_output(self, queue: QueuePath, *, is_private: bool) -> bool:
        """Of this queue? is_private: then only a sink that names it is sent what its jobs write."""
        if Sent.OUTPUT not in self.sink.sends:
            return False
        named = self.sink.queue
        return not is_private if named is None else is_within(queue, named)

    def put(self, lines: Iterable[Line]) -> None:
        with self._changed:
            before = self._queue.lost
            self._queue.put(lines)
            self.lines["dropped"] += self._queue.lost - before
            self._changed.notify()

    def tell_metrics(self, now: Instant) -> None:
        """Send metrics soon; what was to be sent before and was not is not sent any more."""
        if Sent.METRICS in self.sink.sends:
            with self._changed:
                self._metrics_at = now
                self._changed.notify()

    @property
    def is_idle(self) -> bool:
        """Has everything been tried?"""
        with self._changed:
            return not self._queue and self._metrics_at is None

    def close(self) -> None:
        """Try once to send what is there, and end."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSING_PATIENCE_S)

    def _run(self) -> None:
        while self._awaits_something():
            try:
                self._send_metrics()
                self._send_lines()
            except Exception:
                log.exception("a mistake in sending to %s", self.sink.name)
                self._failed("a mistake of ours, see the log")
        self._send_lines()
        self._http.close()
        self._udp.close()

    def _awaits_something(self) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closing or self._queue or self._metrics_at is not None
            )
            # More lines may be on their way: one request takes them all.
            self._changed.wait_for(
                lambda: self._is_closing or self._queue.is_batch or self._metrics_at is not None,
                self._gathering_s,
            )
            return not self._is_closing

    def _send_lines(self) -> None:
        with self._changed:
            batch = self._queue.batch()
        if not batch:
            return
        if self.sink.kind is SinkKind.LOKI:
            self._send_until_taken(loki_post(batch))
        else:
            self._send_until_taken(log_post(batch, self._origin))

    def _send_until_taken(self, post: Post) -> None:
        for pause_s in (*self._pauses_s, None):
            try:
                self._http.send(post)
            except NotTakenError as error:
                self._failed(str(error))
                self.lines["failed"] += 1
                wait_s = pause_s if error.after_s is None else error.after_s
                if pause_s is None or not error.again or self._is_over_after(wait_s or 0.0):
                    self.lines["dropped"] += post.count
                    return
            else:
                self.lines["sent"] += post.count
                self._went_well()
                return

    def _send_metrics(self) -> None:
        """Once: what was measured now is old when it could be tried again."""
        with self._changed:
            now, self._metrics_at = self._metrics_at, None
        if now is None:
            return
        families = self._chosen()
        try:
            if self.sink.kind is SinkKind.DOGSTATSD:
                for content, count in datagrams(self._deltas.lines(families)):
                    self._udp.send(content)
                    self.series["sent"] += count
            else:
                for post in metric_posts(families, self._origin, now):
                    self._http.send(post)
                    self.series["sent"] += post.count
        except NotTakenError as error:
            self.series["failed"] += 1
            self._failed(str(error))
        else:
            self._went_well()

    def _chosen(self) -> tuple[Family, ...]:
        usual = USUAL if self.sink.kind is SinkKind.DOGSTATSD else ()
        wanted = self.sink.metrics or usual
        families = self._families(self.sink.queue)
        return tuple(chosen(families, wanted) if wanted else families)

    def _failed(self, text: str) -> None:
        if text != self.problem:
            log.warning("sink %s: %s", self.sink.name, text)
        self.problem = text

    def _went_well(self) -> None:
        if self.problem:
            log.info("sink %s takes what it is sent again", self.sink.name)
        self.problem = ""

    def _is_over_after(self, pause_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closing, pause_s)
