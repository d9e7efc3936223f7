"""What the controller asks the planner for: a verified plan, explanations, rehearsals."""

from collections.abc import Callable
from math import inf
from typing import Protocol

from muster.lifecycle.holding import allocation_after
from muster.lifecycle.step import step
from muster.model.errors import BadPlanError, UnknownError
from muster.model.event import JobPlaced
from muster.model.explanation import Alternative, Explanation
from muster.model.job import Job
from muster.model.placement import Allocation, Placement
from muster.model.plan import Backlog, NoEstimate, Plan, Prospect, Start
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, Value, replace
from muster.model.versioned import with_values, without
from muster.schedule.explain.alternatives import alternatives, always
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner
from muster.schedule.verify import Register, violations


class World(Value):
    """A snapshot and the policy by which it is planned."""

    snapshot: Snapshot
    policy: Policy


class RehearsedPlans(Value):
    """The plan for the world as it is, and that for a changed world.

    expected: when the job that was asked about may start in the changed world, if it waits there.
    placements: where it would start then. alternatives: what it could ask for to start sooner.
    """

    usual: Plan
    changed: Plan
    expected: Instant | NoEstimate | None = None
    placements: tuple[Placement, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


class PlannerClient(Protocol):
    """Where plans are made. The answers are the same wherever that is."""

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Plan and verify; BadPlanError when the plan breaks a hard rule."""
        ...

    def backlog(self) -> Backlog:
        """Where the jobs stand that wait after the last plan."""
        ...

    def explain(self, job: JobId) -> Explanation:
        """Everything about one job of the last plan; UnknownError for a job it did not have."""
        ...

    def rehearse(self, usual: World, changed: World, job: JobId | None = None) -> RehearsedPlans:
        """Plan two worlds beside each other; the next plan is as if nothing had been rehearsed.

        job: whose expected start is asked for.
        """
        ...

    def close(self) -> None: ...


class InlinePlanner:
    """Plans in this thread.

    has_time: asked before each further plan that an explanation might make.
    """

    def __init__(self, has_time: Callable[[], bool] = always) -> None:
        self._has_time = has_time
        self._planner: Planner | None = None
        self._policy: Policy | None = None
        self._last: tuple[Snapshot, Plan] | None = None
        self._backlog: Backlog | None = None
        self._register = Register()
        # Has the planner planned another world since the last plan?
        self._is_astray = False

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Plan and verify, following the plan before."""
        planner = self._planner_for(policy)
        made = planner.plan(snapshot)
        self._planner, self._policy, self._is_astray = planner, policy, False
        try:
            return verified(snapshot, made, self._register)
        except BadPlanError:
            # What the planner remembers may be what is wrong.
            self._planner = None
            raise
        finally:
            self._last, self._backlog = (snapshot, made), None

    def backlog(self) -> Backlog:
        """Worked out when it is first asked for after a plan."""
        if self._backlog is None:
            planner = self._planner_of_last_plan()
            self._backlog = {} if planner is None else planner.backlog()
        return self._backlog

    def explain(self, job: JobId) -> Explanation:
        """Explain by the last plan."""
        if self._last is None or job not in self._last[0].jobs:
            raise UnknownError(f"job {job} was not planned yet; ask again in a moment")
        snapshot, made = self._last
        planner, prospects = self._planner_of_last_plan(), dict[JobId, Prospect]()
        self._is_astray = True
        if planner is not None and job in made.waits:
            if any(isinstance(move, Start) for move in made.moves):
                # What it gave away is gone: no other request would have that room now.
                snapshot = _after_starts(snapshot, made)
                made = planner.plan(snapshot)
            prospects[job] = Prospect(expected=planner.expected_start(job))
        return explain(snapshot, made, job, prospects, planner, has_time=self._has_time)

    def rehearse(self, usual: World, changed: World, job: JobId | None = None) -> RehearsedPlans:
        """By what the planner remembers: that is quicker, and the next plan follows the world."""
        self._is_astray = True
        before = self._verified(usual)[1]
        planner, after = self._verified(changed)
        if job is None or job not in after.waits:
            return RehearsedPlans(usual=before, changed=after)
        expected = planner.expected_start(job)
        placements = _placed_later(planner, changed.snapshot, job, expected)
        wait = after.waits[job]
        helpful = alternatives(changed.snapshot, wait, expected, planner, self._has_time)
        return RehearsedPlans(
            usual=before,
            changed=after,
            expected=expected,
            placements=placements,
            alternatives=helpful.found,
        )

    def close(self) -> None:
        """Nothing is held."""

    def _planner_for(self, policy: Policy) -> Planner:
        if self._planner is None or (policy is not self._policy and policy != self._policy):
            return Planner(policy)
        return self._planner

    def _planner_of_last_plan(self) -> Planner | None:
        """The planner as it was after the last plan; the same snapshot leads it back there."""
        if self._is_astray and self._planner is not None and self._last is not None:
            self._planner.plan(self._last[0])
            self._is_astray = False
        return self._planner

    def _verified(self, world: World) -> tuple[Planner, Plan]:
        planner = self._planner_for(world.policy)
        return planner, verified(world.snapshot, planner.plan(world.snapshot), self._register)


def _after_starts(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The world in which the jobs that this plan starts have their room."""
    jobs, allocations = dict[JobId, Job](), dict[JobId, Allocation]()
    for move in made.moves:
        if not isinstance(move, Start):
            continue
        placed = JobPlaced(
            at=snapshot.now,
            job=move.job,
            attempt=move.attempt,
            cluster=move.cluster,
            placements=move.placements,
        )
        job = step(snapshot.jobs[move.job], placed)
        held = allocation_after(snapshot.allocations.get(move.job), placed, job)
        jobs[job.id] = job
        if held is not None:
            allocations[job.id] = held
    return replace(
        snapshot,
        version=snapshot.version + 1,
        jobs=with_values(snapshot.jobs, jobs),
        allocations=with_values(snapshot.allocations, allocations),
    )


def verified(snapshot: Snapshot, made: Plan, register: Register | None = None) -> Plan:
    """The plan, if it keeps the rules."""
    broken = violations(snapshot, made, register)
    if broken:
        raise BadPlanError(tuple(str(each) for each in broken))
    return made


def _placed_later(
    planner: Planner, snapshot: Snapshot, job: JobId, at: Instant | NoEstimate
) -> tuple[Placement, ...]:
    """Where it would start at the expected time, when all who must have left are gone."""
    if isinstance(at, NoEstimate):
        return ()
    jobs, allocations = snapshot.jobs, snapshot.allocations
    gone = [each for each, held in allocations.items() if _ends_at(jobs[each], held) <= at]
    # Room that is kept for others who wait is not thought of either.
    others = [each.id for each in jobs.values() if each.claim is not None and each.id != job]
    waiting = [each for each in others if each not in allocations]
    later = replace(
        snapshot,
        now=at,
        jobs=without(jobs, [*gone, *waiting]),
        allocations=without(allocations, gone),
    )
    return planner.placements(later, job)


def _ends_at(job: Job, allocation: Allocation) -> float:
    if job.spec.time_limit is None:
        return inf
    return (allocation.started_at or allocation.placed_at) + job.spec.time_limit
