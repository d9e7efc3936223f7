"""What is asked of all pods again and again, read once for each version of them."""

from collections.abc import Iterator

from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    metadata,
    part,
)
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB, is_marked
from muster.doors.kubernetes.serve.counting import OVER
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.kept_object import KeptObject
from muster.model.value import Value

Place = tuple[str, str]
"""Namespace and name."""


class PodFacts(Value):
    """Some of a pod. gang_job: of which job it is a part, with others; is_marked: as of a gang."""

    version: int
    gang_job: str
    is_marked: bool
    is_pending: bool
    is_over: bool
    is_gated: bool
    is_leaving: bool

    @property
    def is_waiting(self) -> bool:
        """Does it wait for something of which no commit may tell?"""
        return self.is_pending or bool(self.gang_job and self.is_leaving)

    @property
    def may_be_formed(self) -> bool:
        """Is it of a gang that waits for others?"""
        is_free = self.is_pending and not (self.is_gated or self.is_leaving)
        return self.is_marked and is_free and not self.gang_job


class KnownPods:
    """Any thread may ask; the facts of each version are found out by whoever asks first."""

    def __init__(self, view: ObjectView) -> None:
        self._view = view
        self._known: dict[Place, PodFacts] = {}

    def all(self, namespace: str = "") -> Iterator[tuple[KeptObject, PodFacts]]:
        """Every pod that there is, or those of a namespace."""
        kept = self._view.kept(POD, namespace)[1]
        if not namespace and len(self._known) > 2 * len(kept):
            there = {(each.key.namespace, each.key.name) for each in kept}
            self._known = {place: it for place, it in self._known.items() if place in there}
        for each in kept:
            yield each, self._facts(each)

    def _facts(self, kept: KeptObject) -> PodFacts:
        place = (kept.key.namespace, kept.key.name)
        known = self._known.get(place)
        if known is None or known.version != kept.version:
            known = self._known[place] = _facts_of(self._view.read(kept), kept.version)
        return known


def _facts_of(pod: JsonObject, version: int) -> PodFacts:
    phase = part(pod, "status").get("phase")
    return PodFacts(
        version=version,
        gang_job=str(annotations_of(pod).get(GANG_JOB) or ""),
        is_marked=is_marked(pod),
        is_pending=phase in ("Pending", None),
        is_over=phase in OVER,
        is_gated=bool(items(part(pod, "spec"), "schedulingGates")),
        is_leaving="deletionTimestamp" in metadata(pod),
    )
