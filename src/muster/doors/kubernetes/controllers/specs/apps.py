"""ReplicaSets, Deployments, StatefulSets and DaemonSets: defaults, and what is refused."""

from collections.abc import Iterator

from muster.doors.kubernetes.controllers.daemon_sets import TEMPLATE_GENERATION
from muster.doors.kubernetes.controllers.specs.fields import (
    PodSpecs,
    always_causes,
    amount_causes,
    immutable,
    is_zero,
    not_negative,
    not_over_100_percent,
    selector_causes,
    template_causes,
)
from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    part,
)

HISTORY = 10
MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
ONLY_THESE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
    " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
    " 'minReadySeconds' are forbidden"
)
NO_CLAIMS = "Muster keeps no PersistentVolumeClaims: use emptyDir or hostPath volumes instead"


class Apps:
    """Workloads that keep pods running, beside what is known of pods."""

    def __init__(self, pods: PodSpecs) -> None:
        self._pods = pods

    def default_replica_set(self, obj: JsonObject) -> JsonObject:
        spec = self._filled(obj)
        spec.setdefault("replicas", 1)
        labels = part(spec, "template", "metadata", "labels")
        if labels and not part(obj, "metadata", "labels"):
            obj["metadata"]["labels"] = dict(labels)
        return obj

    def default_replication(self, obj: JsonObject) -> JsonObject:
        """A ReplicationController: its selector is plain labels, and may be left out."""
        self.default_replica_set(obj)
        spec = obj["spec"]
        labels = part(spec, "template", "metadata", "labels")
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)
        return obj

    def default_deployment(self, obj: JsonObject) -> JsonObject:
        spec = self._filled(obj)
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            bounds = strategy.setdefault("rollingUpdate", {})
            bounds.setdefault("maxUnavailable", "25%")
            bounds.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", HISTORY)
        spec.setdefault("progressDeadlineSeconds", 600)
        return obj

    def default_stateful_set(self, obj: JsonObject) -> JsonObject:
        spec = self._filled(obj)
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("partition", 0)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        policy.setdefault("whenDeleted", "Retain")
        policy.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", HISTORY)
        return obj

    def default_daemon_set(self, obj: JsonObject) -> JsonObject:
        spec = self._filled(obj)
        strategy = spec.setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            bounds = strategy.setdefault("rollingUpdate", {})
            bounds.setdefault("maxUnavailable", 1)
            bounds.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", HISTORY)
        return obj

    def replica_set_causes(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        spec = part(obj, "spec")
        causes = list(not_negative(spec, "spec", "replicas", "minReadySeconds"))
        causes += selector_causes(spec, "spec", "deployment")
        causes += self._template(spec, "ReplicaSet")
        return causes + list(_unchanged(spec, old, "selector"))

    def replication_causes(self, obj: JsonObject, _: JsonObject | None) -> list[Cause]:
        spec = part(obj, "spec")
        causes = list(not_negative(spec, "spec", "replicas", "minReadySeconds"))
        if not spec.get("selector"):
            causes.append(required("spec.selector"))
        as_selector = {**spec, "selector": {"matchLabels": part(spec, "selector")}}
        return causes + list(self._template(as_selector, "ReplicationController"))

    def deployment_causes(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        spec = part(obj, "spec")
        causes = list(not_negative(spec, "spec", "replicas"))
        causes += selector_causes(spec, "spec", "deployment")
        causes += self._template(spec, "ReplicaSet")
        causes += _strategy_causes(spec)
        names = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
        causes += not_negative(spec, "spec", *names)
        deadline_s, ready_s = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
        if deadline_s is not None and deadline_s <= ready_s:
            words = "must be greater than minReadySeconds"
            causes.append(invalid("spec.progressDeadlineSeconds", deadline_s, words))
        return causes + list(_unchanged(spec, old, "selector"))

    def stateful_set_causes(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        spec = part(obj, "spec")
        causes = list(_management_causes(spec))
        causes += _update_causes(spec)
        if items(spec, "volumeClaimTemplates"):
            causes.append(forbidden_field("spec.volumeClaimTemplates", NO_CLAIMS))
        causes += not_negative(spec, "spec", "replicas", "minReadySeconds")
        start = part(spec, "ordinals").get("start")
        if start is not None and start < 0:
            words = "must be greater than or equal to 0"
            causes.append(invalid("spec.ordinals.start", start, words))
        causes += selector_causes(spec, "spec", "statefulset")
        causes += self._template(spec, "StatefulSet")
        if old is not None and _fixed(spec) != _fixed(part(old, "spec")):
            causes.append(forbidden_field("spec", ONLY_THESE))
        return causes

    def daemon_set_causes(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        spec = part(obj, "spec")
        causes = list(selector_causes(spec, "spec", "daemonset"))
        causes += self._template(spec, "DaemonSet")
        causes += not_negative(spec, "spec", "minReadySeconds")
        causes += _daemon_update_causes(spec)
        causes += not_negative(spec, "spec", "revisionHistoryLimit")
        return causes + list(_unchanged(spec, old, "selector"))

    def _filled(self, obj: JsonObject) -> JsonObject:
        spec = obj.setdefault("spec", {})
        template = spec.setdefault("template", {})
        self._pods.fill(obj, template.setdefault("spec", {}))
        return spec

    def _template(self, spec: JsonObject, kind: str) -> Iterator[Cause]:
        yield from template_causes(spec, "spec", self._pods)
        yield from always_causes(spec, "spec", kind)


def prepare_daemon_set(obj: JsonObject, old: JsonObject | None) -> JsonObject:
    """Count the templates that it has had, in an annotation that old clients read."""
    before = 0
    if old is not None:
        before = int(annotations_of(old).get(TEMPLATE_GENERATION, "1"))
    is_new = old is None or part(obj, "spec", "template") != part(old, "spec", "template")
    notes = obj["metadata"].setdefault("annotations", {})
    notes[TEMPLATE_GENERATION] = str(before + is_new)
    return obj


def _unchanged(spec: JsonObject, old: JsonObject | None, *names: str) -> Iterator[Cause]:
    if old is not None:
        yield from immutable(spec, part(old, "spec"), "spec", *names)


def _fixed(spec: JsonObject) -> JsonObject:
    return {name: value for name, value in spec.items() if name not in MAY_CHANGE}


def _strategy_causes(spec: JsonObject) -> Iterator[Cause]:
    strategy = part(spec, "strategy")
    bounds = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if bounds is not None:
                words = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden_field("spec.strategy.rollingUpdate", words)
        case "RollingUpdate":
            where = "spec.strategy.rollingUpdate"
            given = part(strategy, "rollingUpdate")
            missing, surge = given.get("maxUnavailable", 0), given.get("maxSurge", 0)
            yield from amount_causes(missing, f"{where}.maxUnavailable")
            yield from amount_causes(surge, f"{where}.maxSurge")
            if is_zero(missing) and is_zero(surge):
                words = "may not be 0 when `maxSurge` is 0"
                yield invalid(f"{where}.maxUnavailable", missing, words)
            yield from not_over_100_percent(missing, f"{where}.maxUnavailable")
        case _:
            yield not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))


def _management_causes(spec: JsonObject) -> Iterator[Cause]:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        words = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, words)


def _update_causes(spec: JsonObject) -> Iterator[Cause]:
    strategy = part(spec, "updateStrategy")
    bounds = strategy.get("rollingUpdate")
    where = "spec.updateStrategy"
    match strategy.get("type"):
        case "OnDelete":
            if bounds is not None:
                words = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid(f"{where}.rollingUpdate", bounds, words)
        case "RollingUpdate":
            yield from not_negative(bounds or {}, f"{where}.rollingUpdate", "partition")
        case _:
            yield invalid(where, strategy, "must be 'RollingUpdate' or 'OnDelete'")


def _daemon_update_causes(spec: JsonObject) -> Iterator[Cause]:
    strategy = part(spec, "updateStrategy")
    where = "spec.updateStrategy"
    match strategy.get("type"):
        case "OnDelete":
            return
        case "RollingUpdate":
            bounds = part(strategy, "rollingUpdate")
            if "rollingUpdate" not in strategy:
                yield required(f"{where}.rollingUpdate")
                return
            missing, surge = bounds.get("maxUnavailable", 0), bounds.get("maxSurge", 0)
            yield from amount_causes(missing, f"{where}.rollingUpdate.maxUnavailable")
            yield from amount_causes(surge, f"{where}.rollingUpdate.maxSurge")
            if is_zero(missing) == is_zero(surge):
                words = "cannot be 0 when maxSurge is 0"
                if not is_zero(missing):
                    words = "may not be set when maxSurge is non-zero"
                yield invalid(f"{where}.rollingUpdate.maxUnavailable", missing, words)
        case _:
            supported = ("OnDelete", "RollingUpdate")
            yield not_supported(f"{where}.type", strategy.get("type"), supported)
