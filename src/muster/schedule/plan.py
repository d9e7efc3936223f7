"""The plan: for every waiting job, whether it starts now or why it waits. The contents page."""

from muster.model.plan import Plan
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.schedule.policy.decide import Turn
from muster.schedule.policy.measures import measures
from muster.schedule.policy.order import Order
from muster.schedule.policy.wait import waits
from muster.schedule.state.follow import Memory


def plan(snapshot: Snapshot, policy: Policy) -> Plan:
    """Decide for every waiting job. The same question always has the same answer."""
    return Planner(policy).plan(snapshot)


class Planner:
    """Plans one snapshot after the other, and remembers: that saves time and changes no answer."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._memory: Memory | None = None
        self._number = 0

    def plan(self, snapshot: Snapshot) -> Plan:
        """Follow the world, take jobs in their turn, tell the others why they wait."""
        memory = self._following(snapshot)
        standing = memory.standing()
        order = Order(memory.books.shares, memory.books.quotas, self._policy.order.fair_share)
        turn = Turn(memory, standing, self._number)
        for entry in order.in_turn(memory.roster.lanes.values(), turn):
            turn.take(entry)
        return Plan(
            snapshot_version=snapshot.version,
            policy=self._policy,
            decisions=(*turn.decided.values(), *waits(memory, standing, turn, order)),
            measures=measures(memory, standing, turn),
        )

    def _following(self, snapshot: Snapshot) -> Memory:
        self._number += 1
        if self._memory is None or not self._memory.suits(snapshot):
            self._memory = Memory(snapshot, self._policy)
        self._memory.follow(snapshot)
        return self._memory
