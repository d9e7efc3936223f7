"""Labels and taints that an administrator gives to a node."""

from collections.abc import Mapping

from muster.controller.messages import Caller
from muster.controller.rights import demand
from muster.controller.use_cases.audit import audit
from muster.controller.world.transaction import Transaction
from muster.lifecycle.marks import marked
from muster.model.cluster import Node, Taint
from muster.model.errors import UnknownError
from muster.model.event import NodeMarked
from muster.model.site import Role
from muster.model.value import NodeId, Value


class NodeMarking(Value):
    """Somebody gives a node labels and taints, in place of all that were given before."""

    caller: Caller
    node: NodeId
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]

    def apply(self, transaction: Transaction) -> Node:
        """The command; nothing is written where the node has them already."""
        known = transaction.node(self.node)
        if known is None:
            raise UnknownError(f"there is no node {self.node}; list them with: muster nodes")
        if marked(known, self.labels, self.taints) == known:
            return known
        demand(self.caller, transaction.site, Role.ADMIN, to=f"change node {self.node}")
        transaction.apply(
            NodeMarked(
                at=transaction.now,
                node=self.node,
                labels=self.labels,
                taints=self.taints,
                by=self.caller.user,
            )
        )
        words = [f"{key}={self.labels[key]}" for key in sorted(self.labels)]
        words += [f"taint {each.key}={each.value}" for each in self.taints]
        audit(transaction, self.caller, "mark", f"node {self.node}", " ".join(words))
        return transaction.node(self.node) or known
