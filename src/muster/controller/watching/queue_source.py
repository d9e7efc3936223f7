"""Metrics of jobs and queues: from what was counted, the rules, and the last plan."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import add
from typing import Generic, TypeVar

from muster.controller.loop.controller import LastPlan
from muster.controller.watching.queue_names import QueueNames
from muster.controller.watching.tally import End, Standing, Tally, tag_of
from muster.controller.world.record import Record
from muster.model.amounts import capacity_of, ceiling, resolved
from muster.model.cluster import Node
from muster.model.job import FINAL, WAITING, Job, JobState
from muster.model.queue import Meter, PreemptMode, Queue, Scope, lineage
from muster.model.reason import NoRoom
from muster.model.value import Instant, QueuePath, Value
from muster.telemetry import names
from muster.telemetry.family import Family, Labels, Point
from muster.telemetry.names import Metric

_Key = TypeVar("_Key", QueuePath, tuple[QueuePath, str], tuple[QueuePath, JobState], End)

_Bounds = Mapping[QueuePath, tuple[int, int | None]]

LIVE = tuple(state for state in JobState if state not in FINAL)

USUAL_ENDS = (
    (JobState.COMPLETED, "exited"),
    (JobState.FAILED, "exited"),
    (JobState.FAILED, "out_of_memory"),
    (JobState.FAILED, "timed_out"),
    (JobState.FAILED, "node_failed"),
    (JobState.CANCELLED, "cancelled"),
)
"""Counters are there before the first of these: what is born at 1 never seems to grow."""

DOORS = ("cli", "kubernetes", "rest", "slurm")
USUAL_RETURNS = ("exited", "node_failed", "preempted", "requeued")
"""Why attempts are over that are not the last of their jobs."""

DEEPEST_HISTOGRAM = 2


class _Waiting(Value):
    """What the last plan says of those who wait, by queue."""

    by_reason: Mapping[tuple[QueuePath, str], int] = {}
    ready_milli: Mapping[QueuePath, int] = {}
    oldest: Mapping[QueuePath, Instant] = {}


class _Born(Value, Generic[_Key]):
    """What is told of queues before anything happened in them, beside the labels of each."""

    zeros: Mapping[_Key, int]
    labels: tuple[Labels, ...]


class _BornOf(Value):
    """All of that for the queues that have names of their own, which they keep."""

    queues: _Born[QueuePath]
    states: _Born[tuple[QueuePath, JobState]]
    doors: _Born[tuple[QueuePath, str]]
    again: _Born[tuple[QueuePath, str]]
    modes: _Born[tuple[QueuePath, str]]
    ends: _Born[End]


class QueueSource:
    """What is so of queues now."""

    def __init__(
        self, record: Record, tally: Tally, last_plan: LastPlan, queue_names: QueueNames
    ) -> None:
        self._record = record
        self._tally = tally
        self._last_plan = last_plan
        self._names = queue_names
        # Of which plan it was worked out, and what.
        self._waiting: tuple[int, _Waiting] = (-1, _Waiting())
        # Made once for those queues, because there may be many.
        self._born: tuple[tuple[QueuePath, ...], _BornOf] = ((), _born_of(()))
        # Of which nodes and rules it was worked out, and what.
        self._bounds: tuple[int, object, _Bounds] = (-1, None, {})

    def __call__(self, now: Instant) -> Iterator[Family]:
        standing = self._tally.standing()
        self._admit(standing)
        born = self._before_anything()
        yield from self._of_states(born, standing)
        yield from self._of_counters(born)
        yield from self._of_histograms()
        yield from self._of_waits(born, standing, now)
        yield from self._of_quotas(born, standing)
        yield self._plain(names.JOBS_LATE, born, self._tally.late_by_queue(now))

    def _admit(self, standing: Mapping[QueuePath, Standing]) -> None:
        wanted = {path: sum(each.states.values()) for path, each in standing.items()}
        self._names.admit({*self._record.site.queues, *standing}, wanted)

    def _before_anything(self) -> _BornOf:
        own = self._names.own()
        if self._born[0] is not own:
            self._born = (own, _born_of(own))
        return self._born[1]

    def _of_states(self, born: _BornOf, standing: Mapping[QueuePath, Standing]) -> Iterator[Family]:
        counts = {
            (path, state): count
            for path, each in standing.items()
            for state, count in each.states.items()
        }
        yield self._told(names.JOBS, born.states, counts, "state")

    def _of_counters(self, born: _BornOf) -> Iterator[Family]:
        tally = self._tally
        yield self._told(names.SUBMITTED, born.doors, tally.submitted, "door")
        yield self._told(names.REQUEUES, born.again, tally.requeued, "reason")
        lost = {key: ms / 1_000 for key, ms in tally.lost_gpu_ms.items()}
        yield self._told(names.LOST, born.again, lost, "reason")
        yield self._told(names.PREEMPTIONS, born.modes, tally.preempted, "reason")
        yield self._told(names.ENDED, born.ends, tally.ended, "state", "reason")

    def _of_histograms(self) -> Iterator[Family]:
        tally = self._tally
        for metric, durations in (
            (names.WAIT_SECONDS, tally.waits),
            (names.RUN_SECONDS, tally.runs),
            (names.COMPLETION_SECONDS, tally.completions),
        ):
            found = durations.summed(_histogram_name)
            yield metric.family(
                point for name, histogram in found for point in histogram.points((("queue", name),))
            )
        starts = tally.starts.summed(str)
        yield names.STARTING_SECONDS.family(
            point for name, histogram in starts for point in histogram.points((("pool", name),))
        )

    def _of_waits(
        self, born: _BornOf, standing: Mapping[QueuePath, Standing], now: Instant
    ) -> Iterator[Family]:
        waiting = self._looked_at_waits()
        yield self._told(names.JOBS_WAITING, _NONE_BORN, waiting.by_reason, "reason")
        ready = {path: milli / 1_000 for path, milli in waiting.ready_milli.items()}
        yield self._plain(names.READY_GPUS, born, ready)
        oldest = {path: (now - at) / 1_000 for path, at in waiting.oldest.items()}
        yield self._told(names.OLDEST_WAIT, born.queues, oldest, together=max)
        users = {path: len(each.waiting_by) for path, each in standing.items()}
        yield self._plain(names.WAITING_USERS, born, users)
        top = {
            path: max(each.used_by.values()) / each.used_milli
            for path, each in standing.items()
            if each.used_milli
        }
        yield self._told(names.TOP_USER, _NO_QUEUE_BORN, top, together=max)

    def _of_quotas(self, born: _BornOf, standing: Mapping[QueuePath, Standing]) -> Iterator[Family]:
        """With what is below each counted in, as quotas count it."""
        used: Counter[QueuePath] = Counter()
        for path, each in standing.items():
            for above in lineage(path):
                used[above] += each.used_milli
        own = born.queues.zeros
        quotas = {path: each for path, each in self._quotas().items() if path in own}
        limits = {path: most for path, (_, most) in quotas.items() if most is not None}
        rows = (
            (names.GUARANTEED_GPUS, {path: mine for path, (mine, _) in quotas.items()}),
            (names.LIMIT_GPUS, limits),
            (
                names.BORROWED_GPUS,
                {path: max(0, used[path] - mine) for path, (mine, _) in quotas.items()},
            ),
        )
        held = {path: milli / 1_000 for path, milli in used.items() if path in own}
        yield self._plain(names.USED_GPUS, born, held)
        for metric, milli in rows:
            gpus = {path: each / 1_000 for path, each in milli.items()}
            yield self._told(metric, _NO_QUEUE_BORN, gpus)

    def _quotas(self) -> _Bounds:
        """Of queues that have a quota on GPUs of all kinds together: their own, and the limit."""
        queues = self._record.site.queues
        with self._record.lock:
            version = self._record.nodes_version
            is_known = self._bounds[0] == version and self._bounds[1] is queues
            nodes = () if is_known else tuple(self._record.nodes.values())
        if not is_known:
            self._bounds = (version, queues, _quotas(queues, nodes))
        return self._bounds[2]

    def _looked_at_waits(self) -> _Waiting:
        number = self._last_plan.number
        if self._waiting[0] != number:
            self._waiting = (number, _waiting(self._record, self._last_plan))
        return self._waiting[1]

    def _plain(self, metric: Metric, born: _BornOf, values: Mapping[QueuePath, float]) -> Family:
        return self._told(metric, born.queues, values)

    def _told(
        self,
        metric: Metric,
        born: _Born[_Key],
        values: Mapping[_Key, float],
        *more: str,
        together: Callable[[float, float], float] = add,
    ) -> Family:
        """Queues that have no name of their own are told together."""
        every = {**born.zeros, **values}
        points = [
            Point(labels, _whole(value))
            for labels, value in zip(born.labels, every.values(), strict=False)
        ]
        rest: dict[Labels, float] = {}
        for key in islice(every, len(born.labels), None):
            path, words = (key, ()) if isinstance(key, str) else (key[0], key[1:])
            named = zip(more, words, strict=True)
            labels = (("queue", self._names.name(path)), *named)
            rest[labels] = together(rest.get(labels, 0), every[key])
        points.extend(Point(labels, _whole(value)) for labels, value in sorted(rest.items()))
        return metric.family(points)


def _whole(value: float) -> float:
    """Whole numbers are shown as such."""
    whole = int(value)
    return whole if value == whole else value


def _histogram_name(path: str) -> str:
    """Histograms have many series: they are of queues near the root."""
    return "/".join(path.split("/")[:DEEPEST_HISTOGRAM])


def _born_of(own: tuple[QueuePath, ...]) -> _BornOf:
    return _BornOf(
        queues=_Born(zeros=dict.fromkeys(own, 0), labels=tuple((("queue", path),) for path in own)),
        states=_born([(path, state) for path in own for state in LIVE], "state"),
        doors=_born([(path, door) for path in own for door in DOORS], "door"),
        again=_born([(path, why) for path in own for why in USUAL_RETURNS], "reason"),
        modes=_born([(path, str(mode)) for path in own for mode in PreemptMode], "reason"),
        ends=_born([(path, *end) for path in own for end in USUAL_ENDS], "state", "reason"),
    )


def _born(keys: Sequence[_Key], *more: str) -> _Born[_Key]:
    labels = ((("queue", key[0]), *zip(more, key[1:], strict=True)) for key in keys)
    return _Born(zeros=dict.fromkeys(keys, 0), labels=tuple(labels))


_NONE_BORN: _Born[tuple[QueuePath, str]] = _Born(zeros={}, labels=())
_NO_QUEUE_BORN: _Born[QueuePath] = _Born(zeros={}, labels=())


def _quotas(queues: Mapping[QueuePath, Queue], nodes: Sequence[Node]) -> _Bounds:
    scope = Scope(meter=Meter.GPU)
    quotas = {
        path: quota
        for path, queue in queues.items()
        for quota in queue.quotas
        if quota.scope == scope
    }
    capacity = capacity_of(scope, nodes) if quotas else 0
    return {
        path: (resolved(quota.guaranteed, capacity), ceiling(quota, capacity))
        for path, quota in quotas.items()
    }


def _waiting(record: Record, last_plan: LastPlan) -> _Waiting:
    waits = last_plan.waits
    with record.lock:
        jobs = {job: record.jobs[job] for job in waits if job in record.jobs}
    reasons: Counter[tuple[QueuePath, str]] = Counter()
    ready: Counter[QueuePath] = Counter()
    oldest: dict[QueuePath, Instant] = {}
    for job_id, wait in waits.items():
        job = jobs.get(job_id)
        if job is None or job.state not in WAITING:
            continue
        queue = job.spec.queue
        reasons[queue, tag_of(wait.why)] += 1
        if isinstance(wait.why, NoRoom):
            ready[queue] += _asked_milli(job)
        oldest[queue] = min(oldest.get(queue, job.submitted_at), job.submitted_at)
    return _Waiting(by_reason=dict(reasons), ready_milli=dict(ready), oldest=oldest)


def _asked_milli(job: Job) -> int:
    return sum(
        group.count * group.each.gpus.count * 1_000
        for group in job.spec.groups
        if group.each.gpus is not None and group.each.gpus.slice is None
    )
