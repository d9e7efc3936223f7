"""What is special about the additions of a plan, so that few rules must look at all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.model.job import ANYWHERE
from muster.model.value import ClassName, JobId, NodeId, QueuePath
from muster.schedule.verify.additions import Addition, Task


@dataclass(frozen=True)
class Glance:
    """Whom and where something is added, and those additions that are not like most others.

    `labelled` jobs carry labels, `dependent` ones wait for others,
    and `choosy` tasks do not go just anywhere.
    """

    queues: set[QueuePath] = field(default_factory=set[QueuePath])
    classes: set[ClassName] = field(default_factory=set[ClassName])
    arrays: set[JobId] = field(default_factory=set[JobId])
    nodes: set[NodeId] = field(default_factory=set[NodeId])
    labelled: list[Addition] = field(default_factory=list[Addition])
    dependent: list[Addition] = field(default_factory=list[Addition])
    choosy: list[Task] = field(default_factory=list[Task])


def glance_at(additions: Iterable[Addition]) -> Glance:
    """Look once at each."""
    found = Glance()
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
