"""StatefulSets: pods with a name and a place of their own, one after the other."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import scaled, without_zeros
from muster.doors.kubernetes.controllers.changes import NOTHING, Create, Draft, Emit, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.history import History, template_of, used_revisions
from muster.doors.kubernetes.controllers.owning import claimed, pod_from
from muster.doors.kubernetes.controllers.pods import (
    is_available,
    is_finished,
    is_leaving,
    is_ready,
    next_available,
    phase,
)
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    part,
)
from muster.model.value import Instant

SOURCE = "statefulset-controller"
HASH = "controller.kubernetes.io/hash"
REVISION = "controller-revision-hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def sync(stateful_set: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Take the next step: create, replace or delete pods, in the order of their numbers."""
    if is_leaving(stateful_set):
        # What it owns goes now; a revision that was made again would keep it for ever.
        return NOTHING
    draft = Draft(stateful_set, SOURCE)
    pods = claimed(draft, cluster, POD)
    look = _Look(draft, pods, History(draft, cluster, HASH), now)
    look.steps()
    used = used_revisions(pods, REVISION) | {look.current, look.update}
    look.history.clean_up(used, look.spec.get("revisionHistoryLimit"))
    status = look.status()
    if status != part(stateful_set, "status"):
        draft.update_status({**stateful_set, "status": status})
    draft.look_again(next_available(pods, look.min_ready_s, now))
    return draft.outcome()


def ordinal(pod: JsonObject) -> int:
    """The number that its name ends in; -1 if there is none."""
    _, _, number = name_of(pod).rpartition("-")
    return int(number) if number.isdecimal() else -1


class _Look:
    """One look at a StatefulSet. created, deleted: what this look itself changes."""

    def __init__(
        self, draft: Draft, pods: Sequence[JsonObject], history: History, now: Instant
    ) -> None:
        self._draft = draft
        self._now = now
        self.history = history
        self.set = draft.about
        self.spec = part(self.set, "spec")
        self.min_ready_s: int = self.spec.get("minReadySeconds") or 0
        self.update = name_of(history.current)
        told = history.named(part(self.set, "status").get("currentRevision"))
        self.current = name_of(told) if told is not None else self.update
        self._start: int = part(self.spec, "ordinals").get("start") or 0
        self._wanted: int = self.spec.get("replicas", 1)
        self._in_turn = self.spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        self._pods = {ordinal(each): each for each in pods}
        self._created: list[str] = []
        self._deleted: list[str] = []

    def steps(self) -> None:
        """What is missing, then what is too much, then what is outdated."""
        if self._fill() and self._shrink():
            self._renew()

    def status(self) -> JsonObject:
        """Counts, and which revisions there are."""
        live = [each for each in self._pods.values() if not is_finished(each)]
        counted: JsonObject = {
            "observedGeneration": metadata(self.set).get("generation"),
            "replicas": len(live) + len(self._created),
            "readyReplicas": sum(_runs(each) for each in live),
            "availableReplicas": sum(self._is_available(each) for each in live),
            "currentReplicas": self._of_revision(live, self.current),
            "updatedReplicas": self._of_revision(live, self.update),
            "currentRevision": self.current,
            "updateRevision": self.update,
            "collisionCount": part(self.set, "status").get("collisionCount", 0),
            "conditions": items(self.set, "status", "conditions"),
        }
        self._complete(counted)
        return without_zeros(counted, "replicas", "availableReplicas", "collisionCount")

    def _complete(self, counted: JsonObject) -> None:
        """When every pod is new and ready, the new revision is the current one."""
        counts = ("updatedReplicas", "readyReplicas", "replicas")
        if self._strategy() == "RollingUpdate" and all(counted[e] == self._wanted for e in counts):
            counted["currentReplicas"] = counted["updatedReplicas"]
            counted["currentRevision"] = self.update

    def _of_revision(self, live: Sequence[JsonObject], name: str) -> int:
        there = [each for each in live if not is_leaving(each) and _revision(each) == name]
        left = [each for each in there if name_of(each) not in self._deleted]
        return len(left) + self._created.count(name)

    def _numbers(self) -> range:
        return range(self._start, self._start + self._wanted)

    def _fill(self) -> bool:
        """Create pods that are missing. Is everything as it must be before more is done?"""
        for number in self._numbers():
            pod = self._pods.get(number)
            if pod is None:
                self._create(number)
            elif is_finished(pod):
                if not is_leaving(pod):
                    self._delete(pod)
            elif not self._in_turn or (self._is_available(pod) and not is_leaving(pod)):
                continue
            if self._in_turn:
                return False
        return not self._created

    def _shrink(self) -> bool:
        """Delete pods beyond the wanted number, the last first. Are there none left?"""
        surplus = sorted(set(self._pods) - set(self._numbers()) - {-1}, reverse=True)
        unwell = [n for n in sorted(self._pods) if not self._is_available(self._pods[n])]
        for number in surplus:
            pod = self._pods[number]
            if is_leaving(pod):
                if self._in_turn:
                    return False
                continue
            # One that has ended will never be well again, so that nobody waits for it.
            waits = self._in_turn and not self._is_available(pod) and not is_finished(pod)
            if waits and number != unwell[0]:
                return False
            self._delete(pod)
            if self._in_turn:
                return False
        return not surplus

    def _renew(self) -> None:
        """Delete outdated pods, the last first, as many as may be unavailable at once."""
        if self._strategy() != "RollingUpdate":
            return
        bounds = part(self.spec, "updateStrategy", "rollingUpdate")
        numbers = list(reversed(self._numbers()))
        replicas = [self._pods[each] for each in numbers if each in self._pods]
        away = sum(not self._is_available(each) or is_leaving(each) for each in replicas)
        most = max(1, scaled(bounds.get("maxUnavailable", 1), self._wanted, up=True))
        first = self._start + (bounds.get("partition") or 0)
        outdated = [each for each in replicas if ordinal(each) >= first and self._is_outdated(each)]
        if not self._in_turn:
            for each in [one for one in outdated if not self._is_available(one)]:
                outdated.remove(each)
                self._delete(each)
        for each in outdated[: max(0, most - away)]:
            self._delete(each)

    def _is_outdated(self, pod: JsonObject) -> bool:
        return _revision(pod) != self.update and not is_leaving(pod)

    def _is_available(self, pod: JsonObject) -> bool:
        return _runs(pod) and is_available(pod, self.min_ready_s, self._now)

    def _strategy(self) -> str:
        return part(self.spec, "updateStrategy").get("type", "RollingUpdate")

    def _create(self, number: int) -> None:
        revision = self.history.current
        partition = part(self.spec, "updateStrategy", "rollingUpdate").get("partition") or 0
        kept = self.history.named(self.current)
        if (
            kept is not None
            and self._strategy() == "RollingUpdate"
            and (number < self._start + partition)
        ):
            revision = kept
        pod = self._pod(number, revision)
        self._created.append(name_of(revision))
        self._draft.make(
            Create(
                object=pod,
                emitted=self._event("Normal", "SuccessfulCreate", "Create", pod, "successful"),
                refusal=self._event("Warning", "FailedCreate", "Create", pod, "failed error: "),
            )
        )

    def _pod(self, number: int, revision: JsonObject) -> JsonObject:
        template = template_of(revision)
        pod = pod_from(template, self.set)
        name = f"{name_of(self.set)}-{number}"
        about = pod["metadata"]
        about["name"] = name
        about["labels"] = {
            **labels_of(template),
            REVISION: name_of(revision),
            POD_NAME: name,
            POD_INDEX: str(number),
        }
        pod["spec"]["hostname"] = name
        if self.spec.get("serviceName"):
            pod["spec"]["subdomain"] = self.spec["serviceName"]
        return pod

    def _delete(self, pod: JsonObject) -> None:
        self._deleted.append(name_of(pod))
        words = f"delete Pod {name_of(pod)} in StatefulSet {name_of(self.set)} successful"
        self._draft.delete(pod, "SuccessfulDelete", words)

    def _event(self, type_: str, reason: str, verb: str, pod: JsonObject, end: str) -> Emit:
        words = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(self.set)} {end}"
        return Emit(
            about=self.set,
            type="Normal" if type_ == "Normal" else "Warning",
            reason=reason,
            message=words,
            source=SOURCE,
        )


def _runs(pod: JsonObject) -> bool:
    return phase(pod) == "Running" and is_ready(pod)


def _revision(pod: JsonObject) -> str:
    return labels_of(pod).get(REVISION, "")
