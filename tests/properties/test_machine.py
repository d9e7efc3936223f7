"""A cluster in daily use: whatever happens, in whatever order, it stays sound."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import DataObject

from muster.model.cluster import NodeState
from muster.model.gpu import MpsShare, TimeShare
from muster.model.job import HOLDING, JobState
from muster.model.placement import DeviceShare, Placement
from properties.strategies import requests, worlds
from stories.world import World


class ClusterInUse(RuleBasedStateMachine):
    """People submit, jobs end, nodes fail; a cycle runs now and then."""

    world: World

    @initialize(world=worlds())
    def opens(self, world: World) -> None:
        self.world = world
        self.submitted = 0

    @rule(data=st.data())
    def submits(self, data: DataObject) -> None:
        self.submitted += 1
        self.world.submits(f"s{self.submitted}", **data.draw(requests(self.world)))

    @rule(slowly=st.booleans())
    def cycle(self, slowly: bool) -> None:
        self.world.goes_on(slowly=slowly)

    @rule(minutes=st.sampled_from((1, 15, 120)))
    def time_passes(self, minutes: int) -> None:
        self.world.passes(minutes=minutes)

    @precondition(lambda self: self.named(JobState.RUNNING))
    @rule(data=st.data(), state=st.sampled_from((JobState.COMPLETED, JobState.FAILED)))
    def finishes(self, data: DataObject, state: JobState) -> None:
        self.world.finishes(data.draw(st.sampled_from(self.named(JobState.RUNNING))), state=state)

    @precondition(lambda self: self.named(JobState.RUNNING))
    @rule(data=st.data())
    def checkpoints(self, data: DataObject) -> None:
        self.world.checkpoints(data.draw(st.sampled_from(self.named(JobState.RUNNING))))

    @precondition(lambda self: self.world.stopping())
    @rule(data=st.data())
    def stops(self, data: DataObject) -> None:
        self.world.stops(data.draw(st.sampled_from(self.world.stopping())))

    @precondition(lambda self: self.named(JobState.HELD))
    @rule(data=st.data())
    def releases(self, data: DataObject) -> None:
        self.world.releases(data.draw(st.sampled_from(self.named(JobState.HELD))))

    @rule(data=st.data(), state=st.sampled_from(NodeState))
    def node_changes(self, data: DataObject, state: NodeState) -> None:
        node = data.draw(st.sampled_from(sorted(self.world.scene.nodes)))
        match state:
            case NodeState.UP:
                self.world.restores(node)
            case NodeState.DRAINING:
                self.world.drains(node)
            case NodeState.DOWN:
                self.world.loses(node)

    @invariant()
    def no_device_is_given_twice(self) -> None:
        held = self.holdings()
        shares = [share for placed in held for share in placed.devices]
        for device in {share.device for share in shares}:
            assert_shared_well([share for share in shares if share.device == device])

    @invariant()
    def no_node_is_overfull(self) -> None:
        cpu: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        for placed in self.holdings():
            cpu[placed.node] += placed.amount.cpu_milli
            memory[placed.node] += placed.amount.memory_mib
        for node in self.world.scene.nodes.values():
            assert cpu[node.id] <= node.cpu_milli
            assert memory[node.id] <= node.memory_mib

    @invariant()
    def every_job_that_runs_runs_whole(self) -> None:
        scene = self.world.scene
        for job in scene.jobs.values():
            if job.state in HOLDING:
                tasks = Counter(placed.group for placed in scene.allocations[job.id].placements)
                for group in job.spec.groups:
                    assert group.fewest <= tasks[group.name] <= group.count

    def named(self, state: JobState) -> list[str]:
        """Jobs in this state, by name."""
        jobs = self.world.scene.jobs
        names = self.world.names.items()
        return [name for name, job in names if job in jobs and jobs[job].state is state]

    def holdings(self) -> list[Placement]:
        scene = self.world.scene
        return [
            placed
            for job in scene.jobs.values()
            if job.state in HOLDING
            for placed in scene.allocations[job.id].placements
        ]


def assert_shared_well(shares: list[DeviceShare]) -> None:
    """One kind of use on a device, and no more of it than there is."""
    assert len({type(share.slice) for share in shares}) == 1
    match shares[0].slice:
        case None:
            assert len(shares) == 1
        case MpsShare():
            parts = [share.slice for share in shares if isinstance(share.slice, MpsShare)]
            assert sum(part.milli for part in parts) <= 1_000
        case TimeShare(replicas=replicas):
            assert {share.slice for share in shares} == {shares[0].slice}
            assert len(shares) <= replicas
        case _:
            assert len({share.start for share in shares}) == len(shares)


TestClusterInUse = ClusterInUse.TestCase
TestClusterInUse.settings = settings(
    max_examples=max(10, settings().max_examples // 5), stateful_step_count=30
)
