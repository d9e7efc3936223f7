"""What if: the same planner asked about another world, and nothing done."""

from collections.abc import Callable
from math import inf

from muster.controller.messages import Caller, Rehearsal
from muster.controller.planner.client import PlannerClient
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Clock, Journal
from muster.controller.world.reservations import current_windows
from muster.controller.world.transaction import Transaction
from muster.model.job import Job, JobSpec
from muster.model.launch import NO_LAUNCH
from muster.model.placement import Allocation, Placement
from muster.model.plan import Decision, NoEstimate, Plan, Preempt, Start
from muster.model.policy import Policy
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, replace
from muster.schedule.explain.words import decided


class Rehearsals:
    """Asks the planner about a world with one thing changed, and about the world as it is."""

    def __init__(self, journal: Journal, planner: PlannerClient, clock: Clock) -> None:
        self._journal = journal
        self._planner = planner
        self._clock = clock

    def submit(self, caller: Caller, spec: JobSpec) -> Rehearsal:
        """What would become of this request. Raises RefusedError if it would be refused."""
        transaction = Transaction(self._journal.record, self._clock())
        entry = Submission(caller=caller, spec=spec, kinds=NodeKinds())
        accepted = entry.admitted(entry.whose(transaction), transaction)
        job = Job(
            id=transaction.new_id(),
            spec=replace(accepted.spec, launch=NO_LAUNCH),
            submitted_at=transaction.now,
        )
        world = self._world()
        changed = replace(world, jobs={**world.jobs, job.id: job})
        policy = self._journal.record.site.policy
        rehearsed = self._planner.rehearse(changed, policy, job.id)
        decision = rehearsed.plan.decision(job.id)
        return replace(
            self._compared(world, rehearsed.plan),
            job=job.id,
            wait=rehearsed.plan.waits.get(job.id),
            expected=rehearsed.expected,
            placements=_placed(decision) or self._later(changed, job, rehearsed.expected),
            text="" if decision is None else decided(decision, job, changed),
        )

    def _later(
        self, world: Snapshot, job: Job, at: Instant | NoEstimate | None
    ) -> tuple[Placement, ...]:
        """Where it would start at the expected time, when all who must have left are gone."""
        if at is None or isinstance(at, NoEstimate):
            return ()
        held = {
            each: allocation
            for each, allocation in world.allocations.items()
            if _ends_at(world.jobs[each], allocation) > at
        }
        jobs = {each: world.jobs[each] for each in held}
        later = replace(world, now=at, jobs={**jobs, job.id: job}, allocations=held)
        rehearsed = self._planner.rehearse(later, self._journal.record.site.policy)
        return _placed(rehearsed.plan.decision(job.id))

    def apply(self, change: Callable[[Site], Site]) -> Rehearsal:
        """What would be different at once under other rules."""
        before = self._journal.record.site
        after = change(before)
        world = self._world()
        changed = replace(
            world,
            queues=after.queues,
            classes=after.classes,
            pools=self._journal.record.pools(after),
            reservations=current_windows(after.reservations, world.now),
        )
        return self._compared(world, self._planner.rehearse(changed, after.policy).plan)

    def _world(self) -> Snapshot:
        return self._journal.record.snapshot(self._clock())

    def _compared(self, world: Snapshot, plan: Plan) -> Rehearsal:
        policy: Policy = self._journal.record.site.policy
        usual = self._planner.rehearse(world, policy).plan
        now, then = _starting(usual), _starting(plan)
        return Rehearsal(
            starts=tuple(sorted(then - now)),
            waits=tuple(sorted(now - then)),
            preempted=tuple(sorted(_preempted(plan) - _preempted(usual))),
        )


def _starting(plan: Plan) -> set[JobId]:
    return {move.job for move in plan.moves if isinstance(move, Start)}


def _preempted(plan: Plan) -> set[JobId]:
    return {each.job for each in plan.measures if isinstance(each, Preempt)}


def _placed(decision: Decision | None) -> tuple[Placement, ...]:
    return decision.placements if isinstance(decision, Start) else ()


def _ends_at(job: Job, allocation: Allocation) -> float:
    if job.spec.time_limit is None:
        return inf
    return (allocation.started_at or allocation.placed_at) + job.spec.time_limit
