"""The part of all metrics that somebody may see who may see one queue and those below it (pure)."""

from collections.abc import Collection, Iterable, Iterator

from muster.model.queue import is_within
from muster.model.value import QueuePath, replace
from muster.telemetry.family import Family, Labels, Point

DevicePart = tuple[str, str]
"""The UUID of a GPU, and the number of a MIG instance, empty for the whole."""

FOR_ALL = frozenset({"muster_build_info"})


def within(
    families: Iterable[Family], queue: QueuePath, devices: Collection[DevicePart]
) -> Iterator[Family]:
    """What is about this queue and those below it, and about devices that they alone hold."""
    for family in families:
        if family.name in FOR_ALL:
            yield family
            continue
        kept = tuple(point for point in family.points if _is_theirs(point, queue, devices))
        if kept:
            yield replace(family, points=kept)


def _is_theirs(point: Point, queue: QueuePath, devices: Collection[DevicePart]) -> bool:
    labels = dict(point.labels)
    path = labels.get("queue")
    if path is not None:
        return is_within(QueuePath(path), queue)
    uuid = labels.get("UUID")
    return uuid is not None and (uuid, labels.get("GPU_I_ID", "")) in devices


def without_names(families: Iterable[Family], hidden: Collection[QueuePath]) -> Iterator[Family]:
    """The same, without whose the jobs of these queues are: for those who may not know it."""
    for family in families:
        if hidden and any(_names(point, hidden) for point in family.points):
            points = tuple(
                point._replace(labels=_unnamed(point.labels)) if _names(point, hidden) else point
                for point in family.points
            )
            yield replace(family, points=points)
        else:
            yield family


def _names(point: Point, hidden: Collection[QueuePath]) -> bool:
    labels = dict(point.labels)
    return "user" in labels and labels.get("queue", "") in hidden


def _unnamed(labels: Labels) -> Labels:
    return tuple((name, "" if name == "user" else value) for name, value in labels)
