"""Messages that wait for their receivers: each has a thread, so that none waits for another.

What cannot be sent is tried again, later each time, and dropped in the end; all is counted.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable
from threading import Condition, Lock, Thread
from typing import Final

from muster.controller.alerting.delivery import Deliver, Message, NotDeliveredError
from muster.model.alerting import Receiver
from muster.telemetry.family import Family, Point
from muster.telemetry.names import NOTICES

log = logging.getLogger("muster.alerts")

MOST_WAITING: Final = 1_000
"""For each receiver; then the oldest is dropped, because the newest says how things are."""

PAUSES_S: Final = (1.0, 5.0, 15.0, 60.0, 120.0)
"""Between two tries of a message. After the last it is dropped."""

CLOSING_PATIENCE_S: Final = 2.0
OUTCOMES: Final = ("sent", "failed", "dropped")


class Outbox:
    """Takes messages at once, whatever becomes of them."""

    def __init__(self, deliver: Deliver, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._deliver = deliver
        self._pauses_s = pauses_s
        self._lock = Lock()
        # Never changed in place: others look at it meanwhile.
        self._channels: dict[str, _Channel] = {}

    def use(self, receivers: Iterable[Receiver]) -> None:
        """These receivers from now on; messages for others are not sent any more."""
        wanted = {each.name: each for each in receivers}
        with self._lock:
            channels = self._channels.copy()
            left = [channels.pop(name) for name in self._channels if name not in wanted]
            for name, receiver in wanted.items():
                known = channels.get(name)
                if known is None:
                    channels[name] = _Channel(receiver, self._deliver, self._pauses_s)
                else:
                    known.receiver = receiver
            self._channels = channels
        for channel in left:
            channel.close()

    def put(self, message: Message) -> None:
        channel = self._channels.get(message.receiver)
        if channel is not None:
            channel.put(message)

    def replace(self, receiver: str, messages: Iterable[Message]) -> None:
        """These instead of those that waited here so: they say again how everything stands."""
        channel = self._channels.get(receiver)
        if channel is not None:
            channel.replace(messages)

    def problems(self) -> tuple[str, ...]:
        """What the receivers that could not be reached lately said."""
        return tuple(
            f"receiver {name}: {channel.problem}"
            for name, channel in sorted(self._channels.items())
            if channel.problem
        )

    def families(self) -> Iterable[Family]:
        points = tuple(
            Point((("receiver", name), ("outcome", outcome)), channel.counts[outcome])
            for name, channel in sorted(self._channels.items())
            for outcome in OUTCOMES
        )
        yield NOTICES.family(points)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()


class _Channel:
    """One receiver and its thread."""

    def __init__(self, receiver: Receiver, deliver: Deliver, pauses_s: tuple[float, ...]) -> None:
        self.receiver = receiver
        self.counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.problem = ""
        self._deliver = deliver
        self._pauses_s = pauses_s
        self._waiting: deque[Message] = deque()
        self._standing: deque[Message] = deque()
        self._changed = Condition()
        self._is_closing = False
        self._thread = Thread(target=self._run, name=f"alerts-{receiver.name}", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self.counts["dropped"] += 1
            self._waiting.append(message)
            self._changed.notify()

    def replace(self, messages: Iterable[Message]) -> None:
        with self._changed:
            self._standing = deque(messages)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSING_PATIENCE_S)

    def _run(self) -> None:
        while (message := self._next()) is not None:
            self._send(message)

    def _next(self) -> Message | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._standing or self._is_closing)
            if self._is_closing:
                return None
            return (self._waiting or self._standing).popleft()

    def _send(self, message: Message) -> None:
        for pause_s in (*self._pauses_s, None):
            try:
                self._deliver(self.receiver, message)
            except NotDeliveredError as error:
                is_last = pause_s is None or not error.again
                self._failed(str(error))
            except Exception:
                log.exception("a mistake in sending to %s", self.receiver.name)
                is_last = True
                self._failed("a mistake of ours, see the log")
            else:
                self.problem = ""
                self._count("sent")
                return
            if is_last or self._is_over_after(pause_s or 0.0):
                self._count("dropped")
                return

    def _failed(self, text: str) -> None:
        self._count("failed")
        if text != self.problem:
            log.warning("receiver %s: %s", self.receiver.name, text)
        self.problem = text

    def _count(self, outcome: str) -> None:
        """Both those who put messages here and this thread count what was dropped."""
        with self._changed:
            self.counts[outcome] += 1

    def _is_over_after(self, pause_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closing, pause_s)
