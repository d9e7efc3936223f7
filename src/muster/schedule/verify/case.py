"""What is judged: the snapshot, the plan, and what follows from both before any rule is asked."""

from collections.abc import Iterator, Set

from muster.model.job import HOLDING, Job, JobState
from muster.model.plan import Clear, Plan, Preempt, Repartition, Resize
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, JobId, NodeId, Value, replace
from muster.schedule.verify.additions import Addition, Kind, additions_of
from muster.schedule.verify.census import Census
from muster.schedule.verify.fleet import Fleet
from muster.schedule.verify.glance import Glance, glance_at
from muster.schedule.verify.moments import Moment, moments_of
from muster.schedule.verify.register import Register

PART = 200
"""So many additions that the processor's own memory holds all that they are judged by."""


class Case(Value):
    """All that a rule may look at. Additions come in the order of the plan, resizes last.

    `placed` are those for which the plan chose a place: a resumed job goes on where it was;
    `fresh` are Starts and Clears: a place for a job that has none.
    `served` are the Starts of each job for which a device is cut.
    `suspects` are the jobs of which it is not known from the case before that they have one
    decision; None if nothing is known.
    """

    snapshot: Snapshot
    plan: Plan
    additions: list[Addition]
    placed: list[Addition]
    fresh: list[Addition]
    glance: Glance
    clears: list[Clear]
    preempts: list[Preempt]
    resizes: list[Resize]
    cuts: dict[tuple[NodeId, DeviceId], list[Repartition]]
    served: dict[JobId, list[Addition]]
    moments: tuple[Moment, ...]
    fleet: Fleet
    suspects: Set[JobId] | None = None

    def parts(self) -> Iterator["Case"]:
        """The same case with a few of its additions at a time."""
        if len(self.additions) <= PART:
            yield self
            return
        for first in range(0, len(self.additions), PART):
            few = self.additions[first : first + PART]
            yield replace(self, additions=few, placed=_placed(few), fresh=_fresh(few))

    @property
    def staying(self) -> Census:
        """Those who hold something, and stay at every moment."""
        return self.moments[0].staying

    def stays(self, job: Job) -> bool:
        """Is it one of these?"""
        if job.state is JobState.PENDING or job.state not in HOLDING:
            return False
        leaving = {victim.id for victim, _ in self.moments[0].leaving}
        return job.id in self.snapshot.allocations and job.id not in leaving


def case_of(snapshot: Snapshot, plan: Plan, register: Register | None = None) -> Case:
    """Gather it, looking once at each decision, each job and each allocation."""
    clears = [each for each in plan.moves if isinstance(each, Clear)]
    resizes = [each for each in plan.measures if isinstance(each, Resize)]
    additions = additions_of(snapshot, plan.moves) + additions_of(snapshot, resizes)
    glance, cuts = glance_at(additions), _cuts(plan)
    return Case(
        snapshot=snapshot,
        plan=plan,
        additions=additions,
        placed=_placed(additions),
        fresh=_fresh(additions),
        glance=glance,
        clears=clears,
        preempts=[each for each in plan.measures if isinstance(each, Preempt)],
        resizes=resizes,
        cuts=cuts,
        served=_served(cuts, additions),
        moments=moments_of(snapshot, additions, glance.nodes, clears, register),
        fleet=Fleet(snapshot) if register is None else register.fleet,
        suspects=None if register is None else register.suspects(plan),
    )


def _placed(additions: list[Addition]) -> list[Addition]:
    return [each for each in additions if each.kind is not Kind.RESUME]


def _fresh(additions: list[Addition]) -> list[Addition]:
    return [each for each in additions if each.kind is Kind.START or each.kind is Kind.CLEAR]


def _cuts(plan: Plan) -> dict[tuple[NodeId, DeviceId], list[Repartition]]:
    cuts: dict[tuple[NodeId, DeviceId], list[Repartition]] = {}
    for each in plan.measures:
        if isinstance(each, Repartition):
            cuts.setdefault((each.node, each.device), []).append(each)
    return cuts


def _served(
    cuts: dict[tuple[NodeId, DeviceId], list[Repartition]], additions: list[Addition]
) -> dict[JobId, list[Addition]]:
    found: dict[JobId, list[Addition]] = {
        cut.for_job: [] for several in cuts.values() for cut in several
    }
    for each in additions if found else ():
        if each.job.id in found and each.kind is Kind.START:
            found[each.job.id].append(each)
    return found
