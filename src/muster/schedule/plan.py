"""The plan: for every waiting job, whether it starts now or why it waits.

The policy, step by step, and where each is written down:

    sync      agree with the snapshot: what is free, who holds what, who waits   state/follow.py
    order     the job with the highest priority is next                          policy/order.py
    decide    what becomes of that job:                                          policy/decide.py
      gate      dependencies, begin time, array, number of jobs                  policy/gates.py
      resume    suspended jobs, and jobs for which room was cleared              policy/resume.py
      place     filter the nodes, score them, take the best                      policy/place.py
                  (filter: room/fit.py; score: room/score.py; search: room/find.py, room/gang.py)
      preempt   let others leave, those who lose the least                       policy/preempt.py
      promise   room at a later time, which backfill must leave                  policy/backfill.py
    explain   why each of the others waits                                       policy/waits.py
    grow      elastic jobs take what is left                                     policy/grow.py

Jobs that cannot start are remembered in verdicts (policy/verdicts.py), so that no job, and none
like it, is looked at again in vain.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from muster.model.job import Job
from muster.model.placement import Placement
from muster.model.plan import (
    Backlog,
    Clear,
    Measure,
    NoEstimate,
    Plan,
    Resize,
    Resume,
    Start,
    Wait,
)
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, replace
from muster.model.versioned import with_values
from muster.schedule.policy.backlog import After, OpeningPriorities, backlog, expected_start
from muster.schedule.policy.decide import Decider
from muster.schedule.policy.measures import measures
from muster.schedule.policy.order import Order
from muster.schedule.policy.variants import Variant, variants
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.policy.waits import Waits
from muster.schedule.state.follow import PlannerState

T = TypeVar("T")


def plan(snapshot: Snapshot, policy: Policy) -> Plan:
    """Decide for every waiting job. The same question always has the same answer."""
    return Planner(policy).plan(snapshot)


class Planner:
    """Plans one snapshot after the other, and remembers: that saves time and changes no answer."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._kept: PlannerState | None = None
        self._waits = Waits()
        self._after: After | None = None
        self._backlog: Backlog | None = None
        self._measures: tuple[Measure, ...] = ()
        self._number = 0

    def plan(self, snapshot: Snapshot) -> Plan:
        """One cycle: sync with the snapshot, decide about jobs in their order, explain the waits.

        What is decided about one job is `Decider.take`: gate, resume, place, preempt, promise.
        """
        kept, cycle, decider, verdicts, order, _ = self._after = self._begun(snapshot)
        for entry in order.by_priority(kept.roster.lanes.values(), verdicts):
            decider.take(entry)
        waits = self._waits.after(kept, decider, verdicts)
        self._measures, self._backlog = measures(kept, cycle, decider), None
        return Plan(
            snapshot_version=snapshot.version,
            policy=self._policy,
            moves=tuple(decider.decided.values()),
            waits=waits,
            measures=self._measures,
        )

    def backlog(self) -> Backlog:
        """Where the jobs stand that wait after the last plan; worked out when it is asked for."""
        if self._backlog is None:
            self._backlog = self._before_growth(backlog) or {}
        return self._backlog

    def expected_start(self, job: JobId) -> Instant | NoEstimate:
        """When a job may start that waits after the last plan: quicker than the whole backlog."""
        found = self._before_growth(lambda after: expected_start(after, job))
        return NoEstimate.NEVER if found is None else found

    def variants(self, snapshot: Snapshot, jobs: Sequence[Job]) -> list[Variant]:
        """What would become of a job of the snapshot if it were one of these.

        All are of one user and queue. Afterwards this planner has planned another world.
        """
        after, self._after = self._begun(_with(snapshot, jobs[0])), None
        found = variants(after, jobs)
        return [each or self._alone(snapshot, job) for job, each in zip(jobs, found, strict=True)]

    def placements(self, snapshot: Snapshot, job: JobId) -> tuple[Placement, ...]:
        """Where a waiting job would start if it were the only one that waits; nowhere is empty.

        Afterwards this planner has planned another world.
        """
        after, self._after = self._begun(snapshot), None
        after.decider.take(after.kept.roster.entries[job])
        move = after.decider.decided.get(job)
        return move.placements if isinstance(move, Start) else ()

    def _alone(self, snapshot: Snapshot, job: Job) -> Variant:
        made = self.plan(_with(snapshot, job))
        match made.decision(job.id):
            case Start() | Resume() | None:
                return Variant(starts_now=True, expected=snapshot.now)
            case Clear(until=until):
                return Variant(starts_now=False, expected=until)
            case Wait():
                return Variant(starts_now=False, expected=self.expected_start(job.id))

    def _begun(self, snapshot: Snapshot) -> After:
        """How things stand before the first decision, and who decides in which order."""
        kept = self._synced(snapshot)
        cycle = kept.begin_cycle()
        order = Order.of(kept)
        verdicts = Verdicts(cycle, self._number)
        decider = Decider(kept, cycle, verdicts)
        return After(kept, cycle, decider, verdicts, order, OpeningPriorities(kept))

    def _before_growth(self, ask: Callable[[After], T]) -> T | None:
        """Ask how things stand after the last plan, before elastic jobs took what was left."""
        if self._after is None:
            return None
        grown = [each for each in self._measures if isinstance(each, Resize)]
        kept = self._after.kept
        for each in grown:
            kept.shrink(each.job, each.placements)
        try:
            return ask(self._after)
        finally:
            for each in grown:
                kept.grow(each.job, each.placements)

    def _synced(self, snapshot: Snapshot) -> PlannerState:
        self._number += 1
        if self._kept is None:
            self._kept = PlannerState(snapshot, self._policy)
        self._kept.follow(snapshot)
        return self._kept


def _with(snapshot: Snapshot, job: Job) -> Snapshot:
    """The same world with this job as it is here."""
    return replace(snapshot, jobs=with_values(snapshot.jobs, {job.id: job}))
