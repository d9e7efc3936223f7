"""Pods that name their node and can never run there: they fail, in the words of a kubelet. Pure.

What would fit there once others have left waits for that, as every job does.
"""

from collections.abc import Iterable

from muster.doors.kubernetes.objects.value import JsonObject, labels_of, part
from muster.doors.kubernetes.pods import quantities, resources
from muster.model.value import Value

PREFIX = "Pod was rejected: "
_DEVICES = (
    "Allocate failed due to requested number of devices unavailable for {}. "
    "Requested: {}, Available: {}, which is unexpected"
)
_AMOUNT = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
_SELECTOR = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


class Rejection(Value):
    """Why a node does not take a pod."""

    reason: str
    text: str

    def status(self, pod: JsonObject, now: str) -> JsonObject:
        """The status of the pod from then on."""
        return {
            "phase": "Failed",
            "reason": self.reason,
            "message": f"{PREFIX}{self.text}",
            "observedGeneration": part(pod, "metadata").get("generation", 1),
            "qosClass": resources.qos_class(part(pod, "spec")),
            "startTime": now,
        }


def rejection(pod: JsonObject, node: JsonObject, others: Iterable[JsonObject]) -> Rejection | None:
    """Why the node that it names can never run it; None where it could. others: specs there."""
    spec = part(pod, "spec")
    wanted = resources.requests_of(spec)
    there = quantities.totals(part(node, "status", "allocatable"))
    for name, value in sorted(wanted.items()):
        if resources.is_gpu(name) and value > there.get(name, 0):
            text = _DEVICES.format(name, int(value), int(there.get(name, 0)))
            return Rejection(reason="UnexpectedAdmissionError", text=text)
    used = quantities.added(resources.requests_of(each) for each in others)
    for name in resources.QOS_RESOURCES:
        if wanted.get(name, 0) > there.get(name, 0):
            unit = 1_000 if name == resources.CPU else 1
            amounts = (wanted[name], used.get(name, 0), there.get(name, 0))
            text = _AMOUNT.format(name, *(int(each * unit) for each in amounts))
            return Rejection(reason=f"OutOf{name}", text=text)
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in part(spec, "nodeSelector").items()):
        return Rejection(reason="NodeAffinity", text=_SELECTOR)
    return None


def rejected(pod: JsonObject) -> Rejection | None:
    """Why it was rejected, if it was."""
    status = part(pod, "status")
    message = str(status.get("message") or "")
    if status.get("phase") != "Failed" or not message.startswith(PREFIX):
        return None
    return Rejection(reason=str(status.get("reason")), text=message.removeprefix(PREFIX))
