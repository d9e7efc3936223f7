"""What the API looks at before a pod is validated: its priority, account and runtime. Pure."""

from collections.abc import Mapping

from muster.doors.kubernetes.objects.errors import StatusError, forbidden
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import JsonObject, name_of, namespace_of, part
from muster.doors.kubernetes.pods.runtime_classes import refusal_of, with_runtime
from muster.model.value import Value

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
SYSTEM_USES = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
    "but can be moved to another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved "
    "from their current node.",
}


class Known(Value):
    """What a new pod may name.

    priorities: the values of priority classes by name. usual: the class of pods that name none.
    preempts: which of them preempt. runtimes: RuntimeClasses by name.
    """

    priorities: Mapping[str, int] = {}
    usual: str | None = None
    accounts: frozenset[str] = frozenset({"default"})
    preempts: frozenset[str] = frozenset()
    runtimes: Mapping[str, JsonObject] = {}


def refusal(pod: JsonObject, known: Known) -> StatusError | None:
    """Why the pod may not be, in the order in which Kubernetes looks; None where it may."""
    for rule in (_of_priority, _of_account, _of_runtime):
        why = rule(pod, known)
        if why:
            return forbidden(POD, name_of(pod), why)
    return None


def filled(pod: JsonObject, known: Known) -> JsonObject:
    """The pod with what the classes that it names add. The object is the caller's own."""
    return with_runtime(with_priority(pod, known), known.runtimes)


def with_priority(pod: JsonObject, known: Known) -> JsonObject:
    """The pod with the value of its class. The object is the caller's own."""
    spec = part(pod, "spec")
    named = spec.get("priorityClassName") or known.usual
    if named:
        spec["priorityClassName"] = named
    priorities = {**SYSTEM_CLASSES, **known.priorities}
    spec["priority"] = priorities.get(str(named), 0)
    if named and named not in SYSTEM_CLASSES and named not in known.preempts:
        spec.setdefault("preemptionPolicy", "Never")
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return pod


def _of_priority(pod: JsonObject, known: Known) -> str:
    spec = part(pod, "spec")
    named = str(spec.get("priorityClassName") or known.usual or "")
    priorities = {**SYSTEM_CLASSES, **known.priorities}
    if named and named not in priorities:
        return f"no PriorityClass with name {named} was found"
    computed, given = priorities.get(named, 0), spec.get("priority")
    if given is not None and given != computed:
        return (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
    return ""


def _of_account(pod: JsonObject, known: Known) -> str:
    name = str(part(pod, "spec").get("serviceAccountName") or "default")
    if name in known.accounts:
        return ""
    where = f"{namespace_of(pod)}/{name}"
    return f'error looking up service account {where}: serviceaccount "{name}" not found'


def _of_runtime(pod: JsonObject, known: Known) -> str:
    return refusal_of(part(pod, "spec"), known.runtimes)
