"""Limit ranges: what containers have that say nothing, and how much one may ask for. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    StatusError,
    forbidden,
    invalid,
    not_supported,
)
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    name_of,
    part,
)
from muster.doors.kubernetes.pods import quantities, resources
from muster.doors.kubernetes.pods.quantities import amount, canonical

ANNOTATION = "kubernetes.io/limit-ranger"
TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def defaulted_range(obj: JsonObject) -> JsonObject:
    """What a range implies: a maximum is also the default. The object is the caller's own."""
    for limit in items(obj, "spec", "limits"):
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            listed = part(limit, name)
            for resource, text in listed.items():
                listed[resource] = canonical(text)
        if limit.get("type") != "Container":
            continue
        default = {**part(limit, "max"), **part(limit, "default")}
        asked = {**part(limit, "min"), **default, **part(limit, "defaultRequest")}
        if default:
            limit["default"] = default
        if asked:
            limit["defaultRequest"] = asked
    return obj


def range_causes(obj: JsonObject, _old: JsonObject | None) -> list[Cause]:
    """What is wrong with a range."""
    return [
        cause
        for place, limit in enumerate(items(obj, "spec", "limits"))
        for cause in _limit_causes(limit, f"spec.limits[{place}]")
    ]


def _limit_causes(limit: JsonObject, at: str) -> Iterator[Cause]:
    kind = limit.get("type", "")
    if kind not in TYPES:
        yield not_supported(f"{at}.type", kind, TYPES)
    largest = part(limit, "max")
    for field in ("min", "default", "defaultRequest"):
        for name, text in sorted(part(limit, field).items()):
            if name not in largest or amount(text) <= amount(largest[name]):
                continue
            told = {"default": "default", "defaultRequest": "default request"}.get(field, field)
            why = f"{told} value {text} is greater than max value {largest[name]}"
            yield invalid(f"{at}.{field}[{name}]", largest[name], why)


def filled(pod: JsonObject, ranges: Iterable[JsonObject]) -> JsonObject:
    """The pod with the defaults of its namespace's ranges. The object is the caller's own."""
    told: list[str] = []
    for limit in _limits(ranges, "Container"):
        for kind, word in (("containers", "container"), ("initContainers", "init container")):
            for container in items(pod, "spec", kind):
                told.extend(_fill(container, limit, word))
    if told:
        meta = pod.setdefault("metadata", {})
        meta["annotations"] = {
            **annotations_of(pod),
            ANNOTATION: f"LimitRanger plugin set: {'; '.join(told)}",
        }
    return pod


def _limits(ranges: Iterable[JsonObject], kind: str) -> list[JsonObject]:
    return [
        limit
        for each in sorted(ranges, key=name_of)
        for limit in items(each, "spec", "limits")
        if limit.get("type") == kind
    ]


def _fill(container: JsonObject, limit: JsonObject, word: str) -> Iterator[str]:
    asked = container.setdefault("resources", {})
    for field, source, what in (
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ):
        own = part(asked, field)
        # A request follows from a limit that the user wrote, before any default.
        missing = {
            name: text for name, text in sorted(part(limit, source).items()) if name not in own
        }
        if missing:
            asked[field] = {**own, **missing}
            yield f"{', '.join(missing)} {what} for {word} {container.get('name')}"


def refusal(pod: JsonObject, ranges: Iterable[JsonObject]) -> StatusError | None:
    """Why the pod asks for too much or too little; None where it does not."""
    found = tuple(ranges)
    spec = part(pod, "spec")
    problems: list[str] = []
    for limit in _limits(found, "Container"):
        for container in (*items(spec, "containers"), *items(spec, "initContainers")):
            asked = part(container, "resources")
            problems.extend(
                _problems(part(asked, "requests"), part(asked, "limits"), limit, "Container")
            )
    for limit in _limits(found, "Pod"):
        problems.extend(
            _problems(
                _texts(resources.requests_of(spec)), _texts(resources.limits_of(spec)), limit, "Pod"
            )
        )
    if not problems:
        return None
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return forbidden(POD, name_of(pod), text)


def _texts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {
        name: quantities.shown(value, like="Mi" if name == resources.MEMORY else "")
        for name, value in amounts.items()
    }


def _problems(
    requests: Mapping[str, Any], limits: Mapping[str, Any], limit: JsonObject, whose: str
) -> Iterator[str]:
    for name, least in sorted(part(limit, "min").items()):
        yield from _too_little(name, least, requests, whose)
    for name, most in sorted(part(limit, "max").items()):
        yield from _too_much(name, most, (requests, limits), whose)
    for name, ratio in sorted(part(limit, "maxLimitRequestRatio").items()):
        yield from _too_uneven(name, ratio, (requests, limits), whose)


def _too_little(name: str, least: str, requests: Mapping[str, Any], whose: str) -> Iterator[str]:
    if name not in requests:
        yield f"minimum {name} usage per {whose} is {least}.  No request is specified"
    elif amount(requests[name]) < amount(least):
        yield f"minimum {name} usage per {whose} is {least}, but request is {requests[name]}"


def _too_much(
    name: str, most: str, asked: tuple[Mapping[str, Any], Mapping[str, Any]], whose: str
) -> Iterator[str]:
    requests, limits = asked
    if name not in limits:
        yield f"maximum {name} usage per {whose} is {most}.  No limit is specified"
    elif amount(limits[name]) > amount(most):
        yield f"maximum {name} usage per {whose} is {most}, but limit is {limits[name]}"
    elif name in requests and amount(requests[name]) > amount(most):
        yield f"maximum {name} usage per {whose} is {most}, but request is {requests[name]}"


def _too_uneven(
    name: str, ratio: str, asked: tuple[Mapping[str, Any], Mapping[str, Any]], whose: str
) -> Iterator[str]:
    requests, limits = asked
    if name not in requests or name not in limits or not amount(requests[name]):
        return
    found = amount(limits[name]) / amount(requests[name])
    if found > amount(ratio):
        yield (
            f"{name} max limit to request ratio per {whose} is {ratio}, "
            f"but provided ratio is {float(found):f}"
        )
