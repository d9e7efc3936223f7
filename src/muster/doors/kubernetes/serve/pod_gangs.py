"""Forms gangs: when enough of its pods are there, they become one job."""

import logging
import uuid
from collections.abc import Callable
from functools import partial

from muster.controller.messages import Caller
from muster.controller.use_cases.objects import ObjectsWrite, ObjectWrite
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.errors import StatusError, forbidden
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB, Gang, is_marked, waits_for
from muster.doors.kubernetes.pods.gangs_of import DifferError, Member, gang_job, in_order
from muster.doors.kubernetes.serve.counting import OVER
from muster.doors.kubernetes.serve.pod_entry import PodEntry
from muster.doors.kubernetes.serve.pod_facts import KnownPods
from muster.doors.kubernetes.serve.pod_jobs import GANG_LABEL, POD_LABEL, ROOT, UID_LABEL
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.request.parse import Wanted
from muster.model.errors import ForbiddenError, MusterError, RefusedError
from muster.model.value import Instant, Value, replace

log = logging.getLogger("muster.kubernetes")

TRIES_AGAIN_MS = 10_000
"""What was refused may be allowed after a while: rules and nodes change."""


class Waiting(Value):
    """A pod that waits for its gang, and why."""

    pod: JsonObject
    why: str


class PodGangs:
    """Looks at pods that wait for each other. One thread calls."""

    def __init__(
        self,
        service: Service,
        entry: PodEntry,
        pods: KnownPods,
        sealing: Sealing,
        clock: Callable[[], Instant],
    ) -> None:
        self._service = service
        self.pods = pods
        self._view = entry.view
        self._entry = entry
        self._sealing = sealing
        self._clock = clock
        self._refused: dict[tuple[str, ...], tuple[Instant, str]] = {}

    def look(self) -> list[Waiting]:
        """Form what can be formed; the pods that still wait, with the reason."""
        still: list[Waiting] = []
        for gang, pods in self._assembling():
            still += self._formed(gang, in_order(pods))
        return still

    def is_one_of(self, pod: JsonObject) -> bool:
        """Is it of a gang, formed or not?"""
        return GANG_JOB in annotations_of(pod) or is_marked(pod)

    def _assembling(self) -> list[tuple[Gang, list[JsonObject]]]:
        found: dict[tuple[str, str], tuple[Gang, list[JsonObject]]] = {}
        for kept, facts in self.pods.all():
            if not facts.may_be_formed:
                continue
            pod = self._view.read(kept)
            gang = self._entry.gang_of(pod)
            if gang is not None:
                found.setdefault((gang.namespace, gang.name), (gang, []))[1].append(pod)
        return [found[key] for key in sorted(found)]

    def _formed(self, gang: Gang, pods: list[JsonObject]) -> list[Waiting]:
        """Whoever comes after the gang has started starts alone."""
        if not gang.missing and (gang.least == 1 or self._has_begun(gang)):
            return [each for pod in pods for each in self._submitted(gang, [pod])]
        if gang.missing or len(pods) < gang.least:
            why = waits_for(gang, len(pods))
            return [Waiting(pod=pod, why=why) for pod in pods]
        first, later = pods[: gang.least], pods[gang.least :]
        return [
            *self._submitted(gang, first),
            *(each for pod in later for each in self._submitted(gang, [pod])),
        ]

    def _has_begun(self, gang: Gang) -> bool:
        """Is a job of this gang not over?"""
        formed = (
            self._view.read(kept) for kept, facts in self.pods.all(gang.namespace) if facts.gang_job
        )
        return any(
            part(pod, "status").get("phase") not in OVER and self._is_of(pod, gang)
            for pod in formed
        )

    def _is_of(self, pod: JsonObject, gang: Gang) -> bool:
        found = self._entry.gang_of(pod)
        return found is not None and found.name == gang.name

    def _submitted(self, gang: Gang, pods: list[JsonObject]) -> list[Waiting]:
        """One job for these pods, in the commit that says so in them."""
        uids, now = tuple(map(uid_of, pods)), self._clock()
        until, why = self._refused.pop(uids, (now, ""))
        if now < until:
            self._refused[uids] = (until, why)
            return [Waiting(pod=pod, why=why) for pod in pods]
        try:
            self._submit(gang, pods)
        except (DifferError, StatusError, RefusedError, ForbiddenError) as error:
            why = f"gang {gang.name.rpartition('/')[2]} cannot start: {error}"
            self._refused[uids] = (Instant(now + TRIES_AGAIN_MS), why)
            return [Waiting(pod=pod, why=why) for pod in pods]
        except MusterError as error:
            # Somebody was quicker, or nothing can be written now: it is looked at again.
            log.debug("a gang was not formed: %s", error)
        return []

    def _submit(self, gang: Gang, pods: list[JsonObject]) -> None:
        creators = {self._entry.creator_of(pod) for pod in pods}
        if len(creators) > 1:
            # One job has one user: what others put beside it must not run as that person.
            raise forbidden(POD, name_of(pods[0]), "the pods of a gang must be one person's")
        members = [Member(pod=pod, wanted=self._entry.wanted(pod)) for pod in pods]
        # Not that of a pod, which may be a part of another job when this one is over.
        uid = str(uuid.uuid4())
        if len(members) == 1:
            wanted, uid = members[0].wanted, uid_of(pods[0])
            mark = {POD_LABEL: f"{namespace_of(pods[0])}/{name_of(pods[0])}"}
        else:
            wanted = gang_job(gang.name, members)
            mark = {GANG_LABEL: f"{gang.namespace}/{gang.name.rpartition('/')[2]}"}
        labels = {key: text for key, text in wanted.spec.labels.items() if key != POD_LABEL}
        spec = replace(
            wanted.spec,
            labels={**labels, **mark, UID_LABEL: uid},
        )
        writes = tuple(self._write(pod, {GANG_JOB: uid}) for pod in pods)
        caller = self._entry.creator_of(pods[0])
        enter: Callable[[Transaction], None] = partial(
            self._enter, caller, replace(wanted, spec=spec)
        )
        wish = ObjectsWrite(caller=caller, writes=writes, also=enter)
        self._service.write_objects(wish).result()

    def _enter(self, caller: Caller, wanted: Wanted, transaction: Transaction) -> None:
        self._service.entering(caller, wanted.spec, held=wanted.held)(transaction)

    def dissolve(self, pods: list[JsonObject]) -> None:
        """One of them is gone before they started: the others wait for another again."""
        writes = tuple(self._write(pod, {}) for pod in pods)
        self._service.write_objects(ObjectsWrite(caller=ROOT, writes=writes)).result()

    def _write(self, pod: JsonObject, mark: dict[str, str]) -> ObjectWrite:
        kept = self._view.find(POD, namespace_of(pod), name_of(pod))
        new = copied(pod)
        said = {name: text for name, text in annotations_of(pod).items() if name != GANG_JOB}
        metadata(new)["annotations"] = {**said, **mark}
        if kept is None:
            raise DifferError(f"pod {name_of(pod)} is gone")
        return ObjectWrite(
            key=kept.key, seen=kept.version, body=self._sealing.closed(kept.key, new)
        )
