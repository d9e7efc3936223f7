"""Namespaces and priority classes: what queues and job classes are to Kubernetes. Pure."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping

from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, name_of
from muster.doors.kubernetes.pods.pod_of import slug
from muster.doors.kubernetes.pods.queue_marks import LOCAL, QueueMark
from muster.model.queue import JobClass, Queue
from muster.model.site import Site
from muster.model.value import ClassName, Instant, QueuePath, replace

QUEUE_ANNOTATION = "muster.io/queue"
CLASS_ANNOTATION = "muster.io/class"
PERSON_ANNOTATION = "muster.io/person"
"""Of a namespace: whose processes the pods of its service accounts are."""

_IDS = uuid.UUID("b0a7d9a4-4d43-5c0e-9c6f-717565756500")
_LONGEST = 63
_MARK = 5


def namespaces(queues: Iterable[QueuePath]) -> dict[str, QueuePath]:
    """A namespace for each queue: its path with dashes, or with a mark where two would be alike."""
    found: dict[str, QueuePath] = {}
    for path in sorted(queues, key=lambda each: (each.count("/"), each)):
        name = slug(path)[:_LONGEST].strip("-")
        if name in found:
            mark = hashlib.sha256(path.encode()).hexdigest()[:_MARK]
            name = f"{name[: _LONGEST - _MARK - 1]}-{mark}"
        found[name] = path
    return found


def namespace_of_queue(path: QueuePath, queues: Iterable[QueuePath]) -> str:
    """The namespace of one of these queues; of a queue that is gone, what it would have been."""
    known = {queue: name for name, queue in namespaces(queues).items()}
    return known.get(path) or slug(path)[:_LONGEST]


def local_queues(queue: QueuePath, every: Iterable[QueuePath]) -> dict[QueueMark, QueuePath]:
    """By what pods of its namespace may call them: a queue and all below it."""
    return {
        QueueMark(kind=LOCAL, name=path.rpartition("/")[2]): path
        for path in sorted(every)
        if path == queue or path.startswith(f"{queue}/")
    }


def namespace_object(name: str, queue: Queue, since: Instant) -> JsonObject:
    """A queue as a namespace."""
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": str(uuid.uuid5(_IDS, f"queue/{queue.path}")),
            "creationTimestamp": stamp(since),
            "labels": {"kubernetes.io/metadata.name": name},
            "annotations": {QUEUE_ANNOTATION: str(queue.path)},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def priority_classes(classes: Mapping[ClassName, JobClass]) -> dict[str, ClassName]:
    """Job classes by the names of the PriorityClasses that they are."""
    return {slug(name): name for name in sorted(classes, reverse=True)}


def priority_class_object(job_class: JobClass, since: Instant) -> JsonObject:
    """A job class as a PriorityClass."""
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {
            "name": slug(job_class.name),
            "uid": str(uuid.uuid5(_IDS, f"class/{job_class.name}")),
            "creationTimestamp": stamp(since),
            "generation": 1,
            "annotations": {CLASS_ANNOTATION: str(job_class.name)},
        },
        "value": job_class.priority,
        "description": _described(job_class),
        "preemptionPolicy": "PreemptLowerPriority" if job_class.preempts else "Never",
    }


def job_class_of(obj: JsonObject, others: Mapping[ClassName, JobClass]) -> JobClass:
    """A PriorityClass as a job class: it preempts those of lower value, unless it must not."""
    value = int(obj.get("value", 0))
    never = obj.get("preemptionPolicy") == "Never"
    lower = sorted(name for name, each in others.items() if each.priority < value)
    return JobClass(
        name=ClassName(str(obj["metadata"]["name"])),
        priority=value,
        preempts=() if never else tuple(lower),
    )


def is_of_the_site(obj: JsonObject, classes: Mapping[ClassName, JobClass]) -> bool:
    """Was the PriorityClass made from a job class that there is?"""
    return annotations_of(obj).get(CLASS_ANNOTATION) in classes


def with_priority_class(site: Site, obj: JsonObject, others: Iterable[JsonObject]) -> Site:
    """The rules with one more class. others: the PriorityClasses that there are.

    Those of higher value preempt it, unless they must not, or the rules say whom they preempt.
    """
    added = job_class_of(obj, site.classes)
    classes = {**site.classes, added.name: added}
    for each in others:
        known = classes.get(ClassName(name_of(each)))
        if (
            known is not None
            and known.priority > added.priority
            and not is_of_the_site(each, site.classes)
            and each.get("preemptionPolicy") != "Never"
        ):
            below = tuple(sorted({*known.preempts, added.name}))
            classes[known.name] = replace(known, preempts=below)
    return replace(site, classes=classes)


def without_priority_class(site: Site, name: str) -> Site:
    """The rules without a class: nobody preempts it any more."""
    gone = priority_classes(site.classes).get(name)
    return replace(
        site,
        classes={
            key: replace(each, preempts=tuple(one for one in each.preempts if one != gone))
            for key, each in site.classes.items()
            if key != gone
        },
    )


def _described(job_class: JobClass) -> str:
    told = [f"Muster's job class {job_class.name}."]
    if job_class.preempts:
        told.append(f"Preempts jobs of {', '.join(job_class.preempts)}.")
    if not job_class.preemptible:
        told.append("Its jobs are not preempted.")
    return " ".join(told)
