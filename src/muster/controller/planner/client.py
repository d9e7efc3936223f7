"""What the controller asks the planner for: a verified plan, explanations, rehearsals."""

from collections.abc import Mapping
from typing import Protocol

from muster.model.errors import BadPlanError, UnknownError
from muster.model.explanation import Explanation
from muster.model.plan import Clear, Measure, Plan, Resume, Start, Wait
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import JobId, Value
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner, plan
from muster.schedule.verify import Register, violations

Move = Start | Resume | Clear
"""A decision that changes something."""


class Thought(Value):
    """A plan, sorted by what happens with it. Every waiting job moves or is among the waits."""

    version: int
    moves: tuple[Move, ...]
    measures: tuple[Measure, ...]
    waits: Mapping[JobId, Wait]


class PlannerClient(Protocol):
    """Where plans are made. The answers are the same wherever that is."""

    def plan(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """Plan and verify; BadPlanError when the plan breaks a hard rule."""
        ...

    def explain(self, job: JobId) -> Explanation:
        """Everything about one job of the last plan; UnknownError for a job it did not have."""
        ...

    def rehearse(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """What the plan would be for another world; what is remembered stays as it is."""
        ...

    def close(self) -> None: ...


class InlinePlanner:
    """Thinks in this thread."""

    def __init__(self) -> None:
        self._planner: Planner | None = None
        self._policy: Policy | None = None
        self._last: tuple[Snapshot, Plan] | None = None
        self._register = Register()

    def plan(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """Plan and verify, following the plan before."""
        if self._planner is None or (policy is not self._policy and policy != self._policy):
            self._planner, self._policy = Planner(policy), policy
        made = self._planner.plan(snapshot)
        try:
            return sorted_out(snapshot, made, self._register)
        except BadPlanError:
            # What the planner remembers may be what is wrong.
            self._planner = None
            raise
        finally:
            self._last = (snapshot, made)

    def explain(self, job: JobId) -> Explanation:
        """Explain by the last plan."""
        if self._last is None or job not in self._last[0].jobs:
            raise UnknownError(f"job {job} was not planned yet; ask again in a moment")
        return explain(*self._last, job, self._planner)

    def rehearse(self, snapshot: Snapshot, policy: Policy) -> Thought:
        """Plan afresh."""
        return sorted_out(snapshot, plan(snapshot, policy))

    def close(self) -> None:
        """Nothing is held."""


def sorted_out(snapshot: Snapshot, made: Plan, register: Register | None = None) -> Thought:
    """The plan as a thought, if it keeps the rules."""
    broken = violations(snapshot, made, register)
    if broken:
        raise BadPlanError(tuple(str(each) for each in broken))
    waits = {each.job: each for each in made.decisions if isinstance(each, Wait)}
    return Thought(
        version=made.snapshot_version,
        moves=tuple([each for each in made.decisions if not isinstance(each, Wait)]),
        measures=made.measures,
        waits=waits,
    )
