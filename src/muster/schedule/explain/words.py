"""Decisions and alternatives in plain words and in units that users know."""

from collections.abc import Iterable

from muster.model.amounts import capacity_of, measured, resolved
from muster.model.cluster import Ability
from muster.model.explanation import (
    AnyNode,
    AnyPool,
    AsSlice,
    Change,
    FewerGpus,
    FewerTasks,
    NoTopology,
    OffSpot,
    OnSpot,
    OtherModel,
    OtherQueue,
    Shorter,
)
from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.placement import Placement
from muster.model.plan import Clear, Decision, NoEstimate, Resume, Start, Wait
from muster.model.queue import Quota, is_within
from muster.model.reason import BorrowedOut, ForOthers, NeverFits, NoRoom, told
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, Instant, JobId, QueuePath
from muster.model.words import (
    Labels,
    counted,
    either,
    gpus,
    group_of,
    jobs_listed,
    listed,
    metered,
    slice_in_words,
    span,
    when,
)
from muster.schedule.state.books import model_of


def decided(decision: Decision, job: Job, snapshot: Snapshot) -> str:
    """What becomes of the job, and where or why."""
    match decision:
        case Start(placements=placements):
            return f"Starts now on {where(placements)}."
        case Resume():
            return "Goes on now, where it was suspended."
        case Clear(placements=placements, victims=victims, until=until):
            others = jobs_listed(victims, _labels(victims, snapshot))
            due = when(until, snapshot.now)
            return f"Starts {due}, when room is made by {others}, on {where(placements)}."
        case Wait(why=BorrowedOut() as why):
            return why.sentence(job.spec, snapshot.now) + _kept_by_others(why, snapshot)
        case Wait(why=NoRoom() | NeverFits() as why):
            return why.sentence(job.spec, snapshot.now) + _left_out(job.spec, snapshot)
        case Wait(why=why):
            named = why.names if isinstance(why, ForOthers) else ()
            return told(why, job.spec, snapshot.now, _labels(named, snapshot))


def _labels(jobs: Iterable[JobId], snapshot: Snapshot) -> Labels:
    known = snapshot.jobs
    return {each: known[each].label for each in jobs if each in known}


LACKING = {
    Ability.COMMANDS: "runs only jobs that name an image",
    Ability.IMAGES: "runs no images",
    Ability.IMAGE_FILES: "runs no files of images",
    Ability.PODS: "runs no pods of Muster's Kubernetes API",
    Ability.POD_GANGS: "runs no pods that start together",
    Ability.CONTAINERS: "runs one container in a pod, and none before it",
    Ability.VOLUMES: "mounts no volumes in pods",
    Ability.HOST_PATHS: "mounts no folders of its nodes in pods",
    Ability.TOKENS: "gives pods no tokens of service accounts",
    Ability.PROBES: "has no probes and hooks of containers",
    Ability.STOP_SIGNALS: "ends containers with SIGTERM alone",
    Ability.CHECKPOINT_PROBES: "does not look for checkpoints to say that a pod is ready",
    Ability.ENTRYPOINTS: "runs a container only where the pod says its command",
    Ability.POD_ADDRESSES: "tells a container nothing of its node or of addresses",
    Ability.POD_USERS: "runs pods only as the user whose they are",
    Ability.POD_INPUT: "lets nobody type into containers",
    Ability.TERMINALS: "has no terminals for jobs",
    Ability.STEPS: "starts no steps of ours",
    Ability.ADOPTION: "places no pods that its users made",
}


def _left_out(spec: JobSpec, snapshot: Snapshot) -> str:
    """` Cluster big is left out: it runs no images.`, for those that it might use otherwise."""
    clusters = {pool.cluster for pool in snapshot.pools.values()}
    if spec.pools:
        clusters = {snapshot.pools[each].cluster for each in spec.pools if each in snapshot.pools}
    told = [
        f" Cluster {name} is left out: it {LACKING[lacking]}."
        for name, cluster in sorted(snapshot.clusters.items())
        if name in clusters and (not spec.clusters or name in spec.clusters)
        if (lacking := cluster.abilities.lacking(spec.takes)) is not None
    ]
    return "".join(told)


def _kept_by_others(why: BorrowedOut, snapshot: Snapshot) -> str:
    """`2 free GPUs are kept for research/nlp.`: what other queues have and do not lend."""
    told = [
        f"{metered(why.scope, kept)} are kept for {path}"
        for path, queue in sorted(snapshot.queues.items())
        if not is_within(why.queue, path) and not is_within(path, why.queue)
        for line in queue.quotas
        if line.scope == why.scope and (kept := _not_lent(line, path, snapshot)) > 0
    ]
    return f" {listed(told)}, and are not lent." if told else ""


def _not_lent(line: Quota, path: QueuePath, snapshot: Snapshot) -> int:
    """What of its guarantee a queue neither uses nor lends."""
    if line.lend_limit is None:
        return 0
    capacity = capacity_of(line.scope, snapshot.nodes.values())
    used = sum(
        measured(line.scope, each, model_of(each, snapshot.nodes))
        for held in snapshot.allocations.values()
        if held.job in snapshot.jobs and is_within(snapshot.jobs[held.job].spec.queue, path)
        for each in held.placements
    )
    return resolved(line.guaranteed, capacity) - used - resolved(line.lend_limit, capacity)


def suggestion(change: Change, spec: JobSpec, outlook: str) -> str:
    """`With 4 GPUs instead of 8 it`, and what becomes of it then."""
    return f"{_changed(change, spec)} it {outlook}."


def outlook(expected: Instant | NoEstimate, now: Instant) -> str:
    """`is expected to start in 2h`, or why that is unknown."""
    match expected:
        case NoEstimate.HELD:
            return "starts when it is released"
        case NoEstimate.DEPENDENCY:
            return "starts after the job that it depends on"
        case NoEstimate.NEVER:
            return "cannot start as it is"
        case NoEstimate.UNBOUNDED:
            return "starts nobody knows when, because jobs ahead have no time limit"
        case int():
            return f"is expected to start {when(expected, now)}"


def where(placements: Iterable[Placement]) -> str:
    """`n1 with 8 GPUs`, `n1, n2, n3 and 9 more with 96 GPUs`."""
    held = tuple(placements)
    nodes = listed(sorted({each.node for each in held}))
    milli = sum(each.amount.gpu_milli for each in held)
    return f"{nodes} with {gpus(milli)}" if milli else nodes


def _changed(change: Change, spec: JobSpec) -> str:
    match change:
        case FewerGpus() | FewerTasks() | OtherModel() | AsSlice() | Shorter():
            return _asking_else(change, spec)
        case OnSpot() | OffSpot() | NoTopology() | AnyNode() | AnyPool() | OtherQueue():
            return _going_elsewhere(change, spec)


def _asking_else(
    change: FewerGpus | FewerTasks | OtherModel | AsSlice | Shorter, spec: JobSpec
) -> str:
    match change:
        case FewerGpus() | FewerTasks():
            return _smaller(change, spec)
        case OtherModel(model=model):
            return f"On {model} instead of {either(_models(spec))}"
        case AsSlice(slice=part):
            return f"With a {slice_in_words(part)} instead of a whole GPU"
        case Shorter(time_limit=limit):
            return f"With a time limit of {span(limit)}"


def _going_elsewhere(
    change: OnSpot | OffSpot | NoTopology | AnyNode | AnyPool | OtherQueue, spec: JobSpec
) -> str:
    match change:
        case OnSpot():
            return "On spot capacity"
        case OffSpot():
            return "On capacity other than spot"
        case NoTopology():
            return f"Spread over more than one {either(_levels(spec))}"
        case AnyNode():
            return "Without its rules about nodes"
        case AnyPool():
            return f"In any pool instead of {either((*spec.pools, *spec.clusters))}"
        case OtherQueue(queue=queue):
            return f"In queue {queue} instead of {spec.queue}"


def _smaller(change: FewerGpus | FewerTasks, spec: JobSpec) -> str:
    group = group_of(change.group, spec) or TaskGroup()
    inside = f" in group {group.name}" if len(spec.groups) > 1 else ""
    if isinstance(change, FewerTasks):
        return f"With {counted(change.tasks, 'task')} instead of {group.fewest}{inside}"
    count = 0 if group.each.gpus is None else group.each.gpus.count
    per_task = " per task" if group.count > 1 else ""
    return f"With {counted(change.gpus, 'GPU')}{per_task} instead of {count}{inside}"


def _models(spec: JobSpec) -> tuple[GpuModel, ...]:
    asked = (group.each.gpus for group in spec.groups)
    return tuple(dict.fromkeys(model for gpus in asked if gpus for model in gpus.models))


def _levels(spec: JobSpec) -> tuple[str, ...]:
    wishes = (group.together for group in spec.groups)
    return tuple(dict.fromkeys(each.level for each in wishes if each and each.required))
