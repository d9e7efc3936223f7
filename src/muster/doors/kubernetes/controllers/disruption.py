"""PodDisruptionBudgets: how many pods may be evicted, and whether this one may."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import scaled, without_zeros
from muster.doors.kubernetes.controllers.changes import Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.owning import controller_of
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving, is_ready, phase
from muster.doors.kubernetes.controllers.selecting import selects
from muster.doors.kubernetes.objects.kinds import POD, POD_DISRUPTION_BUDGET
from muster.doors.kubernetes.objects.times import after, earliest, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.model.value import Instant, Value

SOURCE = "controllermanager"
REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
EVICTED_SOON_S = 2 * 60
"""So long an evicted pod counts as gone though it is still there."""


class Eviction(Value):
    """Whether a pod may be evicted.

    budget: with the eviction written down in its status; None where no budget watches the pod.
    refusal: why not; empty when it may go. cause: what the budget says about it.
    is_a_fault: the budgets themselves are wrong, so that asking again is no use.
    """

    budget: JsonObject | None = None
    refusal: str = ""
    cause: str = ""
    is_a_fault: bool = False


def sync(budget: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Count the pods that are watched, and say how many more may go."""
    draft = Draft(budget, SOURCE)
    pods = _watched(budget, cluster)
    if not pods and not part(budget, "status"):
        draft.emit("NoPods", "No matching pods found")
    evicted = _evicted(budget, pods, now)
    expected, wanted = _expected(budget, pods, cluster)
    healthy = sum(
        is_ready(pod) and not is_leaving(pod) and name_of(pod) not in evicted for pod in pods
    )
    allowed = max(0, healthy - wanted) if expected > 0 else 0
    status: JsonObject = {
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "disruptedPods": evicted,
        "observedGeneration": metadata(budget).get("generation"),
        "conditions": _conditions(budget, allowed, now),
    }
    kept = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    status = without_zeros(status, *kept)
    if status != part(budget, "status"):
        draft.update_status({**budget, "status": status})
    draft.look_again(earliest(*(after(at, EVICTED_SOON_S) for at in evicted.values())))
    return draft.outcome()


def may_evict(pod: JsonObject, cluster: Cluster, now: Instant) -> Eviction:
    """May this pod go, as far as budgets are concerned?"""
    if is_finished(pod) or is_leaving(pod) or phase(pod) == "Pending":
        return Eviction()
    budgets = [
        each
        for each in cluster.list(POD_DISRUPTION_BUDGET, namespace_of(pod))
        if selects(part(each, "spec").get("selector"), labels_of(pod))
    ]
    if not budgets:
        return Eviction()
    if len(budgets) > 1:
        words = "This pod has more than one PodDisruptionBudget, which the eviction subresource"
        return Eviction(refusal=f"{words} does not support.", is_a_fault=True)
    return _within(budgets[0], pod, now)


def _within(budget: JsonObject, pod: JsonObject, now: Instant) -> Eviction:
    status = part(budget, "status")
    if not is_ready(pod) and _lets_unhealthy_go(budget):
        return Eviction()
    what = f"The disruption budget {name_of(budget)}"
    if status.get("observedGeneration", 0) < metadata(budget).get("generation", 0):
        cause = f"{what} is still being processed by the server."
        return Eviction(refusal=REFUSAL, cause=cause)
    if status.get("disruptionsAllowed", 0) <= 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"{what} needs {wanted} healthy pods and has {healthy} currently"
        return Eviction(refusal=REFUSAL, cause=cause)
    evicted = {**part(status, "disruptedPods"), name_of(pod): stamp(now)}
    left = status["disruptionsAllowed"] - 1
    written = {**status, "disruptionsAllowed": left, "disruptedPods": evicted}
    if left == 0:
        written["conditions"] = _conditions(budget, left, now)
    return Eviction(budget={**budget, "status": written})


def _lets_unhealthy_go(budget: JsonObject) -> bool:
    """May pods that are not ready always go, or when those that are ready are enough?"""
    status = part(budget, "status")
    if part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return healthy >= wanted > 0


def _watched(budget: JsonObject, cluster: Cluster) -> list[JsonObject]:
    selector = part(budget, "spec").get("selector")
    pods = cluster.list(POD, namespace_of(budget))
    return [pod for pod in pods if selects(selector, labels_of(pod))]


def _evicted(budget: JsonObject, pods: Sequence[JsonObject], now: Instant) -> dict[str, str]:
    """Pods whose eviction was allowed a moment ago, and that are not leaving yet."""
    told: dict[str, str] = part(budget, "status", "disruptedPods")
    there = {name_of(pod) for pod in pods if not is_leaving(pod)}
    return {
        name: at
        for name, at in told.items()
        if name in there and (after(at, EVICTED_SOON_S) or 0) >= now
    }


def _expected(budget: JsonObject, pods: Sequence[JsonObject], cluster: Cluster) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    spec = part(budget, "spec")
    if spec.get("maxUnavailable") is not None:
        expected = _scale(pods, cluster)
        missing = scaled(spec["maxUnavailable"], expected, up=True)
        return expected, max(0, expected - missing)
    least = spec.get("minAvailable")
    if isinstance(least, str):
        expected = _scale(pods, cluster)
        return expected, scaled(least, expected, up=True)
    return len(pods), least or 0


def _scale(pods: Sequence[JsonObject], cluster: Cluster) -> int:
    """How many pods those who manage these want, together."""
    sizes: dict[str, int] = {}
    for pod in pods:
        reference = controller_of(pod)
        owner = cluster.by_uid(reference["uid"]) if reference else None
        if owner is None:
            continue
        manager = controller_of(owner)
        upper = cluster.by_uid(manager["uid"]) if manager else None
        top = upper if upper is not None and "replicas" in part(upper, "spec") else owner
        sizes[metadata(top)["uid"]] = part(top, "spec").get("replicas", 1)
    return sum(sizes.values())


def _conditions(budget: JsonObject, allowed: int, now: Instant) -> list[JsonObject]:
    held = found(items(budget, "status", "conditions"), "DisruptionAllowed")
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    since = held["lastTransitionTime"] if held and held["status"] == status else stamp(now)
    told: JsonObject = {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": metadata(budget).get("generation"),
        "lastTransitionTime": since,
        "reason": reason,
        "message": "",
    }
    return [told]
