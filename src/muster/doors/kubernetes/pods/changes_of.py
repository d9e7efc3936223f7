"""What a change of a pod changes of the job that it is. Pure.

Of a job that waits, all that follows from what the pod says; of one that runs, or that a pod shares
with its gang, its labels and its deadline.
"""

from collections.abc import Mapping

from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, items, labels_of, part
from muster.doors.kubernetes.pods.job_of import OUR_OWN, OUR_PREFIX, PRIORITY_LABEL
from muster.doors.kubernetes.pods.queue_marks import queue_mark
from muster.model.job import JobSpec
from muster.model.value import SECOND, Duration, replace

DEADLINE = "activeDeadlineSeconds"


def is_told_apart(old: JsonObject, new: JsonObject) -> bool:
    """May the job differ after this change?"""
    same = part(old, "spec") == part(new, "spec") and labels_of(old) == labels_of(new)
    return not same or asked_of_us(old) != asked_of_us(new)


def asked_of_us(pod: JsonObject) -> Mapping[str, str]:
    """What its annotations and labels ask of Muster's queue, by name."""
    said = {
        name: text
        for name, text in annotations_of(pod).items()
        if name.startswith(OUR_PREFIX) and name not in OUR_OWN
    }
    mark, priority = queue_mark(pod), labels_of(pod).get(PRIORITY_LABEL)
    if mark is not None:
        said[mark.kind] = mark.name
    return {**said, PRIORITY_LABEL: priority} if priority else said


def with_what_differs(spec: JobSpec, was: JobSpec, wanted: JobSpec) -> JobSpec:
    """The request as it is now, with what the change of its pod makes different.

    What somebody changed of it through another door stays. What it runs is kept apart.
    """
    names = [
        name
        for name in JobSpec.__struct_fields__
        if name != "launch" and getattr(was, name) != getattr(wanted, name)
    ]
    return replace(spec, **{name: getattr(wanted, name) for name in names})


def with_pods_own(spec: JobSpec, old: JsonObject, new: JsonObject, *, is_gang: bool) -> JobSpec:
    """The request with the pod's labels and deadline, which may change while it runs.

    A gang has the labels that all of its pods have, and the shortest of their deadlines.
    """
    before, after = labels_of(old), labels_of(new)
    gone = {name for name, text in before.items() if after.get(name) != text}
    added = {name: text for name, text in after.items() if before.get(name) != text}
    kept = {
        name: text for name, text in spec.labels.items() if name not in gone or before[name] != text
    }
    return replace(
        spec, labels=kept if is_gang else {**kept, **added}, time_limit=_limit(spec, old, new)
    )


def _limit(spec: JobSpec, old: JsonObject, new: JsonObject) -> Duration | None:
    was, seconds = part(old, "spec").get(DEADLINE), part(new, "spec").get(DEADLINE)
    if seconds is None or seconds == was:
        return spec.time_limit
    deadline = Duration(int(seconds) * SECOND)
    return deadline if spec.time_limit is None else min(spec.time_limit, deadline)


def other_images(old: JsonObject, new: JsonObject) -> list[str]:
    """Where the pod names another image than it did."""
    return [
        f"spec.{kind}[{place}].image"
        for kind in ("initContainers", "containers")
        for place, (was, now) in enumerate(
            zip(items(part(old, "spec"), kind), items(part(new, "spec"), kind), strict=False)
        )
        if was.get("image") != now.get("image")
    ]
