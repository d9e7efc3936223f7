"""What befalls the nodes of a pretended cluster, and what attempts there save in time."""

from muster.model.value import Duration, JobId, NodeId, Value

Key = tuple[JobId, int]
"""A job and its attempt."""


class Outage(Value, gc=False):
    """A node goes down, or is sound again."""

    node: NodeId
    is_over: bool


class Notice(Value, gc=False):
    """A node will be taken away: nothing new goes there, and who can saves what it has."""

    node: NodeId
    time_left: Duration


class Saving(Value):
    """An attempt writes a checkpoint that holds so much work."""

    key: Key
    work: int
