"""The marks by which pods say that they start together, as several schedulers have them. Pure."""

from collections.abc import Callable

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    labels_of,
    namespace_of,
    part,
)
from muster.model.value import Value, replace

GANG = "muster.io/gang"
GANG_SIZE = "muster.io/gang-size"
GANG_LEADER = "muster.io/gang-leader"
"""Annotations of pods: the name of their gang, how many start together, and whose end counts."""

GANG_JOB = "muster.io/gang-job"
"""An annotation that Muster sets: the pods with the same one are tasks of one job."""

KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
COSCHEDULING = "scheduling.x-k8s.io"
VOLCANO = "scheduling.volcano.sh"
KAI = "scheduling.run.ai"
NATIVE = "scheduling.k8s.io"
_GROUPS = frozenset({COSCHEDULING, VOLCANO, KAI, NATIVE})
_COSCHEDULING_LABELS = (f"{COSCHEDULING}/pod-group", "pod-group.scheduling.sigs.k8s.io")
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
_KAI_MARK = "pod-group-name"

FindGroup = Callable[[str, str, str], JsonObject | None]
"""A PodGroup by its API group, namespace and name."""


class Gang(Value):
    """What a pod says of its gang.

    least: so many pods start together; others may follow them. 0: that is not known yet.
    missing: why it is not known, in words.
    """

    namespace: str
    name: str
    least: int = 0
    missing: str = ""


def gang_of(pod: JsonObject, find: FindGroup) -> Gang | None:
    """The gang that a pod says it belongs to; None for a pod that names none."""
    for mark in _MARKS:
        found = mark(pod, find)
        if found is not None:
            return found
    return None


def is_marked(pod: JsonObject) -> bool:
    """Does a pod name a gang?"""
    return gang_of(pod, _unknown) is not None


def _unknown(group: str, namespace: str, name: str) -> None:  # noqa: ARG001 - as all are
    return None


def group_named_by(pod: JsonObject) -> tuple[str, str] | None:
    """The API group and the name of the PodGroup that a pod names."""
    gang = gang_of(pod, _unknown)
    group, slash, name = ("" if gang is None else gang.name).partition("/")
    return (group, name) if slash and group in _GROUPS else None


def _own(pod: JsonObject, _: FindGroup) -> Gang | None:
    said = annotations_of(pod)
    return _counted(pod, "", str(said.get(GANG) or ""), said.get(GANG_SIZE), GANG_SIZE)


def _of_kueue(pod: JsonObject, _: FindGroup) -> Gang | None:
    name = str(labels_of(pod).get(KUEUE_GROUP) or "")
    return _counted(pod, "kueue/", name, annotations_of(pod).get(KUEUE_COUNT), KUEUE_COUNT)


def _of_coscheduling(pod: JsonObject, find: FindGroup) -> Gang | None:
    labels = labels_of(pod)
    name = next((labels[each] for each in _COSCHEDULING_LABELS if labels.get(each)), "")
    return _grouped(pod, COSCHEDULING, name, find)


def _of_volcano(pod: JsonObject, find: FindGroup) -> Gang | None:
    return _grouped(pod, VOLCANO, str(annotations_of(pod).get(VOLCANO_GROUP) or ""), find)


def _of_kai(pod: JsonObject, find: FindGroup) -> Gang | None:
    return _grouped(pod, KAI, str(annotations_of(pod).get(_KAI_MARK) or ""), find)


def _native(pod: JsonObject, find: FindGroup) -> Gang | None:
    name = part(pod, "spec", "schedulingGroup").get("podGroupName")
    return _grouped(pod, NATIVE, str(name or ""), find)


_MARKS = (_own, _of_kueue, _of_coscheduling, _of_volcano, _of_kai, _native)


def _counted(pod: JsonObject, prefix: str, name: str, count: object, called: str) -> Gang | None:
    """A gang whose pods say themselves how many they are."""
    if not name:
        return None
    gang = Gang(namespace=namespace_of(pod), name=f"{prefix}{name}")
    if not str(count).isdecimal() or not int(str(count)):
        return replace(gang, missing=f"annotation {called} must say how many pods there are")
    return replace(gang, least=int(str(count)))


def _grouped(pod: JsonObject, group: str, name: str, find: FindGroup) -> Gang | None:
    """A gang that is an object of its own."""
    if not name:
        return None
    gang = Gang(namespace=namespace_of(pod), name=f"{group}/{name}")
    found = find(group, gang.namespace, name)
    if found is None:
        return replace(gang, missing=f'PodGroup "{name}" of {group} not found')
    return replace(gang, least=least_of(found))


def least_of(group: JsonObject) -> int:
    """How many pods of a PodGroup start together; 1 where they need not."""
    spec = part(group, "spec")
    count = part(spec, "schedulingPolicy", "gang").get("minCount", spec.get("minMember", 1))
    return max(1, int(count or 1))


def waits_for(gang: Gang, there: int) -> str:
    """Why a pod whose gang is not there yet does not start."""
    name = gang.name.rpartition("/")[2]
    if gang.missing:
        return f"gang {name} cannot start: {gang.missing}"
    left = gang.least - there
    return f"gang {name} waits for {left} more of {gang.least} pods; they start together"
