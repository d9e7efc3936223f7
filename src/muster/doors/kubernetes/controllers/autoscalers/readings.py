"""What was measured of pods, and how many replicas that asks for."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Protocol

from muster.doors.kubernetes.controllers.amounts import thousandths
from muster.doors.kubernetes.controllers.pods import (
    condition,
    created_at,
    is_leaving,
    is_ready,
    phase,
)
from muster.doors.kubernetes.objects.times import instant
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.model.errors import MusterError
from muster.model.value import MINUTE, SECOND, Instant, Value

UNREADY_AT_FIRST = 30 * SECOND
"""So soon after its start a pod that is not ready does not count as one that fails."""

CPU_SETTLES = 5 * MINUTE
"""So long after its start a pod's CPU time may be that of its start."""

TOLERANCE = Fraction(1, 10)


class NotMeasuredError(MusterError):
    """Whoever measures must act, or nobody: it will come."""


class Readings(Protocol):
    """What is measured. Amounts are in thousandths."""

    def resource(self, name: str, namespace: str, /) -> Mapping[str, int]:
        """By pod, how much of a resource it uses. NotMeasuredError where nothing is known."""
        ...

    def metric(self, name: str, namespace: str, /) -> Mapping[str, int]:
        """By pod, the value of a metric of its own."""
        ...


class NoReadings:
    """Nothing is measured, and it says so as a cluster without a metrics server does."""

    def resource(self, _name: str, _namespace: str, /) -> Mapping[str, int]:
        raise NotMeasuredError(
            "unable to fetch metrics from resource metrics API: the server could not find the"
            " requested resource (get pods.metrics.k8s.io)"
        )

    def metric(self, _name: str, _namespace: str, /) -> Mapping[str, int]:
        raise NotMeasuredError(
            "unable to fetch metrics from custom metrics API: no custom metrics API"
            " (custom.metrics.k8s.io) registered"
        )


class Proposal(Value):
    """How many replicas one metric asks for. shown: its entry in the status."""

    replicas: int
    shown: JsonObject
    metric: str


class Question(Value):
    """What is asked: pods, what was measured of them, and what each should use.

    requests: by pod, what 100 % are; None where the target is an amount.
    """

    pods: Sequence[JsonObject]
    measured: Mapping[str, int]
    target: int
    current: int
    requests: Mapping[str, int] | None = None
    is_cpu: bool = False


class Reply(Value):
    """replicas: how many are wanted. usage: the mean, in thousandths or per cent."""

    replicas: int
    usage: int
    mean_milli: int


def replicas_for(question: Question, now: Instant) -> Reply:
    """How many replicas bring the mean to the target; the present number if it is near enough."""
    ready, unready, missing = _grouped(question, now)
    if not ready:
        raise NotMeasuredError("did not receive metrics for targeted pods (pods might be unready)")
    ratio, usage = _ratio(question, ready)
    mean = sum(ready.values()) // len(ready)
    grows_with_unready = bool(unready) and ratio > 1
    if not grows_with_unready and not missing:
        wanted = question.current if _is_near(ratio) else ceil(ratio * len(ready))
        return Reply(replicas=wanted, usage=usage, mean_milli=mean)
    guessed = dict(ready)
    for name in missing:
        # What is not known must not make the change larger than it would otherwise be.
        guessed[name] = _full(question, name) if ratio < 1 else 0
    if grows_with_unready:
        guessed |= dict.fromkeys(unready, 0)
    careful, _ = _ratio(question, guessed)
    wanted = ceil(careful * len(guessed))
    turned = (ratio < 1) != (careful < 1) and careful != 1
    wrong_way = wanted > question.current if careful < 1 else wanted < question.current
    if _is_near(careful) or turned or wrong_way:
        wanted = question.current
    return Reply(replicas=wanted, usage=usage, mean_milli=mean)


def requested(pods: Sequence[JsonObject], resource: str) -> dict[str, int]:
    """By pod, how much of a resource all its containers ask for, in thousandths."""
    asked: dict[str, int] = {}
    for pod in pods:
        total = 0
        for each in items(pod, "spec", "containers"):
            text = part(each, "resources", "requests").get(resource)
            if text is None:
                where = f"container {each['name']} of Pod {name_of(pod)}"
                raise NotMeasuredError(f"missing request for {resource} in {where}")
            total += thousandths(text)
        asked[name_of(pod)] = total
    return asked


def _grouped(question: Question, now: Instant) -> tuple[dict[str, int], list[str], list[str]]:
    """What ready pods use; pods that are not ready; pods of which nothing is known."""
    ready: dict[str, int] = {}
    unready: list[str] = []
    missing: list[str] = []
    for pod in question.pods:
        name = name_of(pod)
        if is_leaving(pod) or phase(pod) == "Failed":
            continue
        if phase(pod) == "Pending":
            unready.append(name)
        elif name not in question.measured:
            missing.append(name)
        elif question.is_cpu and _is_unsettled(pod, now):
            unready.append(name)
        else:
            ready[name] = question.measured[name]
    return ready, unready, missing


def _is_unsettled(pod: JsonObject, now: Instant) -> bool:
    """Is it not ready because it has only just started?"""
    held = condition(pod, "Ready")
    if held is None:
        return True
    started = instant(part(pod, "status").get("startTime")) or created_at(pod)
    if is_ready(pod):
        return False
    changed = instant(held.get("lastTransitionTime")) or started
    if now < started + CPU_SETTLES:
        return True
    return started + UNREADY_AT_FIRST > changed


def _ratio(question: Question, measured: Mapping[str, int]) -> tuple[Fraction, int]:
    """The mean as a part of the target, and in the unit that the status shows."""
    used = sum(measured.values())
    if question.requests is None:
        mean = used // len(measured)
        return Fraction(mean, question.target), mean
    asked = sum(question.requests.get(name, 0) for name in measured)
    if asked == 0:
        raise NotMeasuredError("no metrics returned matched known pods")
    percent = used * 100 // asked
    return Fraction(percent, question.target), percent


def _full(question: Question, name: str) -> int:
    if question.requests is None:
        return question.target
    return question.requests.get(name, 0) * max(100, question.target) // 100


def _is_near(ratio: Fraction) -> bool:
    return 1 - TOLERANCE <= ratio <= 1 + TOLERANCE
