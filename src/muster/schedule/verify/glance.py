"""What is special about the additions of a plan, so that few rules must look at all of them."""

from collections.abc import Iterable

from muster.model.job import ANYWHERE
from muster.model.value import ClassName, JobId, NodeId, QueuePath, Value
from muster.schedule.verify.additions import Addition, Task


class Glance(Value):
    """Whom and where something is added, and those additions that are not like most others.

    `labelled` jobs carry labels, `dependent` ones wait for others,
    and `choosy` tasks do not go just anywhere.
    """

    queues: set[QueuePath]
    classes: set[ClassName]
    arrays: set[JobId]
    nodes: set[NodeId]
    labelled: list[Addition]
    dependent: list[Addition]
    choosy: list[Task]


def glance_at(additions: Iterable[Addition]) -> Glance:
    """Look once at each."""
    found = Glance(
        queues=set(),
        classes=set(),
        arrays=set(),
        nodes=set(),
        labelled=[],
        dependent=[],
        choosy=[],
    )
    for addition in additions:
        spec = addition.job.spec
        found.queues.add(addition.queue)
        found.classes.add(spec.job_class)
        if spec.array is not None:
            found.arrays.add(spec.array.array)
        if spec.labels:
            found.labelled.append(addition)
        if spec.after:
            found.dependent.append(addition)
        for task in addition.tasks:
            found.nodes.add(task.placement.node)
            if task.group.where is not ANYWHERE:
                found.choosy.append(task)
    return found
