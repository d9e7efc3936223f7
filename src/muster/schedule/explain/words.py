"""Decisions, reasons and alternatives in plain words and in units that users know."""

from collections.abc import Iterable

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
from muster.model.gpu import GpuAsk, Mig, MpsShare, Slice, TimeShare
from muster.model.job import Ask, DependencyKind, HeldBy, Job, JobSpec, TaskGroup
from muster.model.placement import Placement
from muster.model.plan import (
    ArrayFull,
    Behind,
    BorrowedOut,
    Clear,
    Decision,
    DependsOn,
    MakingRoom,
    MissesDeadline,
    NeverFits,
    NoEstimate,
    NoRoom,
    NoSuchClass,
    NoSuchPool,
    NoSuchQueue,
    NotBefore,
    OverClassLimit,
    OverLimit,
    ReservationClosed,
    Reserved,
    Resume,
    Start,
    TooLong,
    TooManyJobs,
    Wait,
    WaitingToResume,
    WaitReason,
)
from muster.model.queue import CeilingMeter
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, Instant, JobId
from muster.model.words import cores, counted, gpus, listed, memory, metered, percent, placed, span
from muster.schedule.state.accounts import WITHOUT_END


def decided(decision: Decision, job: Job, snapshot: Snapshot) -> str:
    """What becomes of the job, and where or why."""
    match decision:
        case Start(placements=placements):
            return f"Starts now on {where(placements)}."
        case Resume():
            return "Goes on now, where it was suspended."
        case Clear(placements=placements, victims=victims, until=until):
            due, others = when(until, snapshot.now), _jobs(victims)
            return f"Starts {due}, when room is made by {others}, on {where(placements)}."
        case Wait(why=why):
            return sentence(why, job, snapshot)


def sentence(why: WaitReason, job: Job, snapshot: Snapshot) -> str:
    """Why the job waits."""
    match why:
        case NoRoom() | NeverFits() | NoSuchPool() | MakingRoom() | WaitingToResume():
            return _about_room(why, job.spec)
        case OverLimit() | BorrowedOut() | OverClassLimit() | TooManyJobs() | ArrayFull():
            return _about_limits(why)
        case TooLong() | Behind() | NotBefore() | MissesDeadline():
            return _about_time(why, snapshot.now)
        case Reserved() | ReservationClosed():
            return _about_reservation(why, snapshot.now)
        case DependsOn():
            return _about_dependency(why)
        case HeldBy(user=user):
            return f"Held by {user} until it is released."
        case NoSuchQueue() | NoSuchClass():
            return _about_what_is_gone(why)


def suggestion(change: Change, spec: JobSpec, outlook: str) -> str:
    """`With 4 GPUs instead of 8 it`, and what becomes of it then."""
    return f"{_changed(change, spec)} it {outlook}."


def when(at: Instant, now: Instant) -> str:
    """`now`, `in 2h 30m`, `10m ago`."""
    if at == now:
        return "now"
    return f"in {span(at - now)}" if at > now else f"{span(now - at)} ago"


def outlook(expected: Instant | NoEstimate, now: Instant) -> str:
    """`is expected to start in 2h`, or why nobody can say when."""
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


def _about_room(
    why: NoRoom | NeverFits | NoSuchPool | MakingRoom | WaitingToResume, spec: JobSpec
) -> str:
    match why:
        case NoRoom():
            return _no_room(why, spec)
        case NeverFits():
            return _never_fits(why, spec)
        case NoSuchPool(name=name):
            return f"{name}, where it wants to run, does not exist, is closed or cannot be reached."
        case MakingRoom(victims=victims):
            return f"Starts when room that is held for it is left by {_jobs(victims)}."
        case WaitingToResume(node=None):
            return "Suspended, and the room that it left is gone."
        case WaitingToResume(node=node):
            return f"Suspended: the room that it left on {node} is in use."


def _no_room(why: NoRoom, spec: JobSpec) -> str:
    needed = _needed(why, spec)
    if not why.nodes:
        return f"Needs {needed}; no node that it may use is up."
    if why.wanted > 1:
        fit = why.placed or "none"
        nodes = counted(why.nodes, "usable node")
        return f"Needs {needed}; there is room for {fit} of them now on {nodes}."
    if why.nodes == 1:
        return f"Needs {needed}; the only usable node does not have that free."
    return f"Needs {needed}; none of {why.nodes} usable nodes has that free."


def _never_fits(why: NeverFits, spec: JobSpec) -> str:
    needed = _needed(why, spec)
    if not why.at_most:
        return f"Needs {needed}; no node that it may use has that much, even empty."
    return f"Needs {needed}; the nodes that it may use have room for {why.at_most}, even empty."


def _needed(why: NoRoom | NeverFits, spec: JobSpec) -> str:
    each = _group_ask(why.group, spec)
    if why.wanted == 1:
        return f"{each} on one node"
    group = _group(why.group, spec)
    together = group.together if group is not None else None
    near = f" in one {together.level}" if together is not None and together.required else ""
    return f"{counted(why.wanted, 'task')} at once{near}, each with {each}"


def _about_limits(
    why: OverLimit | BorrowedOut | OverClassLimit | TooManyJobs | ArrayFull,
) -> str:
    match why:
        case OverLimit(queue=queue, scope=scope):
            most = metered(scope, why.limit) + placed(scope)
            used, asked = metered(scope, why.used), metered(scope, why.asked)
            return (
                f"Queue {queue} may hold {most} at once; "
                f"it holds {used}, and this job asks for {asked}."
            )
        case BorrowedOut(queue=queue, scope=scope):
            left = metered(scope, why.available) + placed(scope)
            asked = metered(scope, why.asked)
            return f"Queue {queue} may use or borrow {left} more; this job asks for {asked}."
        case OverClassLimit():
            return _over_class_limit(why)
        case TooManyJobs(queue=queue, limit=limit):
            return f"Queue {queue} may run {counted(limit, 'job')} at once, and does."
        case ArrayFull(array=array, at_once=at_once):
            return f"Array {array} may run {counted(at_once, 'job')} at once, and does."


def _over_class_limit(why: OverClassLimit) -> str:
    most, used, asked = (_of(why.meter, each) for each in (why.limit, why.used, why.asked))
    return (
        f"Jobs of class {why.job_class} may hold {most} at once for {why.whose}; "
        f"they hold {used}, and this one asks for {asked}."
    )


def _of(meter: CeilingMeter, amount: int) -> str:
    scope = meter.scope
    return counted(amount, "job") if scope is None else metered(scope, amount)


def _about_time(why: TooLong | Behind | NotBefore | MissesDeadline, now: Instant) -> str:
    match why:
        case TooLong(asked=asked, allowed=allowed):
            wants = "Has no time limit" if asked >= WITHOUT_END else f"Asks for {span(asked)}"
            return f"{wants}; its class and the pools that suit it allow {span(allowed)}."
        case Behind(job=first, starts_at=at):
            due = when(at, now)
            return f"Fits now, but would still run when the room is due to job {first}, {due}."
        case NotBefore(at=at):
            return f"May not begin before its time, {when(at, now)}."
        case MissesDeadline(deadline=at):
            due = when(at, now)
            return f"Could not end by its deadline, {due}, even if it started now."


def _about_what_is_gone(why: NoSuchQueue | NoSuchClass) -> str:
    match why:
        case NoSuchQueue(queue=queue):
            return f"Queue {queue} does not exist any more: the job must go to another."
        case NoSuchClass(job_class=name):
            return f"Class {name} does not exist any more: the job must have another."


def _about_reservation(why: Reserved | ReservationClosed, now: Instant) -> str:
    name = why.reservation
    match why:
        case Reserved(begins_at=at) if at > now:
            due = when(at, now)
            return f"Fits now, but would still run when reservation {name} begins, {due}."
        case Reserved():
            return f"The room that would suit it is kept by reservation {name}."
        case ReservationClosed(begins_at=at) if at > now:
            return f"Its reservation {name} begins {when(at, now)}."
        case ReservationClosed(ends_at=at):
            state = "is over" if at <= now else "is not for it"
            return f"Its reservation {name} {state}: the job must ask for another, or for none."


def _about_dependency(why: DependsOn) -> str:
    other = "another job" if why.job is None else f"job {why.job}"
    match why.kind:
        case DependencyKind.AFTER:
            event = "has started"
        case DependencyKind.AFTER_OK:
            event = "has completed"
        case DependencyKind.AFTER_NOT_OK:
            event = "has failed or was cancelled"
        case DependencyKind.AFTER_ANY:
            event = "has ended"
        case DependencyKind.SINGLETON:
            event = "of the same name has ended"
    else_ = f" or another of its {why.ways} conditions is met" if why.ways > 1 else ""
    never = ", which can no longer happen" if why.never else ""
    return f"Waits until {other} {event}{else_}{never}."


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
            return f"On {model} instead of {_either(_models(spec))}"
        case AsSlice(slice=part):
            return f"With a {_slice(part)} instead of a whole GPU"
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
            return f"Spread over more than one {_either(_levels(spec))}"
        case AnyNode():
            return "Without its rules about nodes"
        case AnyPool():
            return f"In any pool instead of {_either((*spec.pools, *spec.clusters))}"
        case OtherQueue(queue=queue):
            return f"In queue {queue} instead of {spec.queue}"


def _smaller(change: FewerGpus | FewerTasks, spec: JobSpec) -> str:
    group = _group(change.group, spec) or TaskGroup()
    inside = f" in group {group.name}" if len(spec.groups) > 1 else ""
    if isinstance(change, FewerTasks):
        return f"With {counted(change.tasks, 'task')} instead of {group.fewest}{inside}"
    count = 0 if group.each.gpus is None else group.each.gpus.count
    per_task = " per task" if group.count > 1 else ""
    return f"With {counted(change.gpus, 'GPU')}{per_task} instead of {count}{inside}"


def _group_ask(name: str, spec: JobSpec) -> str:
    group = _group(name, spec)
    return f"what group {name} asks for" if group is None else _ask(group.each)


def _group(name: str, spec: JobSpec) -> TaskGroup | None:
    return next((group for group in spec.groups if group.name == name), None)


def _ask(each: Ask) -> str:
    """`8 GPUs, 16 cores and 64 GiB`."""
    parts: list[str] = [] if each.gpus is None else [_gpus(each.gpus)]
    if each.cpu_milli:
        parts.append(cores(each.cpu_milli))
    if each.memory_mib:
        parts.append(memory(each.memory_mib))
    return listed(parts) or "a place to run"


def _gpus(asked: GpuAsk) -> str:
    models = f" of {_either(asked.models)}" if asked.models else ""
    room = f" with {memory(asked.min_memory_mib)} or more" if asked.min_memory_mib else ""
    noun = "GPU" if asked.slice is None else _slice(asked.slice)
    return counted(asked.count, noun) + models + room


def _slice(part: Slice) -> str:
    match part:
        case Mig(profile=profile):
            return f"{profile} slice"
        case MpsShare(milli=milli):
            return f"{percent(milli)} GPU share"
        case TimeShare(replicas=replicas):
            return f"1-in-{replicas} GPU turn"


def _models(spec: JobSpec) -> tuple[GpuModel, ...]:
    asked = (group.each.gpus for group in spec.groups)
    return tuple(dict.fromkeys(model for gpus in asked if gpus for model in gpus.models))


def _levels(spec: JobSpec) -> tuple[str, ...]:
    wishes = (group.together for group in spec.groups)
    return tuple(dict.fromkeys(each.level for each in wishes if each and each.required))


def _either(names: tuple[str, ...]) -> str:
    *most, last = names or ("any",)
    return f"{', '.join(most)} or {last}" if most else last


def _jobs(jobs: tuple[JobId, ...]) -> str:
    if len(jobs) == 1:
        return f"job {jobs[0]}"
    return f"jobs {listed([str(job) for job in jobs])}"
