"""What a plan says, asked in the words of a story."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.model.explanation import Change, Explanation
from muster.model.placement import DeviceShare, Placement
from muster.model.plan import (
    Backlog,
    Clear,
    NoEstimate,
    Plan,
    Preempt,
    Repartition,
    Resize,
    Resume,
    Start,
    Wait,
)
from muster.model.reason import WaitReason
from muster.model.snapshot import Snapshot
from muster.model.value import MINUTE, JobId
from muster.schedule.explain.explanation import explain


@dataclass(frozen=True)
class Outcome:
    """A plan beside the snapshot it was made for, with jobs called by their names.

    Lists of jobs are in the order of their submission.
    """

    snapshot: Snapshot
    plan: Plan
    backlog: Backlog
    names: Mapping[str, JobId]

    def started(self, of: str = "") -> list[str]:
        """Jobs that start now; those of many that are called `of`, if it is given."""
        jobs = {one.job for one in self.plan.moves if isinstance(one, Start)}
        return [name for name in self._called(jobs) if not of or name.rstrip("0123456789") == of]

    def resumed(self) -> list[str]:
        """Suspended jobs that go on."""
        return self._called({one.job for one in self.plan.moves if isinstance(one, Resume)})

    def waiting(self) -> list[str]:
        """Jobs that neither start nor have room made for them."""
        return self._called(set(self.plan.waits))

    def cleared(self) -> list[str]:
        """Jobs that room is made for, from now on."""
        return self._called({one.job for one in self.plan.moves if isinstance(one, Clear)})

    def preempted(self) -> list[str]:
        """Jobs that must make room."""
        return self._called({one.job for one in self.plan.measures if isinstance(one, Preempt)})

    def in_turn(self) -> list[str]:
        """All waiting jobs: those that move in the order that was decided, then the others."""
        called = {job: name for name, job in self.names.items()}
        return [called[job] for job in (*(one.job for one in self.plan.moves), *self.backlog)]

    def why(self, name: str) -> WaitReason:
        """The reason a job waits."""
        return self._wait(name).why

    def expected(self, name: str) -> float | NoEstimate:
        """In how many minutes a waiting job is expected to start, or why that is unknown."""
        expected = self.backlog[self._wait(name).job].expected
        if isinstance(expected, NoEstimate):
            return expected
        return (expected - self.snapshot.now) / MINUTE

    def placements(self, name: str) -> tuple[Placement, ...]:
        """Where the tasks of a job go that starts, or that room is made for."""
        decision = self.plan.decision(self.names[name])
        assert isinstance(decision, Start | Clear), f"{name} does not start: {decision}"
        return decision.placements

    def nodes(self, name: str) -> list[str]:
        """The nodes of a job that starts: each once, by name."""
        return sorted({placed.node for placed in self.placements(name)})

    def devices(self, name: str) -> list[DeviceShare]:
        """The devices, or parts of devices, of a job that starts."""
        return [share for placed in self.placements(name) for share in placed.devices]

    def cluster(self, name: str) -> str:
        """The cluster of a job that starts."""
        decision = self.plan.decision(self.names[name])
        assert isinstance(decision, Start | Clear), f"{name} does not start: {decision}"
        return decision.cluster

    def preemption(self, name: str) -> Preempt:
        """How, and for whom, a job makes room."""
        job = self.names[name]
        found = [one for one in self.plan.measures if isinstance(one, Preempt) and one.job == job]
        assert len(found) == 1, f"{name} is preempted {len(found)} times"
        return found[0]

    def repartitions(self) -> list[Repartition]:
        """Devices that are cut again."""
        return [one for one in self.plan.measures if isinstance(one, Repartition)]

    def grown(self, name: str) -> int:
        """How many tasks a running job gets in addition."""
        job = self.names[name]
        sizes = [one for one in self.plan.measures if isinstance(one, Resize) and one.job == job]
        return sum(len(one.placements) for one in sizes)

    def explained(self, name: str) -> Explanation:
        """All there is to say about a job."""
        return explain(self.snapshot, self.plan, self.names[name], self.backlog)

    def blockers(self, name: str) -> list[str]:
        """The jobs that are in the way of a job, the most important first."""
        called = {job: other for other, job in self.names.items()}
        return [called[job] for job in self.explained(name).blockers]

    def helps(self, name: str) -> list[Change]:
        """What a job could ask for instead, and start now."""
        return [one.change for one in self.explained(name).alternatives if one.starts_now]

    def _called(self, jobs: set[JobId]) -> list[str]:
        return [name for name, job in self.names.items() if job in jobs]

    def _wait(self, name: str) -> Wait:
        decision = self.plan.decision(self.names[name])
        assert isinstance(decision, Wait), f"{name} does not wait: {decision}"
        return decision
