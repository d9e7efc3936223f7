"""Everything that is sent to servers of others, as the rules say.

Every process sends its own log; the one that leads sends what jobs write, and metrics. Nobody who
hands something over waits: it is put into bounded queues; what does not fit is lost and counted.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Final

import msgspec

from muster.controller.sending.channel import OUTCOMES, Channel
from muster.controller.sending.tail import Held, Tail
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change, Transaction
from muster.model.queue import is_private
from muster.model.sinks import Sent, Sink
from muster.model.value import Instant, JobId, QueuePath
from muster.stores.base import Batch
from muster.telemetry import names
from muster.telemetry.family import Family, Point
from muster.telemetry.look import Look
from muster.telemetry.sinks.lines import Line

log = logging.getLogger("muster.sinks")

TURN_S: Final = 1.0
"""So often what jobs write is looked at, and the rules."""

MOST_ENDED: Final = 1_000
"""Of so many attempts that end within a turn the output is still read."""

KEEP_EVERY_S: Final = 10.0
CLOSING_PATIENCE_S: Final = 3.0

MakeChannel = Callable[[Sink], Channel]


class Sending:
    """A companion of the controller, and a subscriber of the watcher.

    offsets: the file that says how far output was read.
    """

    def __init__(self, record: Record, tail: Tail, channel: MakeChannel, offsets: Path) -> None:
        self._record = record
        self._tail = tail
        self._make = channel
        self._file = offsets
        self._channels: dict[str, Channel] = {}
        self._lock = Lock()
        self._ended: deque[Held] = deque(maxlen=MOST_ENDED)
        self._kept: Mapping[str, int] = {}
        self._kept_at = 0.0
        self._changed = Condition()
        self._leads = False
        self._follows = False
        self._is_closing = False
        self._thread = Thread(target=self._run, name="sinks", daemon=True)

    def start(self) -> None:
        """Send the log of this process from now on."""
        self.follow_rules()
        self._thread.start()

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 - as companions are
        """This process leads from now on."""
        with self._changed:
            self._leads = True
            self._follows = False

    def rest(self) -> None:
        """Another process leads."""
        with self._changed:
            self._leads = False

    def close(self) -> None:
        """Send what is there if that is quick, and end."""
        with self._changed:
            self._leads = False
            self._is_closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_PATIENCE_S)
        for channel in self._all():
            channel.close()

    def write(self, line: Line) -> None:
        """A line of our own log. Never waits, and never logs."""
        for channel in self._all():
            if channel.wants_log:
                channel.put((line,))

    def note(self, look: Look) -> None:
        """The watcher looked: metrics are new."""
        for channel in self._all():
            channel.tell_metrics(look.at)

    def note_commit(self, batch: Batch, changes: tuple[Change, ...]) -> None:  # noqa: ARG002 - as subscribers are
        """Attempts that end between two turns are read all the same. It must be quick."""
        for change in changes:
            held = change.held
            if held is not None and (change.holds is None or change.holds.attempt != held.attempt):
                self._ended.append(Held(job=change.after, allocation=held))

    def turn(self, now_ns: int) -> None:
        """Follow the rules, and what jobs write; tests call it with their own time."""
        self.follow_rules()
        with self._changed:
            leads = self._leads
        if not leads:
            return
        if not self._follows:
            self._tail.begin(self._read_offsets())
            self._follows = True
        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        wanted = [each for each in self._all() if Sent.OUTPUT in each.sink.sends]
        if wanted:
            self._send_output(wanted, ended, now_ns)

    def follow_rules(self) -> None:
        """These sinks from now on: one that has changed begins again."""
        sinks = self._record.site.telemetry.sinks
        with self._lock:
            known = {name: each.sink for name, each in self._channels.items()}
            if known == sinks:
                return
            gone = [name for name in known if known[name] != sinks.get(name)]
            closed = [self._channels.pop(name) for name in gone]
            for name, sink in sorted(sinks.items()):
                if name not in self._channels:
                    self._channels[name] = self._make(sink)
        for channel in closed:
            channel.close()

    def families(self, now: Instant) -> Iterator[Family]:
        """How sending goes: a source of metrics."""
        del now
        channels = self._all()
        yield names.LOGS_PUSHED.family(_points((each.sink.name, each.lines) for each in channels))
        yield names.METRICS_PUSHED.family(
            _points((each.sink.name, each.series) for each in channels)
        )
        yield names.OUTPUT_SKIPPED.family([Point((), self._tail.skipped_bytes)])

    def problems(self) -> tuple[str, ...]:
        """Sinks that do not take what they are sent, and what was lost by it."""
        return tuple(
            f"sink {each.sink.name}: {each.problem}; {each.lines['dropped']} log lines were lost"
            for each in self._all()
            if each.problem
        )

    def _all(self) -> tuple[Channel, ...]:
        with self._lock:
            return tuple(self._channels.values())

    def _run(self) -> None:
        while not self._is_closing:
            try:
                self.turn(time.time_ns())
            except Exception:
                log.exception("a mistake in following what jobs write")
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, TURN_S)
        self._keep_offsets()

    def _send_output(self, channels: Sequence[Channel], ended: Iterable[Held], now_ns: int) -> None:
        wanted = self._wanted(channels)
        over = [each for each in ended if each.job.spec.queue in wanted]
        found: dict[str, list[Line]] = {}
        for line in self._tail.turn(self._running(wanted), over, now_ns):
            found.setdefault(line.queue, []).append(line)
        for queue, lines in found.items():
            for channel in wanted.get(QueuePath(queue), ()):
                channel.put(lines)
        if time.monotonic() - self._kept_at > KEEP_EVERY_S:
            self._keep_offsets()

    def _wanted(self, channels: Sequence[Channel]) -> Mapping[QueuePath, tuple[Channel, ...]]:
        """Who is sent what jobs of a queue write; queues that nobody asks for are not in it."""
        queues = self._record.site.queues
        found = {
            path: tuple(
                each
                for each in channels
                if each.wants_output(path, is_private=is_private(queues, path))
            )
            for path in queues
        }
        return {path: those for path, those in found.items() if those}

    def _running(self, wanted: Collection[QueuePath]) -> dict[JobId, Held]:
        """Attempts that have begun and whose output somebody wants, the oldest first."""
        with self._record.lock:
            held = tuple(self._record.allocations.values())
            jobs = {each.job: self._record.jobs.get(each.job) for each in held}
        found: dict[JobId, Held] = {}
        for allocation in sorted(held, key=lambda each: (each.placed_at, each.job)):
            job = jobs[allocation.job]
            if job is not None and job.spec.queue in wanted and allocation.started_at is not None:
                found[job.id] = Held(job=job, allocation=allocation)
        return found

    def _read_offsets(self) -> Mapping[str, int]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):
            return {}

    def _keep_offsets(self) -> None:
        """What cannot be kept is no loss but that lines may be sent twice after a restart."""
        self._kept_at = time.monotonic()
        offsets = self._tail.offsets
        if offsets == self._kept:
            return
        new = self._file.with_name(f".{self._file.name}")
        try:
            new.write_bytes(msgspec.json.encode(offsets))
            new.replace(self._file)
        except OSError as error:
            log.warning("%s cannot be written (%s)", self._file, error.strerror)
        self._kept = offsets


def _points(counts: Iterable[tuple[str, Mapping[str, int]]]) -> tuple[Point, ...]:
    return tuple(
        Point((("sink", name), ("outcome", outcome)), count[outcome])
        for name, count in sorted(counts)
        for outcome in OUTCOMES
    )
