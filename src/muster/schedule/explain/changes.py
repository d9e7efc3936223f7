"""Which changes of a request are worth trying: they differ from it, and they might help."""

from collections import Counter
from collections.abc import Iterator

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
from muster.model.facts import Remedy
from muster.model.gpu import GpuAsk, Mig, MpsShare
from muster.model.job import Job, JobSpec, JobState, Spot, TaskGroup, Where
from muster.model.mig import MigProfile, geometry, mig_profile
from muster.model.queue import lineage, usual_class
from muster.model.reason import NeverFits, NoRoom, TooLate, WaitReason
from muster.model.snapshot import Snapshot
from muster.model.value import MINUTE, Duration, GpuModel, QueuePath

Ladder = tuple[Change, ...]
"""Changes of one kind, the smallest first: who starts on one rung needs no other."""

HALF_MILLI = 500

# So that no kind of change alone uses up the plans there are.
MOST_MODELS = 4
MOST_PROFILES = 3
MOST_QUEUES = 2


def ladders(snapshot: Snapshot, job: Job, why: WaitReason) -> tuple[Ladder, ...]:
    """All that might help, in the order it is tried; nothing where no request could help."""
    if job.state is not JobState.PENDING:
        return ()
    remedies = sorted(why.facts.remedies, key=list(Remedy).index)
    found = [_shorter(snapshot, job.spec, why)] if isinstance(why, TooLate) else []
    found += [ladder for each in remedies for ladder in _ladders(each, snapshot, job.spec, why)]
    return tuple(ladder for ladder in found if ladder)


def _ladders(remedy: Remedy, snapshot: Snapshot, spec: JobSpec, why: WaitReason) -> list[Ladder]:
    match remedy:
        case Remedy.SMALLER:
            return _smaller(snapshot, spec, why)
        case Remedy.ANY_NODE:
            return [_no_topology(spec), _any_node(spec)]
        case Remedy.OTHER_POOL:
            return _other_pools(snapshot, spec)
        case Remedy.OTHER_QUEUE:
            return _other_queues(snapshot, spec)


def _smaller(snapshot: Snapshot, spec: JobSpec, why: WaitReason) -> list[Ladder]:
    group = _group(spec, why)
    slices = [_mig_slices(snapshot, spec), _mps_half(snapshot, spec)]
    return [_fewer_gpus(group), _fewer_tasks(group, why), *slices]


def _other_pools(snapshot: Snapshot, spec: JobSpec) -> list[Ladder]:
    return [_any_pool(spec), _spot(snapshot, spec), *_other_models(snapshot, spec)]


def _group(spec: JobSpec, why: WaitReason) -> TaskGroup:
    """The group that is in the way, else the largest one."""
    named = why.group if isinstance(why, (NoRoom, NeverFits)) else None
    return max(spec.groups, key=lambda each: (each.name == named, each.count * _count(each)))


def _count(group: TaskGroup) -> int:
    return 0 if group.each.gpus is None else group.each.gpus.count


def _shorter(snapshot: Snapshot, spec: JobSpec, why: TooLate) -> Ladder:
    bound = why.longest(snapshot.now)
    # In whole minutes: 59 minutes, not 59 minutes and 59.9 seconds.
    limit = bound - bound % MINUTE if bound >= MINUTE else bound
    is_shorter = spec.time_limit is None or limit < spec.time_limit
    return (Shorter(time_limit=Duration(limit)),) if limit > 0 and is_shorter else ()


def _fewer_gpus(group: TaskGroup) -> Ladder:
    if group.each.gpus is None or group.each.gpus.slice is not None:
        return ()
    return tuple(FewerGpus(group=group.name, gpus=count) for count in _halves(_count(group)))


def _fewer_tasks(group: TaskGroup, why: WaitReason) -> Ladder:
    """First as many as there is room for, then half as many, and so on."""
    most = group.fewest
    if isinstance(why, NoRoom) and 0 < why.placed < most:
        counts = [why.placed, *_halves(why.placed)]
    elif isinstance(why, NeverFits) and 0 < why.at_most < most:
        counts = [why.at_most, *_halves(why.at_most)]
    else:
        counts = _halves(most)
    return tuple(FewerTasks(group=group.name, tasks=count) for count in counts)


def _halves(count: int) -> list[int]:
    halves: list[int] = []
    while count > 1:
        count //= 2
        halves.append(count)
    return halves


def _no_topology(spec: JobSpec) -> Ladder:
    wishes = (group.together for group in spec.groups)
    return (NoTopology(),) if any(each is not None and each.required for each in wishes) else ()


def _any_node(spec: JobSpec) -> Ladder:
    return (AnyNode(),) if any(_has_rules(group.where) for group in spec.groups) else ()


def _has_rules(where: Where) -> bool:
    return where != Where(prefer=where.prefer, tolerate=where.tolerate)


def _any_pool(spec: JobSpec) -> Ladder:
    return (AnyPool(),) if spec.pools or spec.clusters else ()


def _spot(snapshot: Snapshot, spec: JobSpec) -> Ladder:
    """The other kind of capacity, where there is any and the class leaves the choice to the job."""
    job_class = snapshot.classes.get(spec.job_class)
    if spec.spot is Spot.ALLOWED or job_class is None or job_class.spot_only:
        return ()
    wants_spot = spec.spot is Spot.NEVER
    if not any(pool.spot is wants_spot for pool in snapshot.pools.values()):
        return ()
    return (OnSpot(),) if wants_spot else (OffSpot(),)


def _other_models(snapshot: Snapshot, spec: JobSpec) -> list[Ladder]:
    """Models that the job did not name and that have what it asks for, the commonest first."""
    asks = [gpus for gpus in _gpu_asks(spec) if gpus.models]
    suiting: list[Ladder] = [
        (OtherModel(model=model),)
        for model, memory_mib in _models(snapshot).items()
        if any(model not in gpus.models for gpus in asks)
        and all(_could_serve(model, memory_mib, gpus) for gpus in asks)
    ]
    return suiting[:MOST_MODELS]


def _could_serve(model: GpuModel, memory_mib: int, gpus: GpuAsk) -> bool:
    if isinstance(gpus.slice, Mig) and mig_profile(model, gpus.slice.profile) is None:
        return False
    return memory_mib >= gpus.min_memory_mib


def _models(snapshot: Snapshot) -> dict[GpuModel, int]:
    """All models and the most memory one has, the commonest first."""
    counts: Counter[GpuModel] = Counter()
    memory_mib: dict[GpuModel, int] = {}
    for node in snapshot.nodes.values():
        for device in node.devices:
            counts[device.model] += 1
            most = memory_mib.get(device.model, 0)
            memory_mib[device.model] = max(most, device.memory_mib)
    order = sorted(counts, key=lambda model: (-counts[model], model))
    return {model: memory_mib[model] for model in order}


def _mig_slices(snapshot: Snapshot, spec: JobSpec) -> Ladder:
    """The smallest profile with enough memory of each model that the job accepts."""
    asks = _whole_asks(spec)
    if not asks or not any(each.abilities.mig for each in snapshot.clusters.values()):
        return ()
    needed_mib = max(gpus.min_memory_mib for gpus in asks)
    names: dict[str, None] = {}
    for model in _models(snapshot):
        if all(not gpus.models or model in gpus.models for gpus in asks):
            profiles = [each for each in _parts(model) if each.memory_mib >= needed_mib]
            if profiles:
                names[min(profiles, key=_size).name] = None
    return tuple(AsSlice(slice=Mig(profile=name)) for name in list(names)[:MOST_PROFILES])


def _parts(model: GpuModel) -> Iterator[MigProfile]:
    cut = geometry(model)
    if cut is None:
        return
    for profile in cut.profiles:
        if not profile.media and profile.compute_slices < cut.compute_slices:
            yield profile


def _size(profile: MigProfile) -> tuple[int, int]:
    return (profile.compute_slices, profile.memory_slices)


def _mps_half(snapshot: Snapshot, spec: JobSpec) -> Ladder:
    asks = _whole_asks(spec)
    if not asks or not any(each.abilities.mps for each in snapshot.clusters.values()):
        return ()
    needed_mib = max(gpus.min_memory_mib for gpus in asks)
    return (AsSlice(slice=MpsShare(milli=HALF_MILLI, memory_mib=needed_mib)),)


def _whole_asks(spec: JobSpec) -> list[GpuAsk]:
    """Asks for one whole GPU; none if any task works with several, which slices cannot replace."""
    asks = _gpu_asks(spec)
    return asks if all(each.count == 1 and each.slice is None for each in asks) else []


def _gpu_asks(spec: JobSpec) -> list[GpuAsk]:
    return [group.each.gpus for group in spec.groups if group.each.gpus is not None]


def _other_queues(snapshot: Snapshot, spec: JobSpec) -> list[Ladder]:
    """Queues that the user may submit to: first where he is known, then those near his own."""
    user, queues = spec.user, snapshot.queues
    known = {each.queue for each in snapshot.used_lately if each.user == user}
    known |= {job.spec.queue for job in snapshot.jobs.values() if job.spec.user == user}
    known |= {path for path, queue in queues.items() if user in queue.may_submit}
    above = set(lineage(spec.queue))
    # A queue that has others below it is seldom meant for jobs.
    inner = {parent for path in queues for parent in lineage(path) if parent != path}

    def rank(path: QueuePath) -> tuple[bool, int, QueuePath]:
        return (path not in known, -len(above.intersection(lineage(path))), path)

    paths = [path for path in queues if path in known or path not in inner]
    suiting = [
        path
        for path in paths
        if path != spec.queue
        and _may_submit(snapshot, spec, path)
        and _may_use_class(snapshot, spec, path)
    ]
    return [(OtherQueue(queue=path),) for path in sorted(suiting, key=rank)[:MOST_QUEUES]]


def _may_submit(snapshot: Snapshot, spec: JobSpec, path: QueuePath) -> bool:
    for each in lineage(path):
        queue = snapshot.queues.get(each)
        if queue is not None and queue.may_submit:
            return spec.user in queue.may_submit
    return True


def _may_use_class(snapshot: Snapshot, spec: JobSpec, path: QueuePath) -> bool:
    """Would the job keep its class in that queue? Roles that allow more are not known here."""
    job_class, usual = snapshot.classes.get(spec.job_class), usual_class(snapshot.queues, path)
    if job_class is None or spec.job_class == usual:
        return True
    return job_class.lets_use(spec.user, path, snapshot.classes.get(usual))
