"""What quotas count, in the transaction that writes a new object.

A view shows what was committed. Of two who look at the same moment, the second is counted here.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal

from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.kinds import POD, RESOURCE_QUOTA, SERVICE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods import quantities, quota
from muster.model.kept_object import KeptObject, ObjectKey

OVER = ("Succeeded", "Failed")
MOST_READ = 50_000
"""So many pods are remembered as they were read: the journal must not wait for that."""


class Counting:
    """Counts objects as a transaction has them. For the thread of the journal."""

    def __init__(self, read: Callable[[KeptObject], JsonObject]) -> None:
        self._read = read
        self._specs: dict[ObjectKey, tuple[int, JsonObject | None]] = {}

    def demand_room_for(self, pod: JsonObject, transaction: Transaction) -> None:
        """StatusError when the quotas of its namespace leave no room for a pod that is written."""
        quotas = self._quotas(namespace_of(pod), transaction)
        if not quotas:
            return
        others = [
            spec
            for kept in transaction.objects_on((POD.group, POD.plural, namespace_of(pod)))
            if kept.key.name != name_of(pod) and (spec := self._live_spec(kept)) is not None
        ]
        refused = quota.refusal(pod, quotas, used_of(quotas, others))
        if refused is not None:
            raise refused

    def demand_place_for(self, kind: Kind, new: JsonObject, transaction: Transaction) -> None:
        """StatusError when, with this one, which is written, there are too many of its kind."""
        space = namespace_of(new)
        quotas = self._quotas(space, transaction) if space else []
        if not quotas:
            return
        there = transaction.objects_on((kind.group, kind.plural, space))
        others = [each for each in there if each.key.name != name_of(new)]
        services = map(self._read, others) if kind == SERVICE else ()
        used = quota.objects_usage(kind, len(others), services)
        refused = quota.count_refusal(kind, new, quotas, used)
        if refused is not None:
            raise refused

    def _quotas(self, namespace: str, transaction: Transaction) -> list[JsonObject]:
        shelf = (RESOURCE_QUOTA.group, RESOURCE_QUOTA.plural, namespace)
        return [self._read(each) for each in transaction.objects_on(shelf)]

    def _live_spec(self, kept: KeptObject) -> JsonObject | None:
        """The spec of a pod that is not over."""
        version, spec = self._specs.get(kept.key, (None, None))
        if version != kept.version:
            pod = self._read(kept)
            spec = live_spec(pod)
            if len(self._specs) >= MOST_READ:
                self._specs.clear()
            self._specs[kept.key] = (kept.version, spec)
        return spec


def live_spec(pod: JsonObject) -> JsonObject | None:
    """Its spec; None of a pod that is over, and counts no more."""
    return None if part(pod, "status").get("phase") in OVER else part(pod, "spec")


def used_of(
    quotas: Iterable[JsonObject], specs: Iterable[JsonObject]
) -> dict[str, dict[str, Decimal]]:
    """What pods with these specs count as, for each quota."""
    live = list(specs)
    return {
        name_of(each): quantities.added(
            quota.charge_of(spec) for spec in live if quota.matches(each, spec)
        )
        for each in quotas
    }
