"""What the controller asks the planner for: a verified plan, explanations, rehearsals."""

from typing import Protocol

from muster.model.errors import BadPlanError, UnknownError
from muster.model.explanation import Explanation
from muster.model.plan import Backlog, NoEstimate, Plan
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, Value
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner
from muster.schedule.verify import Register, violations


class RehearsedPlan(Value):
    """The plan for another world, and when one job that waits in it may start."""

    plan: Plan
    expected: Instant | NoEstimate | None = None


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

    def rehearse(
        self, snapshot: Snapshot, policy: Policy, job: JobId | None = None
    ) -> RehearsedPlan:
        """What the plan would be for another world; what is remembered stays as it is.

        job: whose expected start is asked for.
        """
        ...

    def close(self) -> None: ...


class InlinePlanner:
    """Plans in this thread."""

    def __init__(self) -> None:
        self._planner: Planner | None = None
        self._policy: Policy | None = None
        self._last: tuple[Snapshot, Plan] | None = None
        self._backlog: Backlog | None = None
        self._register = Register()

    def plan(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """Plan and verify, following the plan before."""
        if self._planner is None or (policy is not self._policy and policy != self._policy):
            self._planner, self._policy = Planner(policy), policy
        made = self._planner.plan(snapshot)
        try:
            return verified(snapshot, made, self._register)
        except BadPlanError:
            # What the planner remembers may be what is wrong.
            self._planner = None
            raise
        finally:
            self._last, self._backlog = (snapshot, made), None

    def backlog(self) -> Backlog:
        """Kept until the next plan, because explaining plans other worlds."""
        if self._backlog is None:
            self._backlog = {} if self._planner is None else self._planner.backlog()
        return self._backlog

    def explain(self, job: JobId) -> Explanation:
        """Explain by the last plan."""
        if self._last is None or job not in self._last[0].jobs:
            raise UnknownError(f"job {job} was not planned yet; ask again in a moment")
        return explain(*self._last, job, self.backlog(), self._planner)

    def rehearse(
        self, snapshot: Snapshot, policy: Policy, job: JobId | None = None
    ) -> RehearsedPlan:
        """Plan with a planner that knows nothing yet."""
        planner, expected = Planner(policy), None
        made = verified(snapshot, planner.plan(snapshot))
        if job is not None and job in made.waits:
            expected = planner.expected_start(job)
        return RehearsedPlan(plan=made, expected=expected)

    def close(self) -> None:
        """Nothing is held."""


def verified(snapshot: Snapshot, made: Plan, register: Register | None = None) -> Plan:
    """The plan, if it keeps the rules."""
    broken = violations(snapshot, made, register)
    if broken:
        raise BadPlanError(tuple(str(each) for each in broken))
    return made
