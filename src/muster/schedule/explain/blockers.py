"""Who holds, or comes before, what a job waits for."""

from collections.abc import Callable, Iterable

from muster.model.amounts import measured
from muster.model.job import HOLDING, Job, JobState
from muster.model.placement import Placement
from muster.model.plan import Plan, Resume
from muster.model.policy import Policy
from muster.model.reason import BorrowedOut, ForOthers, Limit, NoRoom, WaitingToResume, WaitReason
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId
from muster.schedule.explain.leaving import Holder, first_to_leave, in_the_way
from muster.schedule.state.accounts import WITHOUT_END
from muster.schedule.state.books import model_of
from muster.schedule.state.calendar import time_limit

MOST = 10
"""More names than this do not help."""


def blockers(why: WaitReason, job: Job, snapshot: Snapshot, plan: Plan) -> tuple[JobId, ...]:
    """The jobs that matter most to this wait, at most ten; none where no job is to blame."""
    if isinstance(why, NoRoom | WaitingToResume):
        return _in_room(why, job, snapshot, holders(snapshot, plan, job.id))
    if isinstance(why, Limit):
        return _within_limit(why, snapshot, holders(snapshot, plan, job.id))
    if isinstance(why, ForOthers):
        return tuple(each for each in why.names if each in snapshot.jobs)[:MOST]
    return ()


def holders(snapshot: Snapshot, plan: Plan, beside: JobId) -> list[Holder]:
    """All others that hold room, or for whom it is held, with what the plan gives them."""
    given: dict[JobId, tuple[Placement, ...]] = {}
    resumed: set[JobId] = set()
    for move in plan.moves:
        if isinstance(move, Resume):
            resumed.add(move.job)
        else:
            given[move.job] = move.placements
    for job_id, allocation in snapshot.allocations.items():
        job = snapshot.jobs.get(job_id)
        if job is not None and (job.state in HOLDING or job_id in resumed):
            given[job_id] = allocation.placements
    for job in snapshot.jobs.values():
        if job.claim is not None and job.state is JobState.PENDING:
            given.setdefault(job.id, job.claim.placements)
    return [
        Holder(snapshot.jobs[job], given[job], _ends_at(job, given[job], snapshot, plan.policy))
        for job in sorted(given)
        if job != beside and job in snapshot.jobs
    ]


def _ends_at(
    job: JobId, placements: Iterable[Placement], snapshot: Snapshot, policy: Policy
) -> Instant:
    allocation, spec = snapshot.allocations.get(job), snapshot.jobs[job].spec
    since = snapshot.now
    if allocation is not None:
        started_at = allocation.started_at
        since = allocation.placed_at if started_at is None else started_at
    pools = [snapshot.pools[each.pool] for each in placements if each.pool in snapshot.pools]
    if spec.time_limit is not None and pools:
        # The same in every pool, and what nearly all jobs have.
        return Instant(min(WITHOUT_END, since + spec.time_limit))
    limits = [time_limit(spec, pool, policy) for pool in pools]
    return Instant(min(WITHOUT_END, since + max(limits, default=WITHOUT_END)))


def _in_room(
    why: NoRoom | WaitingToResume, job: Job, snapshot: Snapshot, others: list[Holder]
) -> tuple[JobId, ...]:
    match why:
        case NoRoom(group=name):
            groups = [group for group in job.spec.groups if group.name == name]
            return in_the_way(groups[0], job.spec, snapshot, others)[:MOST] if groups else ()
        case WaitingToResume(node=node):
            there = [each for each in others if any(p.node == node for p in each.placements)]
            return tuple(each.job.id for each in sorted(there, key=first_to_leave)[:MOST])


def _within_limit(why: Limit, snapshot: Snapshot, others: list[Holder]) -> tuple[JobId, ...]:
    """Those that count against the same limit: the largest first, then those that leave first."""
    amount = _amount(why, snapshot)
    within = [each for each in others if why.counts(each.job.spec)]
    if not within and isinstance(why, BorrowedOut):
        # The queue is kept small by what others keep and hold, not by itself.
        within = others
    counting = [(amount(each), each) for each in within]
    ranked = sorted((-held, *first_to_leave(each)) for held, each in counting if held)
    return tuple(job for _, _, job in ranked[:MOST])


def _amount(why: Limit, snapshot: Snapshot) -> Callable[[Holder], int]:
    """How much a holder has of what is limited."""
    scope = why.scope
    if scope is None:
        return lambda _: 1
    return lambda holder: sum(
        measured(scope, each, model_of(each, snapshot.nodes)) for each in holder.placements
    )
