"""The right to preempt: by class, by service, or to take back what is guaranteed."""

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import zip_longest

from muster.model.amounts import covers, measured
from muster.model.job import Job
from muster.model.levels import has_its_due, has_saved, ran_by
from muster.model.placement import Placement
from muster.model.plan import Clear
from muster.model.queue import Meter, Scope, lineage
from muster.model.value import JobId, QueuePath
from muster.schedule.verify.additions import Addition, Kind
from muster.schedule.verify.case import Case
from muster.schedule.verify.census import Holder
from muster.schedule.verify.usage import (
    EVERYONE,
    Asked,
    model_at,
    rolled_up,
    use_by_holders,
    use_by_staying,
)
from muster.schedule.verify.violation import Violation

Promise = tuple[Scope, int]
"""How much of a scope a queue is guaranteed."""


class Balance:
    """What each queue uses, with those below it, in the scopes that promise GPUs to somebody.

    Those who are stopping for a claim do not count, and those who claim do.
    """

    def __init__(self, case: Case, scopes: Iterable[Scope]) -> None:
        self._nodes = case.snapshot.nodes
        asked = Asked(self._nodes, {scope: [EVERYONE] for scope in scopes})
        staying = use_by_staying(asked, case.staying)
        claims = use_by_holders(asked, case.moments[-1].claims)
        self._used = {scope: rolled_up(staying.of(scope)) for scope in scopes}
        for scope, used in self._used.items():
            for path, amount in rolled_up(claims.of(scope)).items():
                used[path] = used.get(path, 0) + amount

    def copy(self) -> "Balance":
        """Another that begins where this one is."""
        other = copy(self)
        other._used = {scope: dict(used) for scope, used in self._used.items()}
        return other

    def take(self, job: Job, placements: Iterable[Placement]) -> None:
        """The job has this as well."""
        self._change(job, placements, times=1)

    def give_up(self, job: Job, placements: Iterable[Placement]) -> None:
        """The job has this no longer."""
        self._change(job, placements, times=-1)

    def keeps(self, path: QueuePath | None, promises: list[Promise]) -> bool:
        """Is something promised to the queue, and nowhere more in use than is promised?"""
        if path is None or not promises:
            return False
        return all(self._used[scope].get(path, 0) <= amount for scope, amount in promises)

    def _change(self, job: Job, placements: Iterable[Placement], *, times: int) -> None:
        for scope, used in self._used.items():
            amounts = (measured(scope, each, model_at(self._nodes, each)) for each in placements)
            changed = times * sum(amounts)
            for path in lineage(job.spec.queue):
                used[path] = used.get(path, 0) + changed


def preemption_is_right(case: Case) -> Iterator[Violation]:
    """A victim is unprotected, and the preemptor has a right: by class, or by reclaiming.

    Let L be the nearest common ancestor queue of both, and a job's side the child of L on its path.
    """
    if not case.clears:
        return
    victims = _victims(case)
    after_all = Balance(case, _scopes(case, [job for job, _ in victims.values()]))
    for job, placements in victims.values():
        after_all.take(job, placements)
    so_far = after_all.copy()
    for addition in case.additions:
        after_all.take(addition.job, addition.placements)
    for addition in case.additions:
        theirs = _victims_of(addition, victims)
        for job, placements in theirs:
            so_far.give_up(job, placements)
        # What a job grows by is decided last, when all rights are settled.
        if addition.kind is not Kind.RESIZE:
            so_far.take(addition.job, addition.placements)
        for victim in theirs:
            yield from _wrongs(case, addition, victim, (after_all, so_far))
            after_all.give_up(*victim)


def sides(mine: QueuePath, theirs: QueuePath) -> tuple[QueuePath | None, QueuePath | None]:
    """The children of the nearest common ancestor on both paths; None for a queue that is it."""
    both = zip_longest(reversed(tuple(lineage(mine))), reversed(tuple(lineage(theirs))))
    return next(((one, other) for one, other in both if one != other), (None, None))


def _victims(case: Case) -> dict[JobId, Holder]:
    """Everyone whom this plan stops, and what they hold."""
    named = {victim for clear in case.clears for victim in clear.victims}
    leaving = case.moments[0].leaving
    return {job.id: (job, placements) for job, placements in leaving if job.id in named}


def _victims_of(addition: Addition, victims: dict[JobId, Holder]) -> list[Holder]:
    act = addition.act
    if not isinstance(act, Clear):
        return []
    named = dict.fromkeys(act.victims)
    return [victims[victim] for victim in named if victim in victims]


def _scopes(case: Case, victims: Iterable[Job]) -> set[Scope]:
    jobs = [*victims, *(each.job for each in case.additions if each.kind is Kind.CLEAR)]
    paths = {path for job in jobs for path in lineage(job.spec.queue)}
    queues = [queue for path in paths if (queue := case.snapshot.queues.get(path)) is not None]
    lines = (quota for queue in queues for quota in queue.quotas)
    return {quota.scope for quota in lines if quota.scope.meter is Meter.GPU}


def _wrongs(
    case: Case,
    addition: Addition,
    victim: Holder,
    weighed: tuple[Balance, Balance],
) -> Iterator[Violation]:
    after_all, so_far = weighed
    job, placements = victim
    mine, theirs = sides(addition.job.spec.queue, job.spec.queue)
    if after_all.keeps(theirs, _promises(case, theirs, placements)):
        text = f"It is within what is guaranteed to {theirs}, and stops for {addition.job.id}."
        yield Violation(rule="protected", subject=f"job {job.id}", text=text)
    may_reclaim = case.plan.policy.preempt.reclaim and so_far.keeps(
        mine, _promises(case, mine, addition.placements)
    )
    if not may_reclaim and not _outranks(case, addition.job, job):
        text = f"It has no right to stop job {job.id}, by class, service or guarantee."
        yield Violation(rule="right", subject=f"job {addition.job.id}", text=text)


def _promises(case: Case, path: QueuePath | None, placements: Iterable[Placement]) -> list[Promise]:
    """What the queue is guaranteed where some of these placements, with GPUs, lie."""
    nodes = case.snapshot.nodes
    queue = None if path is None else case.snapshot.queues.get(path)
    places = {(each.pool, model_at(nodes, each)) for each in placements if each.devices}
    found = [
        (quota.scope, case.fleet.number(quota.guaranteed, quota.scope))
        for quota in (queue.quotas if queue is not None else ())
        if quota.scope.meter is Meter.GPU
        and any(covers(quota.scope, pool, model) for pool, model in places)
    ]
    return [(scope, amount) for scope, amount in found if amount > 0]


def _outranks(case: Case, job: Job, victim: Job) -> bool:
    """Policy allows it, and the job is of a higher class, or had less service."""
    return _is_higher(case, job, victim) or _had_less(case, job, victim)


def _had_less(case: Case, job: Job, victim: Job) -> bool:
    """Both are of one class, the victim stands on the higher level, and has its due."""
    snapshot, rules = case.snapshot, case.plan.policy.preempt
    if job.spec.job_class != victim.spec.job_class:
        return False
    is_saved = has_saved(victim, snapshot.classes.get(victim.spec.job_class))
    if not rules.by_service and not (rules.by_service_if_saved and is_saved):
        return False
    allocation = snapshot.allocations.get(victim.id)
    if not has_its_due(victim, allocation, snapshot.now, rules.waited_percent):
        return False
    ran = ran_by(victim, allocation, snapshot.now)
    mine = snapshot.levels.level(job.spec, job.ran)
    return mine < snapshot.levels.level(victim.spec, ran)


def _is_higher(case: Case, job: Job, victim: Job) -> bool:
    """The job's class names the victim's, and has the higher priority."""
    classes = case.snapshot.classes
    mine, theirs = classes.get(job.spec.job_class), classes.get(victim.spec.job_class)
    return (
        case.plan.policy.preempt.by_class
        and mine is not None
        and theirs is not None
        and theirs.name in mine.preempts
        and mine.priority > theirs.priority
    )
