"""The fields of pods and nodes that field selectors may name, and how long pods have to go."""

from collections.abc import Callable, Mapping

from muster.doors.kubernetes.objects.value import JsonObject, part


def _read(*names: str) -> Callable[[JsonObject], str]:
    def read(pod: JsonObject) -> str:
        found = part(pod, *names[:-1]).get(names[-1])
        return "" if found is None else str(found)

    return read


def _host_network(pod: JsonObject) -> str:
    return "true" if part(pod, "spec").get("hostNetwork") else "false"


SELECTABLE: Mapping[str, Callable[[JsonObject], str]] = {
    "spec.nodeName": _read("spec", "nodeName"),
    "spec.restartPolicy": _read("spec", "restartPolicy"),
    "spec.schedulerName": _read("spec", "schedulerName"),
    "spec.serviceAccountName": _read("spec", "serviceAccountName"),
    "spec.hostNetwork": _host_network,
    "status.phase": _read("status", "phase"),
    "status.podIP": _read("status", "podIP"),
    "status.nominatedNodeName": _read("status", "nominatedNodeName"),
}


def _unschedulable(node: JsonObject) -> str:
    return "true" if part(node, "spec").get("unschedulable") else "false"


OF_NODES: Mapping[str, Callable[[JsonObject], str]] = {"spec.unschedulable": _unschedulable}


def grace_of(pod: JsonObject) -> int:
    """How long a pod has when it is deleted; one that runs nowhere goes at once."""
    spec, status = part(pod, "spec"), part(pod, "status")
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return max(0, int(spec.get("terminationGracePeriodSeconds", 30)))
