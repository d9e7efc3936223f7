"""ResourceQuotas: how much of each is used, counted again whenever something comes or goes."""

from collections.abc import Callable, Mapping, Sequence

from muster.doors.kubernetes.controllers.changes import Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster, kind_name
from muster.doors.kubernetes.controllers.pods import is_finished
from muster.doors.kubernetes.objects.kinds import KINDS, POD, SERVICE
from muster.doors.kubernetes.objects.services import ports_and_balancers
from muster.doors.kubernetes.objects.value import JsonObject, namespace_of, part
from muster.model.value import Instant

SOURCE = "resourcequota-controller"

PodUsage = Callable[[JsonObject, Sequence[JsonObject]], Mapping[str, str]]
"""What pods use of a quota, by resource, as the quota shows it."""

PLAIN_COUNTS = frozenset(
    "configmaps persistentvolumeclaims replicationcontrollers resourcequotas secrets services "
    "services.loadbalancers services.nodeports".split()
)
_RESOURCES = {each.qualified_kind: each.resource for each in KINDS}


class Quotas:
    """All quotas, with how pods are charged."""

    def __init__(self, usage: PodUsage) -> None:
        self._usage = usage

    def sync(self, quota: JsonObject, cluster: Cluster, now: Instant) -> Outcome:  # noqa: ARG002 - as all are
        """Say what is allowed and what is used."""
        draft = Draft(quota, SOURCE)
        hard = part(quota, "spec", "hard")
        space = namespace_of(quota)
        pods = [each for each in cluster.list(POD, space) if not is_finished(each)]
        used = dict(self._usage(quota, pods))
        counted = [name for name in hard if name.startswith("count/") or name in PLAIN_COUNTS]
        # To count everything takes long where there is much.
        is_scoped = "scopes" in part(quota, "spec") or "scopeSelector" in part(quota, "spec")
        counts = _counts(cluster.within(space)) if counted and not is_scoped else {}
        used |= {name: str(counts.get(name.removeprefix("count/"), 0)) for name in counted}
        shown = {name: used.get(name, "0") for name in hard}
        status = {"hard": dict(hard), "used": shown}
        if status != part(quota, "status"):
            draft.update_status({**quota, "status": status})
        return draft.outcome()


def _counts(objects: Sequence[JsonObject]) -> dict[str, int]:
    """By resource, how many objects there are."""
    counts: dict[str, int] = {}
    for each in objects:
        resource = _RESOURCES.get(kind_name(each), "")
        counts[resource] = counts.get(resource, 0) + 1
        if resource == SERVICE.resource:
            for name, more in ports_and_balancers(each).items():
                counts[name] = counts.get(name, 0) + more
    return counts
