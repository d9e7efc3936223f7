"""A pretend Kubernetes: the bookkeeping of its server, and pods that are moved by hand."""

from collections.abc import Sequence
from typing import Any

from muster.doors.kubernetes.controllers.autoscalers.readings import NoReadings, Readings
from muster.doors.kubernetes.controllers.changes import (
    Change,
    Create,
    Delete,
    Emit,
    Outcome,
    Update,
    UpdateStatus,
)
from muster.doors.kubernetes.controllers.cluster import Objects, kind_name
from muster.doors.kubernetes.controllers.pods import is_active, is_finished, is_leaving
from muster.doors.kubernetes.controllers.work import Surroundings, WorkSet, controllers
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    copied,
    items,
    metadata,
    name_of,
    part,
    uid_of,
)
from muster.model.value import SECOND, Instant

START = Instant(1_794_819_600_000)
MOST_STEPS = 1_000


class KubernetesWorld:
    """Objects, a clock that is moved by hand, and what the controllers said."""

    def __init__(self, readings: Readings | None = None) -> None:
        self.now = START
        self.objects = Objects()
        around = Surroundings(readings=readings or NoReadings(), pod_usage=_usage, root_ca="PEM")
        self.work = WorkSet(controllers(around))
        self.events: list[tuple[str, str, str]] = []
        self.quota: int | None = None
        self.created: list[str] = []
        self._serial = 0

    def create(self, obj: JsonObject) -> JsonObject:
        """Create an object as the server does."""
        self._serial += 1
        made = copied(obj)
        about = made.setdefault("metadata", {})
        about.setdefault("namespace", "default")
        about |= {
            "uid": f"uid-{self._serial:04}",
            "creationTimestamp": stamp(self.now),
            "generation": 1,
            "resourceVersion": str(self._serial),
        }
        if kind_name(made) == "Pod":
            made["status"] = {"phase": "Pending"}
        if kind_name(made) == "Job.batch":
            _prepare_job(made)
        self.created.append(name_of(made))
        self._put(made)
        return made

    def edit(self, obj: JsonObject, **spec: Any) -> JsonObject:
        """Change fields of the spec as a user does."""
        held = self.fresh(obj)
        return self.update({**held, "spec": {**held["spec"], **spec}})

    def update(self, obj: JsonObject) -> JsonObject:
        """Write everything but the status."""
        held = self.fresh(obj)
        changed = {**held, **{key: copied({"_": obj[key]})["_"] for key in obj if key != "status"}}
        about = {**metadata(obj)}
        for kept in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            if kept in metadata(held):
                about[kept] = metadata(held)[kept]
        if changed.get("spec") != held.get("spec"):
            about["generation"] += 1
        changed["metadata"] = about
        self._put(changed)
        self._remove_if_free(changed)
        return changed

    def update_status(self, obj: JsonObject) -> None:
        held = self.fresh(obj)
        about = {**metadata(held)}
        if "annotations" in metadata(obj):
            about["annotations"] = dict(metadata(obj)["annotations"])
        self._put({**held, "metadata": about, "status": copied(obj["status"])})

    def delete(self, obj: JsonObject, propagation: str = "Background") -> None:
        """Delete an object as the server does: at once, or marked while something holds it."""
        held = copied(self.fresh(obj))
        about = held["metadata"]
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation)
        if finalizer and finalizer not in about.setdefault("finalizers", []):
            about["finalizers"].append(finalizer)
        is_graceful = kind_name(held) == "Pod" and part(held, "spec").get("nodeName")
        about.setdefault("deletionTimestamp", stamp(self.now))
        if kind_name(held) == "Pod" and not (is_graceful and not is_finished(held)):
            about["deletionGracePeriodSeconds"] = 0
        elif kind_name(held) == "Pod":
            about.setdefault("deletionGracePeriodSeconds", 30)
        self._put(held)
        self._remove_if_free(held)

    def fresh(self, obj: JsonObject) -> JsonObject:
        """The object as it is now."""
        held = self.objects.by_uid(uid_of(obj))
        assert held is not None, f"{name_of(obj)} is not there"
        return held

    def is_there(self, obj: JsonObject) -> bool:
        return self.objects.by_uid(uid_of(obj)) is not None

    def pods(self, owner: JsonObject | None = None) -> list[JsonObject]:
        found = self.objects.list(POD)
        return [p for p in found if owner is None or uid_of(owner) in _owner_uids(p)]

    def active(self, owner: JsonObject | None = None) -> list[JsonObject]:
        return [pod for pod in self.pods(owner) if is_active(pod)]

    def of(self, kind: Kind) -> list[JsonObject]:
        return list(self.objects.list(kind))

    def runs(self, pod: JsonObject, node: str = "n1") -> None:
        """The pod starts and is ready."""
        held = copied(self.fresh(pod))
        held["spec"]["nodeName"] = node
        held["status"] = {"phase": "Running", "conditions": [self._ready("True")]}
        self._put(held)

    def ends(self, pod: JsonObject, *, code: int = 0) -> None:
        """The pod's container ends with an exit code."""
        held = copied(self.fresh(pod))
        held["spec"].setdefault("nodeName", "n1")
        ended = {"exitCode": code, "finishedAt": stamp(self.now)}
        held["status"] = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": [self._ready("False")],
            "containerStatuses": [
                {"name": "main", "restartCount": 0, "state": {"terminated": ended}}
            ],
        }
        self._put(held)

    def becomes_unready(self, pod: JsonObject) -> None:
        held = copied(self.fresh(pod))
        held["status"]["conditions"] = [self._ready("False")]
        self._put(held)

    def stops(self, pod: JsonObject) -> None:
        """The processes of a pod that is being deleted have ended."""
        held = copied(self.fresh(pod))
        if not is_finished(held):
            held["status"] = {"phase": "Failed", "conditions": [self._ready("False")]}
        held["metadata"]["deletionGracePeriodSeconds"] = 0
        self._put(held)
        self._remove_if_free(held)

    def all_stop(self) -> None:
        """Every pod that is being deleted ends."""
        for pod in self.pods():
            if is_leaving(pod):
                self.stops(pod)

    def passes(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds * SECOND)

    def settles(self) -> None:
        """Run the controllers until nothing is left to do now."""
        for _ in range(MOST_STEPS):
            if not self.step():
                return
        raise AssertionError(f"the controllers never settle: {self.events[-5:]}")

    def step(self) -> bool:
        """Let one controller look at one object, and carry out what it wants."""
        item = self.work.take(self.now)
        if item is None:
            return False
        outcome = self.work.outcome(item, self.objects, self.now)
        if outcome is None:
            return True
        obj = self.objects.by_uid(item.uid)
        assert obj is not None
        self.carry_out(outcome)
        if outcome.again_at is not None:
            self.work.look_again(item.controller, obj, outcome.again_at)
        return True

    def carry_out(self, outcome: Outcome) -> None:
        is_refused = False
        for change in outcome.changes:
            if is_refused and isinstance(change, Create):
                continue
            is_refused |= not self._do(change)

    def said(self, obj: JsonObject) -> list[tuple[str, str]]:
        """Reason and message of the events about an object."""
        return [(reason, text) for uid, reason, text in self.events if uid == uid_of(obj)]

    def _do(self, change: Change) -> bool:
        match change:
            case Create():
                return self._try_to_create(change)
            case Update():
                self.update(change.object)
            case UpdateStatus():
                self.update_status(change.object)
            case Delete():
                if self.is_there(change.object):
                    self.delete(change.object, change.propagation)
                self._emit(change.emitted)
            case Emit():
                self._emit(change)
        return True

    def _try_to_create(self, change: Create) -> bool:
        owner = change.refusal.about if change.refusal else None
        if kind_name(change.object) == "Pod" and self.quota is not None:
            if len(self.active()) >= self.quota:
                assert owner is not None
                assert change.refusal is not None
                self.objects.refuse(uid_of(owner), "exceeded quota")
                self.events.append(
                    (uid_of(owner), change.refusal.reason, change.refusal.message + "quota")
                )
                self.work.look_again("replicaset", owner, Instant(self.now + SECOND))
                return False
            if owner is not None:
                self.objects.refuse(uid_of(owner), None)
        self.create(change.object)
        self._emit(change.emitted)
        return True

    def _emit(self, event: Emit | None) -> None:
        if event is not None:
            self.events.append((uid_of(event.about), event.reason, event.message))

    def _put(self, obj: JsonObject) -> None:
        before = self.objects.by_uid(uid_of(obj))
        self.objects.put(obj)
        for each in (before, obj):
            if each is not None:
                self.work.changed(each, self.objects)

    def _remove_if_free(self, obj: JsonObject) -> None:
        about = metadata(obj)
        if not is_leaving(obj) or about.get("finalizers") or items(obj, "spec", "finalizers"):
            return
        if kind_name(obj) == "Pod" and about.get("deletionGracePeriodSeconds"):
            return
        self.objects.remove(self.objects.by_uid(uid_of(obj)))
        self.work.changed(obj, self.objects)

    def _ready(self, status: str) -> JsonObject:
        return {"type": "Ready", "status": status, "lastTransitionTime": stamp(self.now)}


def job(name: str = "train", **spec: Any) -> JsonObject:
    template = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    wanted: JsonObject = {"parallelism": 1, "completions": 1, "backoffLimit": 6}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**wanted, "template": template, **spec},
    }


def deployment(name: str = "web", **spec: Any) -> JsonObject:
    return _workload("Deployment", name, {"progressDeadlineSeconds": 600, **spec})


def replica_set(name: str = "web", **spec: Any) -> JsonObject:
    return _workload("ReplicaSet", name, spec)


def pod(name: str, **labels: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [CONTAINER]},
    }


def template(image: str = "one", **labels: str) -> JsonObject:
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": containers}}


CONTAINER: JsonObject = {"name": "main", "image": "busybox"}


def _workload(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            **spec,
        },
    }


def _usage(_: JsonObject, pods: Sequence[JsonObject]) -> dict[str, str]:
    return {"pods": str(len(pods))}


def _owner_uids(obj: JsonObject) -> set[str]:
    return {each["uid"] for each in items(obj, "metadata", "ownerReferences")}


def _prepare_job(made: JsonObject) -> None:
    """The labels by which a Job knows its pods."""
    key = "batch.kubernetes.io/controller-uid"
    labels = made["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels[key] = uid_of(made)
    made["spec"].setdefault("selector", {"matchLabels": {key: uid_of(made)}})
