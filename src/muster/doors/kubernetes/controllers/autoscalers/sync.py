"""The autoscaler: looks every fifteen seconds, asks for a number of replicas, and says why."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.amounts import thousandths, without_zeros
from muster.doors.kubernetes.controllers.autoscalers.behaviour import (
    Bounds,
    Memory,
    Moment,
    allowed,
    remembered,
)
from muster.doors.kubernetes.controllers.autoscalers.readings import (
    NotMeasuredError,
    Proposal,
    Question,
    Readings,
    replicas_for,
    requested,
)
from muster.doors.kubernetes.controllers.changes import NOTHING, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.controllers.selecting import selects
from muster.doors.kubernetes.objects.kinds import (
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import SECOND, Instant, Value, replace

SOURCE = "horizontal-pod-autoscaler"
EVERY = 15 * SECOND
TARGETS = {each.kind: each for each in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET)}


class Looked(Value):
    """When an autoscaler last looked, at which version of what it is told to do."""

    at: Instant
    generation: int


class Autoscalers:
    """All autoscalers, with what each remembers of its last hour."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._memories: dict[str, Memory] = {}
        self._looks: dict[str, Looked] = {}

    def sync(self, autoscaler: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
        """Scale what it targets, if that is due, and say what was seen."""
        uid = uid_of(autoscaler)
        if is_leaving(autoscaler):
            self._memories.pop(uid, None)
            self._looks.pop(uid, None)
            return NOTHING
        new = Looked(at=now, generation=metadata(autoscaler).get("generation", 1))
        last = self._looks.get(uid)
        if last is not None and last.generation == new.generation and now < last.at + EVERY:
            # What it wrote itself is no reason to grow once more before pods have started.
            return Outcome(again_at=Instant(last.at + EVERY))
        self._looks[uid] = new
        look = _Look(autoscaler, cluster, self._readings, now)
        outcome, self._memories[uid] = look.outcome(self._memories.get(uid, Memory()))
        return outcome


class _Look:
    """One look of one autoscaler."""

    def __init__(
        self, autoscaler: JsonObject, cluster: Cluster, readings: Readings, now: Instant
    ) -> None:
        self._hpa = autoscaler
        self._spec = part(autoscaler, "spec")
        self._cluster = cluster
        self._readings = readings
        self._now = now
        self._draft = Draft(autoscaler, SOURCE)
        self._conditions = list(items(autoscaler, "status", "conditions"))
        self._status = dict(part(autoscaler, "status"))

    def outcome(self, memory: Memory) -> tuple[Outcome, Memory]:
        target = self._target()
        if target is not None:
            memory = self._scale(target, memory)
        status = without_zeros({**self._status, "conditions": self._conditions}, "desiredReplicas")
        if status != part(self._hpa, "status"):
            self._draft.update_status({**self._hpa, "status": status})
        self._draft.look_again(Instant(self._now + EVERY))
        return self._draft.outcome(), memory

    def _target(self) -> JsonObject | None:
        reference = part(self._spec, "scaleTargetRef")
        kind = TARGETS.get(reference.get("kind", ""))
        space = namespace_of(self._hpa)
        found_at = kind and self._cluster.get(kind, space, reference.get("name", ""))
        if found_at:
            words = "the HPA controller was able to get the target's current scale"
            self._set("AbleToScale", "True", "SucceededGetScale", words)
            return found_at
        resource = kind.resource if kind else f"{reference.get('kind', '')}".lower()
        why = f'{resource} "{reference.get("name")}" not found'
        words = f"the HPA controller was unable to get the target's current scale: {why}"
        if self._set("AbleToScale", "False", "FailedGetScale", words):
            self._draft.warn("FailedGetScale", why)
        return None

    def _scale(self, target: JsonObject, memory: Memory) -> Memory:
        current: int = part(target, "spec").get("replicas", 1)
        if not memory.recommendations:
            # What somebody chose before is not taken away in haste.
            chosen = Moment(at=self._now, replicas=current)
            memory = replace(memory, recommendations=(chosen,))
        least: int = self._spec.get("minReplicas", 1)
        most: int = self._spec["maxReplicas"]
        self._status["currentReplicas"] = part(target, "status").get("replicas", 0)
        if current == 0 and least != 0:
            words = "scaling is disabled since the replica count of the target is zero"
            self._set("ScalingActive", "False", "ScalingDisabled", words)
            self._status["desiredReplicas"] = 0
            return memory
        bounds = Bounds(current=current, least=least, most=most)
        if current > most:
            wanted, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            wanted, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            best = self._recommended(target, current)
            if best is None:
                self._status.setdefault("desiredReplicas", 0)
                return memory
            wanted, why = self._limited(best, bounds, memory)
            memory = remembered(memory, best.replicas, wanted - current, self._now)
        self._status["desiredReplicas"] = wanted
        if wanted != current:
            self._rescale(target, wanted, why)
        return memory

    def _limited(self, best: Proposal, bounds: Bounds, memory: Memory) -> tuple[int, str]:
        """How far the recommendation is followed, and why it is what it is."""
        words = "the HPA was able to successfully calculate a replica count from"
        self._set("ScalingActive", "True", "ValidMetricFound", f"{words} {best.metric}")
        step = allowed(self._spec, best.replicas, bounds, memory, self._now)
        self._set("AbleToScale", "True", *step.able)
        self._set("ScalingLimited", "True" if step.is_limited else "False", *step.limited)
        why = "All metrics below target"
        if step.replicas > bounds.current:
            why = f"{best.metric} above target"
        return step.replicas, why

    def _rescale(self, target: JsonObject, wanted: int, why: str) -> None:
        self._draft.update({**target, "spec": {**target["spec"], "replicas": wanted}})
        self._draft.emit("SuccessfulRescale", f"New size: {wanted}; reason: {why}")
        words = f"the HPA controller was able to update the target scale to {wanted}"
        self._set("AbleToScale", "True", "SucceededRescale", words)
        self._status["lastScaleTime"] = stamp(self._now)

    def _recommended(self, target: JsonObject, current: int) -> Proposal | None:
        """What the metric that asks for most asks for; None if none could be read."""
        pods = self._pods(target)
        proposals: list[Proposal] = []
        faults: list[tuple[str, str, str]] = []
        for metric in items(self._spec, "metrics"):
            try:
                proposals.append(self._proposal(metric, pods, current))
            except NotMeasuredError as error:
                faults.append(_fault(metric, str(error)))
        shown = [each.shown for each in proposals] + [{"type": ""} for _ in faults]
        self._status["currentMetrics"] = shown
        if not proposals or (faults and max(e.replicas for e in proposals) < current):
            self._complain(faults, len(items(self._spec, "metrics")))
            return None
        return max(proposals, key=lambda each: (each.replicas, each.metric))

    def _complain(self, faults: Sequence[tuple[str, str, str]], metrics: int) -> None:
        if not faults:
            return
        reason, what, why = faults[0]
        words = f"the HPA was unable to compute the replica count: {what}: {why}"
        if self._set("ScalingActive", "False", reason, words):
            self._draft.warn(reason, f"{what}: {why}")
            first = f"{what.replace('utilization', 'resource metric value')}: {what}: {why}"
            told = f"invalid metrics ({len(faults)} invalid out of {metrics}), first error is:"
            self._draft.warn("FailedComputeMetricsReplicas", f"{told} {first}")

    def _proposal(self, metric: JsonObject, pods: Sequence[JsonObject], current: int) -> Proposal:
        space = namespace_of(self._hpa)
        if metric["type"] == "Resource":
            return self._of_resource(part(metric, "resource"), pods, current)
        if metric["type"] == "Pods":
            wanted = part(metric, "pods")
            name = part(wanted, "metric").get("name", "")
            target = thousandths(part(wanted, "target")["averageValue"])
            question = Question(
                pods=pods,
                measured=self._readings.metric(name, space),
                target=target,
                current=current,
            )
            reply = replicas_for(question, self._now)
            shown = {"metric": {"name": name}, "current": {"averageValue": _milli(reply.usage)}}
            return Proposal(
                replicas=reply.replicas,
                shown={"type": "Pods", "pods": shown},
                metric=f"pods metric {name}",
            )
        raise NotMeasuredError("only metrics of pods are measured here")

    def _of_resource(
        self, wanted: JsonObject, pods: Sequence[JsonObject], current: int
    ) -> Proposal:
        name: str = wanted["name"]
        target = part(wanted, "target")
        try:
            measured = self._readings.resource(name, namespace_of(self._hpa))
        except NotMeasuredError as error:
            raise NotMeasuredError(f"unable to get metrics for resource {name}: {error}") from None
        by_percent = target.get("averageUtilization") is not None
        question = Question(
            pods=pods,
            measured=measured,
            target=target["averageUtilization"]
            if by_percent
            else thousandths(target["averageValue"]),
            current=current,
            requests=requested(pods, name) if by_percent else None,
            is_cpu=name == "cpu",
        )
        reply = replicas_for(question, self._now)
        held: JsonObject = {"averageValue": _milli(reply.mean_milli)}
        what = f"{name} resource"
        if by_percent:
            held["averageUtilization"] = reply.usage
            what = f"{name} resource utilization (percentage of request)"
        shown = {"type": "Resource", "resource": {"name": name, "current": held}}
        return Proposal(replicas=reply.replicas, shown=shown, metric=what)

    def _pods(self, target: JsonObject) -> list[JsonObject]:
        selector = part(target, "spec").get("selector")
        pods = self._cluster.list(POD, namespace_of(target))
        return [each for each in pods if selects(selector, labels_of(each))]

    def _set(self, type_: str, status: str, reason: str, message: str) -> bool:
        """Set a condition. Does it say something else than before?"""
        held = found(self._conditions, type_)
        new: JsonObject = {
            "type": type_,
            "status": status,
            "lastTransitionTime": stamp(self._now),
            "reason": reason,
            "message": message,
        }
        if held is None:
            self._conditions.append(new)
            return True
        if held["status"] == status:
            new["lastTransitionTime"] = held["lastTransitionTime"]
        self._conditions[self._conditions.index(held)] = new
        return (held["reason"], held["message"]) != (reason, message)


def _fault(metric: JsonObject, why: str) -> tuple[str, str, str]:
    """Reason, what failed, and why."""
    if metric["type"] == "Resource":
        target = part(metric, "resource", "target")
        unit = "utilization" if target.get("averageUtilization") is not None else "usage"
        name = part(metric, "resource").get("name")
        return "FailedGetResourceMetric", f"failed to get {name} {unit}", why
    kind = metric["type"]
    return f"FailedGet{kind}Metric", f"failed to get {kind.lower()} metric", why


def _milli(value: int) -> str:
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"
