"""Labels and taints that people give to nodes, beside those that nodes have of their own."""

from collections.abc import Mapping

from muster.model.cluster import Node, Taint
from muster.model.value import replace


def own(node: Node) -> Node:
    """The node without what it was given."""
    if not node.given_labels and not node.given_taints:
        return node
    return replace(
        node,
        labels={key: value for key, value in node.labels.items() if key not in node.given_labels},
        taints=tuple(each for each in node.taints if each not in node.given_taints),
        given_labels={},
        given_taints=(),
    )


def marked(node: Node, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> Node:
    """The node with these beside its own, in place of all that it was given before.

    What a node says of itself is a fact: nobody gives it another one.
    """
    bare = own(node)
    given = {key: labels[key] for key in sorted(labels) if key not in bare.labels}
    more = tuple(each for each in dict.fromkeys(taints) if each not in bare.taints)
    if not given and not more:
        return bare
    return replace(
        bare,
        labels={**bare.labels, **given},
        taints=(*bare.taints, *more),
        given_labels=given,
        given_taints=more,
    )
