"""Pods that wait for us on another cluster, and what job each of them is. Pure."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import (
    COSCHEDULING,
    GANG,
    GANG_SIZE,
    KAI,
    NATIVE,
    VOLCANO,
    FindGroup,
    Gang,
    gang_of,
)
from muster.doors.kubernetes.pods.job_of import ADMITTED
from muster.doors.kubernetes.pods.queue_marks import QUEUE_LABELS, queue_mark
from muster.model.launch import AdoptedPod
from muster.model.value import Value

SCHEDULER = "muster"
GATE = "muster.io/admission"
"""A scheduling gate that pods may have: it is taken away when their job starts."""

HELD = "muster.io/hold"
"""A Job with this annotation is left standing."""

_TRAINING = "training.kubeflow.org"
_TRAINING_JOBS = {
    "pytorchjob-controller": ("pytorchjobs", "pytorchReplicaSpecs"),
    "tfjob-controller": ("tfjobs", "tfReplicaSpecs"),
    "mpijob-controller": ("mpijobs", "mpiReplicaSpecs"),
}
_GROUP_PATHS = {
    COSCHEDULING: f"{COSCHEDULING}/v1alpha1",
    VOLCANO: f"{VOLCANO}/v1beta1",
    KAI: f"{KAI}/v2alpha2",
    NATIVE: f"{NATIVE}/v1alpha2",
}

GetObject = Callable[[str], JsonObject | None]
"""The object at a path of the cluster's API."""


def is_free(pod: JsonObject) -> bool:
    """Does nobody but us keep it from starting?"""
    gates = {str(each.get("name")) for each in items(pod, "spec", "schedulingGates")}
    return gates <= {GATE} and "deletionTimestamp" not in metadata(pod)


def adopted_pod(pod: JsonObject) -> AdoptedPod:
    """What its cluster must know to give it its node."""
    containers = items(pod, "spec", "containers")
    return AdoptedPod(
        namespace=namespace_of(pod),
        name=name_of(pod),
        uid=uid_of(pod),
        container=str(containers[0].get("name")) if containers else "",
        gated=bool(items(pod, "spec", "schedulingGates")),
    )


def groups_by(get: GetObject) -> FindGroup:
    """PodGroups as the cluster has them."""

    def find(group: str, namespace: str, name: str) -> JsonObject | None:
        path = _GROUP_PATHS.get(group)
        return get(f"/apis/{path}/namespaces/{namespace}/podgroups/{name}") if path else None

    return find


def gang_in(pod: JsonObject, get: GetObject) -> Gang | None:
    """The gang that a pod is of: as it says itself, or as the training job says that made it."""
    return gang_of(pod, groups_by(get)) or _of_training(pod, get)


def assembled(
    pods: Iterable[JsonObject], get: GetObject
) -> Sequence[tuple[Gang | None, list[JsonObject]]]:
    """The pods by the gangs that they name; those that name none by themselves."""
    found: dict[tuple[str, str], tuple[Gang | None, list[JsonObject]]] = {}
    once = cache(get)
    for pod in pods:
        gang = gang_in(pod, once)
        key = ("", uid_of(pod)) if gang is None else (gang.namespace, gang.name)
        found.setdefault(key, (gang, []))[1].append(pod)
    return tuple(found.values())


def _of_training(pod: JsonObject, get: GetObject) -> Gang | None:
    """All replicas of a training job start together, be there a PodGroup or none."""
    labels = labels_of(pod)
    name = labels.get(f"{_TRAINING}/job-name", "")
    kind = _TRAINING_JOBS.get(labels.get(f"{_TRAINING}/operator-name", ""))
    if not name or kind is None:
        return None
    plural, replicas = kind
    found = get(f"/apis/kubeflow.org/v1/namespaces/{namespace_of(pod)}/{plural}/{name}")
    if found is None:
        return None
    specs = part(found, "spec", replicas)
    count = sum(int(part(specs, each).get("replicas", 1)) for each in specs)
    return Gang(namespace=namespace_of(pod), name=f"{_TRAINING}/{name}", least=max(1, count))


class Opening(Value):
    """A Job that may have its pods now, and the change that lets it."""

    path: str
    change: JsonObject


def opening(job: JsonObject) -> Opening | None:
    """How a Job that stands goes on: its pods wait for us instead, together where they are several.

    Only one that names a queue: with that it says that it is not its user who lets it stand.
    """
    spec, said = part(job, "spec"), annotations_of(job)
    status = part(job, "status")
    leaves = int(status.get("active") or 0) + int(status.get("terminating") or 0)
    if not spec.get("suspend") or queue_mark(job) is None or said.get(HELD) == "true" or leaves:
        return None
    name, side_by_side = name_of(job), int(spec.get("parallelism") or 1)
    size = min(side_by_side, int(spec.get("completions") or side_by_side))
    notes = {ADMITTED: name}
    if size > 1:
        notes |= {GANG: name, GANG_SIZE: str(size)}
    labels = {key: text for key, text in labels_of(job).items() if key in QUEUE_LABELS}
    template = {"metadata": {"annotations": notes, "labels": labels}}
    return Opening(
        path=f"/apis/batch/v1/namespaces/{namespace_of(job)}/jobs/{name}",
        change={
            "metadata": {"uid": uid_of(job)},
            "spec": {"suspend": False, "template": template},
        },
    )
