"""Rules about quota: what the job's queue, those above it and its class allow."""

from collections.abc import Iterable, Iterator

from muster.lifecycle.names import may_submit
from muster.lifecycle.refusal import AsksForNothing, Refusal, TooManySubmitted
from muster.lifecycle.submission import NodeKind, Submission, amount_in, options, submission
from muster.model.amounts import capacity_of, ceiling, measured
from muster.model.gpu import Device
from muster.model.job import Job, TaskGroup
from muster.model.placement import Placement
from muster.model.queue import (
    Ceiling,
    CeilingMeter,
    JobClass,
    Meter,
    Percent,
    Queue,
    Quota,
    Scope,
    Side,
    WhenFull,
    is_within,
    lineage,
)
from muster.model.reason import OverClassLimit, OverLimit
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, QueuePath, Value, replace
from muster.model.words import metered, placed


class QuotaBound(Value):
    """One quota line that bounds what may be held, its bound as a number."""

    queue: QueuePath
    scope: Scope
    limit: int


def asks_for_something(asked: Submission) -> Refusal | None:
    """Where there are quotas, a task must ask for something they could count."""
    if not any(queue.quotas for queue in asked.queues):
        return None
    for group in asked.spec.groups:
        each = group.each
        if each.gpus is None and not each.cpu_milli and not each.memory_mib:
            return Refusal(
                reason=AsksForNothing(group=group.name),
                advice=f"Group {group.name} asks for nothing, and queue {asked.spec.queue} has "
                "quotas. Say how much CPU, memory or GPU a task needs.",
            )
    return None


def queue_takes_more_jobs(asked: Submission) -> Refusal | None:
    for queue in asked.queues:
        if queue.max_submitted is None:
            continue
        if len(_jobs_in(asked.snapshot, queue)) >= queue.max_submitted:
            return Refusal(
                reason=TooManySubmitted(queue=queue.path, limit=queue.max_submitted),
                advice=f"Queue {queue.path} takes {queue.max_submitted} unfinished jobs and has as "
                "many. Submit again when one has ended, or cancel one.",
            )
    return None


def within_queue_limits(asked: Submission) -> Refusal | None:
    """A job that is larger than a limit could never run."""
    broken = _never_allowed(asked)
    if broken is None:
        return None
    advice = (
        f"Queue {broken.queue} allows {_spoken(broken.scope, broken.limit)}; "
        f"this job asks for {_spoken(broken.scope, broken.asked)}. Ask for fewer"
    )
    other = next(_roomier_queues(asked), None)
    return Refusal(reason=broken, advice=advice + (f", or use {other}." if other else "."))


def within_class_limits(asked: Submission) -> Refusal | None:
    broken = _over_class(asked, asked.job_class)
    if broken is None:
        return None
    scope = Scope(meter=Meter(broken.meter.value))
    return Refusal(
        reason=broken,
        advice=f"Class {broken.job_class} allows {_spoken(scope, broken.limit)} "
        f"for {broken.side} {broken.whose}; "
        f"this job asks for {_spoken(scope, broken.asked)}. Ask for fewer, or use another class.",
    )


def full_queues_refuse(asked: Submission) -> Refusal | None:
    """Queues that refuse when full count what is asked for, as Kubernetes does: running or not."""
    for queue in asked.queues:
        if queue.when_full is WhenFull.REFUSE and (broken := _over_now(asked, queue)):
            return Refusal(reason=broken, advice=_full(broken))
    return None


def _never_allowed(asked: Submission) -> OverLimit | None:
    """The line that the job breaks wherever it runs.

    A group runs in one pool on one model, so first each must have a kind of node where it breaks
    no line by itself; then all groups together must stay within each line.
    """
    lines = tuple(_lines(asked.snapshot, asked.queues))
    if not lines:
        return None
    allowed: list[tuple[TaskGroup, list[NodeKind]]] = []
    for group in asked.spec.groups:
        kinds = options(asked, group)
        broken = [_first_broken(lines, group, kind) for kind in kinds]
        left = [kind for kind, why in zip(kinds, broken, strict=True) if why is None]
        if kinds and not left:
            return broken[0]
        allowed.append((group, left))
    for line in lines:
        needed = sum(_lowest(line.scope, group, kinds, group.fewest) for group, kinds in allowed)
        if needed > line.limit:
            return _over(line, used=0, needed=needed)
    return None


def _first_broken(
    lines: Iterable[QuotaBound], group: TaskGroup, kind: NodeKind
) -> OverLimit | None:
    for line in lines:
        needed = amount_in(line.scope, group, kind, group.fewest)
        if needed > line.limit:
            return _over(line, used=0, needed=needed)
    return None


def _over(line: QuotaBound, *, used: int, needed: int) -> OverLimit:
    return OverLimit(queue=line.queue, scope=line.scope, limit=line.limit, used=used, asked=needed)


def _roomier_queues(asked: Submission) -> Iterator[QueuePath]:
    """Queues that the user may use and that would allow the job, the nearest in the tree first."""
    spec, snapshot = asked.spec, asked.snapshot
    above = set(lineage(spec.queue))

    def distance(path: QueuePath) -> tuple[int, bool, str]:
        return -len(above & set(lineage(path))), path in above, path

    for path in sorted(snapshot.queues, key=distance):
        there = submission(replace(spec, queue=path), snapshot, asked.kinds)
        if may_submit(snapshot, spec.user, path) and _never_allowed(there) is None:
            yield path


ClassBound = tuple[Side, str, Meter, int]
"""Whether a user's or a queue's, whose, of what, how much."""


def _over_class(asked: Submission, job_class: JobClass | None) -> OverClassLimit | None:
    if job_class is None:
        return None
    groups = asked.spec.groups
    for side, whose, meter, limit in _class_bounds(asked, job_class):
        needed = sum(_least(asked, Scope(meter=meter), each, each.fewest) for each in groups)
        if needed > limit:
            return OverClassLimit(
                job_class=job_class.name,
                side=side,
                whose=whose,
                meter=CeilingMeter(meter.value),
                limit=limit,
                used=0,
                asked=needed,
            )
    return None


def _class_bounds(asked: Submission, job_class: JobClass) -> Iterator[ClassBound]:
    for side, whose, most in (
        (Side.USER, asked.spec.user, job_class.per_user),
        (Side.QUEUE, asked.spec.queue, job_class.per_queue),
    ):
        for meter, limit in _bounds(most):
            yield side, whose, meter, limit


def _bounds(most: Ceiling) -> Iterator[tuple[Meter, int]]:
    for meter, limit in (
        (Meter.GPU, most.gpu_milli),
        (Meter.CPU, most.cpu_milli),
        (Meter.MEMORY, most.memory_mib),
    ):
        if limit is not None:
            yield meter, limit


def _over_now(asked: Submission, queue: Queue) -> OverLimit | None:
    jobs = _jobs_in(asked.snapshot, queue)
    groups = asked.spec.groups
    for line in _lines(asked.snapshot, [queue]):
        needed = sum(_least(asked, line.scope, group, group.count) for group in groups)
        used = sum(_asked_by(asked, job, line.scope) for job in jobs)
        # A job that takes nothing of what is full may come in.
        if needed and used + needed > line.limit:
            return _over(line, used=used, needed=needed)
    return None


def _full(broken: OverLimit) -> str:
    left = max(0, broken.limit - broken.used)
    fewer = f"Ask for at most {_spoken(broken.scope, left)}, or submit" if left else "Submit"
    return (
        f"Queue {broken.queue} allows {_spoken(broken.scope, broken.limit)}, and unfinished jobs "
        f"ask for {_spoken(broken.scope, broken.used)}; this job asks for "
        f"{_spoken(broken.scope, broken.asked)}. {fewer} again when some have ended."
    )


def _lines(snapshot: Snapshot, queues: Iterable[Queue]) -> Iterator[QuotaBound]:
    for queue in queues:
        for quota in queue.quotas:
            limit = ceiling(quota, _capacity(quota, snapshot))
            if limit is not None:
                yield QuotaBound(queue=queue.path, scope=quota.scope, limit=limit)


def _capacity(quota: Quota, snapshot: Snapshot) -> int:
    """What percentages are of; not counted where there are none, for that takes every node."""
    amounts = (quota.limit, quota.guaranteed, quota.borrow_limit)
    if not any(isinstance(amount, Percent) for amount in amounts):
        return 0
    return capacity_of(quota.scope, snapshot.nodes.values())


def _least(asked: Submission, scope: Scope, group: TaskGroup, tasks: int) -> int:
    return _lowest(scope, group, options(asked, group), tasks)


def _lowest(scope: Scope, group: TaskGroup, kinds: Iterable[NodeKind], tasks: int) -> int:
    """What the tasks take of the scope at least, wherever they land."""
    return min((amount_in(scope, group, kind, tasks) for kind in kinds), default=0)


def _jobs_in(snapshot: Snapshot, queue: Queue) -> list[Job]:
    return [job for job in snapshot.jobs.values() if is_within(job.spec.queue, queue.path)]


def _asked_by(asked: Submission, job: Job, scope: Scope) -> int:
    """What the job holds of the scope or, while it waits, what it will take at least."""
    if allocation := asked.snapshot.allocations.get(job.id):
        placements = allocation.placements
        return sum(measured(scope, each, _model(asked.snapshot, each)) for each in placements)
    theirs = submission(job.spec, asked.snapshot, asked.kinds)
    waiting = ((group, options(theirs, group)) for group in job.spec.groups)
    return sum(_lowest(scope, group, kinds, group.count) for group, kinds in waiting)


def _model(snapshot: Snapshot, placement: Placement) -> GpuModel | None:
    """The model that the task was given, or that its node has."""
    node = snapshot.nodes.get(placement.node)
    devices: dict[str, Device] = {each.id: each for each in node.devices} if node else {}
    given = [devices[share.device] for share in placement.devices if share.device in devices]
    return next((device.model for device in (*given, *devices.values())), None)


def _spoken(scope: Scope, amount: int) -> str:
    """`64 GPUs`, `512 GiB in pool a100`."""
    return metered(scope, amount) + placed(scope)
