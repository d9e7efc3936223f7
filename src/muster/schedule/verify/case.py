"""What is judged: the snapshot, the plan, and what follows from both before any rule is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from muster.model.job import HOLDING, Job, JobState
from muster.model.plan import Clear, Plan, Preempt, Repartition, Resize, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, JobId, NodeId
from muster.schedule.verify.additions import Addition, Kind, additions_of
from muster.schedule.verify.census import Census
from muster.schedule.verify.fleet import Fleet
from muster.schedule.verify.glance import Glance, glance_at
from muster.schedule.verify.moments import Moment, moments_of
from muster.schedule.verify.register import Register

PART = 200
"""So many additions that the processor's own memory holds all that they are judged by."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that a rule may look at. Additions come in the order of the plan, resizes last."""

    snapshot: Snapshot
    plan: Plan
    additions: list[Addition]
    glance: Glance
    clears: list[Clear]
    preempts: list[Preempt]
    resizes: list[Resize]
    cuts: dict[tuple[NodeId, DeviceId], list[Repartition]]
    moments: tuple[Moment, ...]

    def parts(self) -> Iterator["Case"]:
        """The same case with a few of its additions at a time."""
        if len(self.additions) <= PART:
            yield self
            return
        for first in range(0, len(self.additions), PART):
            yield replace(self, additions=self.additions[first : first + PART])

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

    @cached_property
    def fleet(self) -> Fleet:
        """What there is."""
        return Fleet(self.snapshot)

    @cached_property
    def fresh(self) -> list[Addition]:
        """Starts and Clears: a place for a job that has none."""
        return [each for each in self.placed if each.kind is not Kind.RESIZE]

    @cached_property
    def placed(self) -> list[Addition]:
        """All for which the plan chose a place; a resumed job goes on where it was."""
        return [each for each in self.additions if each.kind is not Kind.RESUME]

    @cached_property
    def served(self) -> dict[JobId, list[Addition]]:
        """The Starts of each job for which a device is cut."""
        found: dict[JobId, list[Addition]] = {}
        for cuts in self.cuts.values():
            found.update({cut.for_job: [] for cut in cuts})
        for each in self.additions if found else ():
            if each.job.id in found and each.kind is Kind.START:
                found[each.job.id].append(each)
        return found

    @cached_property
    def clear_of(self) -> dict[JobId, Clear]:
        """The Clear of each job that gets one."""
        return {clear.job: clear for clear in self.clears}


def case_of(snapshot: Snapshot, plan: Plan, register: Register | None = None) -> Case:
    """Gather it, looking once at each decision, each job and each allocation."""
    acts = [each for each in plan.decisions if not isinstance(each, Wait)]
    clears = [each for each in acts if isinstance(each, Clear)]
    resizes = [each for each in plan.measures if isinstance(each, Resize)]
    additions = additions_of(snapshot, acts) + additions_of(snapshot, resizes)
    glance = glance_at(additions)
    return Case(
        snapshot=snapshot,
        plan=plan,
        additions=additions,
        glance=glance,
        clears=clears,
        preempts=[each for each in plan.measures if isinstance(each, Preempt)],
        resizes=resizes,
        cuts=_cuts(plan),
        moments=moments_of(snapshot, additions, glance.nodes, clears, register),
    )


def _cuts(plan: Plan) -> dict[tuple[NodeId, DeviceId], list[Repartition]]:
    cuts: dict[tuple[NodeId, DeviceId], list[Repartition]] = {}
    for each in plan.measures:
        if isinstance(each, Repartition):
            cuts.setdefault((each.node, each.device), []).append(each)
    return cuts
