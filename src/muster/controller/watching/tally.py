"""What became of jobs, counted for metrics: what is so now by queue, and how often what happened.

It follows the commits, and never holds one up: they are only remembered, and counted when somebody
asks or when the watching thread looks. So metrics cost nothing while a submission is answered, and
nobody goes through a hundred thousand jobs to tell how many there are.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import NamedTuple, TypeVar

from muster.controller.watching.late import LateJobs
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change
from muster.model.event import Event, JobPreempted, JobStarted, JobSubmitted
from muster.model.job import FINAL, HOLDING, WAITING, Job, JobState
from muster.model.placement import Allocation
from muster.model.value import DeviceId, Instant, JobId, NodeId, QueuePath, UserName, Value
from muster.stores.base import Batch
from muster.telemetry.histogram import WAITS_S, Histogram

MOST_REMEMBERED = 20_000
"""So many commits wait to be counted; then whoever commits counts them."""

_Key = TypeVar("_Key")

MOST_HISTOGRAMS = 100

End = tuple[QueuePath, JobState, str]


class Standing(Value):
    """What is so of one queue now, without the queues below it. waits: since when, by user."""

    states: Mapping[JobState, int] = {}
    used_milli: int = 0
    used_by: Mapping[UserName, int] = {}
    waiting_by: Mapping[UserName, int] = {}


class RoomTaken(NamedTuple):
    """What jobs have of a node beside GPUs. version: that of the last change to it."""

    cpu_milli: int = 0
    memory_mib: int = 0
    version: int = -1


NO_ROOM_TAKEN = RoomTaken()


class _Part:
    """The same while it is counted."""

    def __init__(self) -> None:
        self.states: Counter[JobState] = Counter()
        self.used_by: Counter[UserName] = Counter()
        self.waiting_by: Counter[UserName] = Counter()

    def count(self, job: Job, allocation: Allocation | None, times: int) -> None:
        if job.state in FINAL:
            return
        self.states[job.state] += times
        if job.state in WAITING:
            _change(self.waiting_by, job.spec.user, times)
        if allocation is not None and job.state in HOLDING:
            milli = sum(each.amount.gpu_milli for each in allocation.placements)
            _change(self.used_by, job.spec.user, times * milli)


class Durations:
    """Histograms by name, such as a queue's."""

    def __init__(self) -> None:
        self.of: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(WAITS_S))

    def summed(self, name: Callable[[str], str]) -> Iterator[tuple[str, Histogram]]:
        """Those of one name together; of too many names, the rest as `*`."""
        found: dict[str, Histogram] = {}
        for key, histogram in sorted(self.of.items()):
            called = name(key)
            if called not in found and len(found) >= MOST_HISTOGRAMS:
                called = "*"
            found.setdefault(called, Histogram(WAITS_S)).add(histogram)
        yield from found.items()


class Tally:
    """One for each process; `note` is called by those who commit, all else by whoever asks."""

    def __init__(self, record: Record) -> None:
        self.submitted: Counter[tuple[QueuePath, str]] = Counter()
        self.ended: Counter[End] = Counter()
        self.preempted: Counter[tuple[QueuePath, str]] = Counter()
        self.requeued: Counter[tuple[QueuePath, str]] = Counter()
        self.lost_gpu_ms: Counter[tuple[QueuePath, str]] = Counter()
        self.waits, self.starts = Durations(), Durations()
        self.runs, self.completions = Durations(), Durations()
        self._late = LateJobs(record)
        self._held_milli: Counter[DeviceId] = Counter()
        self._taken: dict[NodeId, RoomTaken] = {}
        self._record = record
        self._parts: defaultdict[QueuePath, _Part] = defaultdict(_Part)
        self._queue_of: dict[JobId, QueuePath] = {}
        self._new: deque[tuple[Batch, tuple[Change, ...]]] = deque()
        self._lock = Lock()

    def begin(self) -> None:
        """Begin with what there is; for the thread that commits, so that nothing comes between."""
        with self._lock:
            self._new.clear()
            self._parts.clear()
            self._held_milli.clear()
            self._taken.clear()
            self._late.forget()
            for job in tuple(self._record.jobs.values()):
                allocation = self._record.allocations.get(job.id)
                self._count(job, allocation, 1, self._record.version)
                self._late.follow(job, allocation)

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """Something was committed."""
        if changes or batch.events:
            self._new.append((batch, changes))
            if len(self._new) > MOST_REMEMBERED:
                self.catch_up()

    def catch_up(self) -> None:
        """Count what was committed until now."""
        with self._lock:
            while self._new:
                batch, changes = self._new.popleft()
                for change in changes:
                    self._follow(change, batch.version)
                self._happened(batch, {change.after.id: change for change in changes})

    def standing(self) -> Mapping[QueuePath, Standing]:
        """Every queue in which there are jobs."""
        self.catch_up()
        with self._lock:
            return {
                path: Standing(
                    states=dict(part.states),
                    used_milli=sum(part.used_by.values()),
                    used_by=dict(part.used_by),
                    waiting_by=dict(part.waiting_by),
                )
                for path, part in sorted(self._parts.items())
            }

    def held(self) -> Mapping[DeviceId, int]:
        """How much of each device is held, in thousandths; none of it where it is not there."""
        self.catch_up()
        with self._lock:
            return dict(self._held_milli)

    def taken(self) -> Mapping[NodeId, RoomTaken]:
        """What jobs have of nodes beside GPUs, suspended ones too."""
        self.catch_up()
        with self._lock:
            return dict(self._taken)

    def late_by_queue(self, now: Instant) -> Mapping[QueuePath, int]:
        """How many running jobs take longer than they should."""
        self.catch_up()
        with self._lock:
            return self._late.by_queue(now)

    def _follow(self, change: Change, version: int) -> None:
        if change.before is not None:
            self._count(change.before, change.held, -1, version)
        self._count(change.after, change.holds, 1, version)
        self._late.follow(change.after, change.holds)

    def _count(self, job: Job, allocation: Allocation | None, times: int, version: int) -> None:
        self._parts[job.spec.queue].count(job, allocation, times)
        if allocation is None:
            return
        is_held = job.state in HOLDING
        for placement in allocation.placements:
            amount, taken = placement.amount, self._taken.get(placement.node, NO_ROOM_TAKEN)
            self._taken[placement.node] = RoomTaken(
                taken.cpu_milli + times * amount.cpu_milli,
                taken.memory_mib + times * amount.memory_mib,
                version,
            )
            for share in placement.devices if is_held else ():
                milli = amount.gpu_milli // len(placement.devices)
                _change(self._held_milli, share.device, times * milli)

    def _happened(self, batch: Batch, changes: Mapping[JobId, Change]) -> None:
        for event in batch.events:
            self._count_event(event, changes)
        for ended in batch.ended:
            job = ended.job
            queue, why = job.spec.queue, job.why
            self.ended[queue, job.state, "" if why is None else tag_of(why)] += 1
            self.completions.of[queue].observe(_seconds(job.submitted_at, ended.ended_at))
            if ended.started_at is not None:
                self.runs.of[queue].observe(_seconds(ended.started_at, ended.ended_at))
        for attempt in batch.attempts:
            if attempt.job in changes:
                job = changes[attempt.job].after
                why = "" if attempt.why is None else tag_of(attempt.why)
                if job.state not in FINAL:
                    self.requeued[job.spec.queue, why] += 1
                if attempt.lost_gpu_ms:
                    self.lost_gpu_ms[job.spec.queue, why] += attempt.lost_gpu_ms

    def _count_event(self, event: Event, changes: Mapping[JobId, Change]) -> None:
        if isinstance(event, JobSubmitted):
            self.submitted[event.spec.queue, event.door] += 1
        elif isinstance(event, JobPreempted) and event.job in changes:
            job = changes[event.job].after
            self.preempted[job.spec.queue, str(event.mode)] += 1
        elif isinstance(event, JobStarted) and event.job in changes:
            self._count_start(event, changes[event.job])

    def _count_start(self, event: JobStarted, change: Change) -> None:
        job, allocation = change.after, change.holds or change.held
        if event.attempt == 1:
            self.waits.of[job.spec.queue].observe(_seconds(job.submitted_at, event.at))
        if allocation is not None:
            for pool in sorted({each.pool for each in allocation.placements}):
                self.starts.of[pool].observe(_seconds(allocation.placed_at, event.at))


def tag_of(reason: object) -> str:
    """What a typed reason is called where machines read it, such as `no_room`."""
    return str(getattr(reason, "__struct_config__").tag)  # noqa: B009 -- of any struct


def _change(counter: Counter[_Key], key: _Key, by: int) -> None:
    """What came to nothing is not kept."""
    counter[key] += by
    if not counter[key]:
        del counter[key]


def _seconds(begin: Instant, end: Instant) -> float:
    return (end - begin) / 1_000
