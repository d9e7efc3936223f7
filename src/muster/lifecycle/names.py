"""Rules about names: what the request speaks of exists, and its user may use it."""

from collections.abc import Iterable, Iterator

from muster.lifecycle.refusal import (
    MayNotSubmit,
    NoSuchJob,
    NoSuchLevel,
    NoSuchModel,
    NoSuchProfile,
    NoSuchReservation,
    NotOffered,
    NotYourReservation,
    NoUsablePool,
    PoolIsClosed,
    PoolTakesNothing,
    Refusal,
    SharingMode,
)
from muster.lifecycle.submission import (
    Submission,
    is_spot_only,
    queues_above,
)
from muster.lifecycle.words import choice, near
from muster.model.cluster import Pool, is_guest
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
from muster.model.job import NODE_LEVEL, DependencyKind, JobSpec, TaskGroup
from muster.model.mig import geometry
from muster.model.reason import NoSuchClass, NoSuchPool, NoSuchQueue
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, QueuePath, UserName


def queue_exists(asked: Submission) -> Refusal | None:
    queue, known = asked.spec.queue, asked.snapshot.queues
    if queue in known:
        return None
    return Refusal(reason=NoSuchQueue(queue=queue), advice=_unknown("queue", queue, known))


def user_may_submit(asked: Submission) -> Refusal | None:
    user, queue = asked.spec.user, asked.spec.queue
    decider = _decider(asked.snapshot, queue)
    if decider is None or may_submit(asked.snapshot, user, queue):
        return None
    elsewhere = [
        each
        for each in sorted(asked.snapshot.queues)
        if user in asked.snapshot.queues[each].may_submit
    ]
    advice = f"Use {choice(elsewhere[:3])}, or ask" if elsewhere else "Ask"
    return Refusal(
        reason=MayNotSubmit(user=user, queue=queue, decided_by=decider),
        advice=f"{user} may not submit to queue {queue}: {decider} has a list of who may. "
        f"{advice} for {user} to be added to it.",
    )


def may_submit(snapshot: Snapshot, user: UserName, queue: QueuePath) -> bool:
    """Does the nearest queue that has a list name the user? Without a list everyone may."""
    decider = _decider(snapshot, queue)
    return decider is None or user in snapshot.queues[decider].may_submit


def class_exists(asked: Submission) -> Refusal | None:
    name, known = asked.spec.job_class, asked.snapshot.classes
    if name in known:
        return None
    return Refusal(reason=NoSuchClass(job_class=name), advice=_unknown("class", name, known))


def pools_and_clusters_exist(asked: Submission) -> Refusal | None:
    for what, names, known in (
        ("pool", asked.spec.pools, asked.snapshot.pools),
        ("cluster", asked.spec.clusters, asked.snapshot.clusters),
    ):
        for name in names:
            if name not in known:
                return Refusal(reason=NoSuchPool(name=name), advice=_unknown(what, name, known))
    return None


def named_pools_are_open(asked: Submission) -> Refusal | None:
    spec = asked.spec
    named = [asked.snapshot.pools[name] for name in spec.pools]
    closed = [pool for pool in named if not _lets_in(pool, spec)]
    if not closed or len(closed) < len(named):
        return None
    pool = closed[0]
    if not pool.accepts:
        return Refusal(
            reason=PoolTakesNothing(pool=pool.name),
            advice=f"Pool {pool.name} takes no new jobs now. Name another, or submit again later.",
        )
    open_ones = [
        name for name, each in sorted(asked.snapshot.pools.items()) if _lets_in(each, spec)
    ]
    advice = f"Use {choice(open_ones[:3])}, or ask" if open_ones else "Ask"
    return Refusal(
        reason=PoolIsClosed(pool=pool.name),
        advice=f"Pool {pool.name} is for {_guests(pool)}. {advice} an administrator for access.",
    )


def reservation_is_open(asked: Submission) -> Refusal | None:
    name, now = asked.spec.reservation, asked.snapshot.now
    if name is None:
        return None
    open_ones = {each.name: each for each in asked.snapshot.reservations if each.ends_at > now}
    if name not in open_ones:
        advice = _unknown("reservation", name, open_ones)
        return Refusal(reason=NoSuchReservation(reservation=name), advice=advice)
    spec = asked.spec
    if is_guest(open_ones[name], spec.user, spec.queue, name):
        return None
    return Refusal(
        reason=NotYourReservation(reservation=name),
        advice=f"Reservation {name} is for others. Ask for none, or ask an administrator.",
    )


def some_pool_is_left(asked: Submission) -> Refusal | None:
    if asked.pools:
        return None
    spot_only = is_spot_only(asked.spec, asked.snapshot)
    kind = "spot pools only" if spot_only else "no spot pools"
    return Refusal(
        reason=NoUsablePool(spot_only=spot_only),
        advice=f"No pool is left that this job may use: it may use {kind}, "
        "in the pools and clusters that it names. Name others, or change its class or spot rule.",
    )


def models_exist(asked: Submission) -> Refusal | None:
    known = {kind.model for kind in asked.kinds if kind.model is not None}
    for group in asked.spec.groups:
        for model in group.each.gpus.models if group.each.gpus else ():
            if model not in known:
                return Refusal(
                    reason=NoSuchModel(model=model), advice=_unknown("GPU model", model, known)
                )
    return None


def sharing_is_offered(asked: Submission) -> Refusal | None:
    names = {pool.cluster for pool in asked.pools}
    clusters = [each for name, each in sorted(asked.snapshot.clusters.items()) if name in names]
    for group, part in _slices(asked):
        if not any(cluster.abilities.serves(part) for cluster in clusters):
            sharing = _sharing(part)
            return Refusal(
                reason=NotOffered(group=group.name, sharing=sharing),
                advice=f"No cluster that this job may use offers {sharing}. "
                "Ask for whole GPUs, or for another way to share them.",
            )
    return None


def profiles_exist(asked: Submission) -> Refusal | None:
    for group, part in _slices(asked):
        if isinstance(part, Mig):
            models = _models(asked, group)
            cuts = [geometry(model) for model in models]
            known = {profile.name for cut in cuts if cut is not None for profile in cut.profiles}
            if part.profile not in known:
                return Refusal(
                    reason=NoSuchProfile(group=group.name, profile=part.profile),
                    advice=_unknown("MIG profile", part.profile, known),
                )
    return None


def levels_exist(asked: Submission) -> Refusal | None:
    known = {NODE_LEVEL, *(level for pool in asked.pools for level in pool.levels)}
    for group in asked.spec.groups:
        for level in _levels(group):
            if level not in known:
                return Refusal(
                    reason=NoSuchLevel(group=group.name, level=level),
                    advice=_unknown("topology level", level, known),
                )
    return None


def dependencies_exist(asked: Submission) -> Refusal | None:
    """The caller sees to it that `snapshot.finished` has the ended jobs that this one names.

    A job cannot name itself: it does not exist yet.
    """
    for dependency in asked.spec.after:
        kind, job = dependency.kind, dependency.job
        if kind is DependencyKind.SINGLETON:
            continue
        if job is None or (job not in asked.snapshot.jobs and job not in asked.snapshot.finished):
            which = "names no job" if job is None else f"names job {job}, which does not exist"
            return Refusal(
                reason=NoSuchJob(kind=kind, job=job),
                advice=f"The dependency {kind} {which}. Name a job that was submitted before.",
            )
    return None


def _lets_in(pool: Pool, spec: JobSpec) -> bool:
    return pool.accepts and pool.lets_in(spec.user, spec.queue, spec.job_class)


def _guests(pool: Pool) -> str:
    """Who may use it, in words."""
    people = (*pool.users, *(f"group {name}" for name in pool.groups))
    parts = (("", people), ("queue ", pool.queues), ("class ", pool.classes))
    return ", and only for ".join(what + choice(list(names)) for what, names in parts if names)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if alike := near(name, names):
        return f"There is no {what} {name}. Did you mean {choice(alike)}?"
    if not names:
        return f"There is no {what} {name}, and no other {what} that this job could use."
    return f"There is no {what} {name}. There is {choice(names[:5])}."


def _decider(snapshot: Snapshot, queue: QueuePath) -> QueuePath | None:
    return next((each.path for each in queues_above(snapshot, queue) if each.may_submit), None)


def _slices(asked: Submission) -> Iterator[tuple[TaskGroup, Slice]]:
    for group in asked.spec.groups:
        if group.each.gpus is not None and group.each.gpus.slice is not None:
            yield group, group.each.gpus.slice


def _sharing(part: Slice) -> SharingMode:
    match part:
        case Mig():
            return SharingMode.MIG
        case MpsShare():
            return SharingMode.MPS
        case TimeShare():
            return SharingMode.TIME


def _models(asked: Submission, group: TaskGroup) -> set[GpuModel]:
    """The models in the pools that the job may use, as far as the group accepts them."""
    pools = {pool.name for pool in asked.pools}
    there = {kind.model for kind in asked.kinds if kind.pool.name in pools and kind.model}
    wanted = group.each.gpus.models if group.each.gpus else ()
    return there & set(wanted) if wanted else there


def _levels(group: TaskGroup) -> Iterator[str]:
    if group.together is not None:
        yield group.together.level
    yield from (rule.level for rule in (*group.where.near, *group.where.apart))
