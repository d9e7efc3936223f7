"""DaemonSets: one pod on every node that suits it.

What Muster's own facilities already do on every node, such as NVIDIA's device plugin,
is accepted and answered by them: no pods are started, and an event says so.
"""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import scaled, without_zeros
from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.history import History, used_revisions
from muster.doors.kubernetes.controllers.owning import claimed, named, pod_from
from muster.doors.kubernetes.controllers.placing import suits, untolerated
from muster.doors.kubernetes.controllers.pods import (
    created_at,
    finished_at,
    is_available,
    is_finished,
    is_leaving,
    is_ready,
    next_available,
    phase,
)
from muster.doors.kubernetes.objects.kinds import NODE, POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.model.value import SECOND, Instant

SOURCE = "daemonset-controller"
HASH = "controller-revision-hash"
GENERATION = "pod-template-generation"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
FAILED_AT_ONCE = 10 * SECOND
"""A pod that failed sooner than this after its start is replaced only so much later."""

OWN_FACILITIES = {
    "k8s-device-plugin": "GPUs are offered as nvidia.com/gpu by Muster itself",
    "gpu-feature-discovery": "nodes are labelled with their GPUs by Muster itself",
    "dcgm-exporter": "GPUs are observed by Muster itself",
}
"""Images, by the last part of their name, whose work Muster does itself."""


def sync(daemon_set: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Create and delete pods so that each suitable node has one, and say how many there are."""
    if is_leaving(daemon_set):
        # What it owns goes now; a revision that was made again would keep it for ever.
        return NOTHING
    draft = Draft(daemon_set, SOURCE)
    nodes = cluster.list(NODE)
    facility = own_facility(daemon_set)
    if facility is not None:
        _answer(draft, nodes, facility)
        return draft.outcome()
    history = History(draft, cluster, HASH)
    look = _Look(draft, nodes, claimed(draft, cluster, POD), now)
    look.hash = history.hash_of(history.current)
    look.manage(cluster)
    hashes = used_revisions(look.pods, HASH)
    used = {name_of(each) for each in history.revisions if history.hash_of(each) in hashes}
    limit = part(daemon_set, "spec").get("revisionHistoryLimit")
    history.clean_up(used | {name_of(history.current)}, limit)
    status = look.status()
    if status != part(daemon_set, "status"):
        draft.update_status({**daemon_set, "status": status})
    draft.look_again(next_available(look.pods, look.min_ready_s, now))
    return draft.outcome()


def own_facility(daemon_set: JsonObject) -> str | None:
    """What Muster does itself in the place of these pods, in words."""
    for container in items(daemon_set, "spec", "template", "spec", "containers"):
        image = str(container.get("image", "")).partition("@")[0]
        name = image.rpartition("/")[2].partition(":")[0]
        if name in OWN_FACILITIES:
            return OWN_FACILITIES[name]
    return None


def _answer(draft: Draft, nodes: Sequence[JsonObject], facility: str) -> None:
    daemon_set = draft.about
    suited = sum(suits(part(daemon_set, "spec", "template", "spec"), each) for each in nodes)
    status = _counts(
        metadata(daemon_set).get("generation"), [suited] * 5 if suited else [0] * 5, astray=0
    )
    if status == part(daemon_set, "status"):
        return
    # A new one has a status already, with zeros in it.
    if "observedGeneration" not in part(daemon_set, "status"):
        draft.emit("AnsweredByMuster", f"No pods are started: {facility}")
    draft.update_status({**daemon_set, "status": status})


class _Look:
    """One look at a DaemonSet: its pods by the node that they are meant for."""

    def __init__(
        self,
        draft: Draft,
        nodes: Sequence[JsonObject],
        pods: Sequence[JsonObject],
        now: Instant,
    ) -> None:
        self._draft = draft
        self._now = now
        self.set = draft.about
        self.spec = part(self.set, "spec")
        self.min_ready_s: int = self.spec.get("minReadySeconds") or 0
        self.hash = ""
        self.pods = pods
        self._nodes = {name_of(each): each for each in nodes}
        self._by_node: dict[str, list[JsonObject]] = {}
        for each in pods:
            if not (is_finished(each) and is_leaving(each)):
                self._by_node.setdefault(_target(each), []).append(each)
        self._tolerations = _tolerations(part(self.spec, "template", "spec"))
        self._deleted: set[str] = set()

    def manage(self, cluster: Cluster) -> None:
        """First what is missing or too much, then what is outdated."""
        missing: list[str] = []
        for name, node in self._nodes.items():
            there = self._by_node.get(name, [])
            if self._should_run(node) and not there:
                missing.append(name)
            elif self._may_stay(node):
                self._tidy(name, there)
            else:
                self._delete_all(there)
        self._delete_all(self._strays())
        if self._strategy() == "RollingUpdate":
            missing += self._renew()
        for ordinal, node_name in enumerate(missing):
            self._create(node_name, cluster, ordinal)

    def status(self) -> JsonObject:
        wanted = current = ready = updated = there = astray = 0
        for name, node in self._nodes.items():
            live = [each for each in self._by_node.get(name, []) if not is_finished(each)]
            live.sort(key=lambda each: (is_leaving(each), created_at(each), name_of(each)))
            if not self._should_run(node):
                astray += bool(live)
                continue
            wanted += 1
            if not live:
                continue
            pod = live[0]
            current += 1
            ready += is_ready(pod)
            there += self._is_available(pod)
            updated += labels_of(pod).get(HASH) == self.hash
        counts = [wanted, current, ready, updated, there]
        return _counts(metadata(self.set).get("generation"), counts, astray=astray)

    def _strays(self) -> list[JsonObject]:
        """Pods of nodes that are not there any more."""
        gone = self._by_node.keys() - self._nodes.keys()
        return [each for name in sorted(gone) for each in self._by_node[name]]

    def _should_run(self, node: JsonObject) -> bool:
        return self._suits(node) and not untolerated(
            _taints(node, "NoSchedule", "NoExecute"), self._tolerations
        )

    def _may_stay(self, node: JsonObject) -> bool:
        return self._suits(node) and not untolerated(_taints(node, "NoExecute"), self._tolerations)

    def _suits(self, node: JsonObject) -> bool:
        wanted = part(self.spec, "template", "spec")
        if wanted.get("nodeName") and wanted["nodeName"] != name_of(node):
            return False
        return suits(wanted, node)

    def _tidy(self, node: str, pods: Sequence[JsonObject]) -> None:
        """Delete pods that have ended, and all but one of those that run."""
        running: list[JsonObject] = []
        for pod in pods:
            where = f"daemon pod {namespace_of(pod)}/{name_of(pod)} on node {node}"
            if is_leaving(pod):
                continue
            if phase(pod) == "Failed":
                if self._may_replace(pod):
                    self._draft.warn(
                        "FailedDaemonPod", f"Found failed {where}, will try to kill it"
                    )
                    self._delete(pod)
            elif phase(pod) == "Succeeded":
                self._draft.emit(
                    "SucceededDaemonPod", f"Found succeeded {where}, will try to delete it"
                )
                self._delete(pod)
            else:
                running.append(pod)
        running.sort(key=lambda each: (phase(each) == "Pending", created_at(each), name_of(each)))
        if self._max_surge() == 0:
            self._delete_all(running[1:])
        else:
            for fresh in (True, False):
                same = [each for each in running if self._is_new(each) is fresh]
                self._delete_all(same[1:])

    def _may_replace(self, pod: JsonObject) -> bool:
        ended = finished_at(pod)
        if ended - created_at(pod) >= FAILED_AT_ONCE or self._now >= ended + FAILED_AT_ONCE:
            return True
        self._draft.look_again(Instant(ended + FAILED_AT_ONCE))
        return False

    def _renew(self) -> list[str]:
        """Delete outdated pods as far as may be; the nodes that get a new one beside the old."""
        away, surging = 0, 0
        outdated: list[tuple[str, JsonObject]] = []
        for name, node in self._nodes.items():
            if not self._should_run(node):
                continue
            live = [e for e in self._by_node.get(name, []) if self._is_live(e)]
            new = [each for each in live if self._is_new(each)]
            old = [each for each in live if not self._is_new(each)]
            away += not any(self._is_available(each) for each in live)
            if new and old:
                surging += 1
                if self._is_available(new[0]) or not is_ready(old[0]):
                    self._delete(old[0])
            elif old:
                outdated.append((name, old[0]))
        if self._max_surge():
            unwell = [name for name, pod in outdated if not self._is_available(pod)]
            well = [name for name, pod in outdated if self._is_available(pod)]
            return unwell + well[: max(0, self._max_surge() - surging)]
        self._delete_all([pod for _, pod in outdated if not self._is_available(pod)])
        well_pods = [pod for _, pod in outdated if self._is_available(pod)]
        self._delete_all(well_pods[: max(0, self._max_unavailable() - away)])
        return []

    def _is_live(self, pod: JsonObject) -> bool:
        return not is_leaving(pod) and not is_finished(pod) and name_of(pod) not in self._deleted

    def _is_new(self, pod: JsonObject) -> bool:
        return labels_of(pod).get(HASH) == self.hash

    def _is_available(self, pod: JsonObject) -> bool:
        return not is_leaving(pod) and is_available(pod, self.min_ready_s, self._now)

    def _strategy(self) -> str:
        return part(self.spec, "updateStrategy").get("type", "RollingUpdate")

    def _wanted(self) -> int:
        return sum(map(self._should_run, self._nodes.values()))

    def _max_surge(self) -> int:
        bounds = part(self.spec, "updateStrategy", "rollingUpdate")
        return scaled(bounds.get("maxSurge", 0), self._wanted(), up=True)

    def _max_unavailable(self) -> int:
        bounds = part(self.spec, "updateStrategy", "rollingUpdate")
        return scaled(bounds.get("maxUnavailable", 1), self._wanted(), up=True)

    def _create(self, node: str, cluster: Cluster, ordinal: int) -> None:
        template = part(self.spec, "template")
        pod = pod_from(template, self.set)
        generation = annotations_of(self.set).get(TEMPLATE_GENERATION, "1")
        pod["metadata"]["labels"] = {
            **labels_of(template),
            HASH: self.hash,
            GENERATION: generation,
        }
        pod["spec"] = _bound_to(pod["spec"], node)
        pod["spec"]["tolerations"] = self._tolerations
        pod = named(pod, cluster, self._now, ordinal=ordinal)
        self._draft.create(pod, "SuccessfulCreate", f"Created pod: {name_of(pod)}")

    def _delete(self, pod: JsonObject) -> None:
        if name_of(pod) in self._deleted or is_leaving(pod):
            return
        self._deleted.add(name_of(pod))
        self._draft.delete(pod, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _delete_all(self, pods: Sequence[JsonObject]) -> None:
        for each in pods:
            self._delete(each)


def _counts(generation: int | None, counts: Sequence[int], *, astray: int) -> JsonObject:
    wanted, current, ready, updated, there = counts
    return without_zeros(
        {
            "desiredNumberScheduled": wanted,
            "currentNumberScheduled": current,
            "numberReady": ready,
            "updatedNumberScheduled": updated,
            "numberAvailable": there,
            "numberUnavailable": wanted - there,
            "numberMisscheduled": astray,
            "observedGeneration": generation,
        },
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberMisscheduled",
    )


def _taints(node: JsonObject, *effects: str) -> list[JsonObject]:
    return [each for each in items(node, "spec", "taints") if each.get("effect") in effects]


def _tolerations(pod_spec: JsonObject) -> list[JsonObject]:
    """Its own, and those by which a daemon stays where other pods leave."""
    added = [
        *(("not-ready", "NoExecute"), ("unreachable", "NoExecute")),
        *(("disk-pressure", "NoSchedule"), ("memory-pressure", "NoSchedule")),
        *(("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")),
    ]
    if pod_spec.get("hostNetwork"):
        added.append(("network-unavailable", "NoSchedule"))
    kept = copied({"all": items(pod_spec, "tolerations")})["all"]
    for name, effect in added:
        one = {"effect": effect, "key": f"node.kubernetes.io/{name}", "operator": "Exists"}
        if one not in kept:
            kept.append(one)
    return kept


def _bound_to(pod_spec: JsonObject, node: str) -> JsonObject:
    """The spec with an affinity that has this node alone."""
    wanted = copied(pod_spec)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = wanted.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = items(required, "nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**each, "matchFields": [field]} for each in terms]
    return wanted


def _target(pod: JsonObject) -> str:
    """The node that it runs on, or is meant for."""
    spec = part(pod, "spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = part(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in items(required, "nodeSelectorTerms"):
        for each in items(term, "matchFields"):
            if each["key"] == "metadata.name" and each.get("values"):
                return str(each["values"][0])
    return ""
