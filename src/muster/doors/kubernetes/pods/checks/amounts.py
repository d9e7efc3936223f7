"""What is wrong with resources: requests and limits of containers, and of pods as a whole."""

from collections.abc import Iterator
from typing import Any

from muster.doors.kubernetes.objects.errors import Cause, invalid, required
from muster.doors.kubernetes.objects.value import JsonObject, part
from muster.doors.kubernetes.pods.checks import names
from muster.doors.kubernetes.pods.quantities import amount, canonical
from muster.doors.kubernetes.pods.resources import STANDARD

_KUBERNETES = "kubernetes.io/"
_REQUESTS = "requests."
_HUGE_PAGES = "hugepages-"


def resources_causes(asked: JsonObject, path: str) -> Iterator[Cause]:
    """Limits and requests, one by one and beside each other."""
    limits, requests = part(asked, "limits"), part(asked, "requests")
    for name in sorted(limits):
        yield from _amount_causes(name, limits[name], f"{path}.limits[{name}]")
    for name in sorted(requests):
        yield from _amount_causes(name, requests[name], f"{path}.requests[{name}]")
        yield from _pair_causes(name, asked, path)


def is_extended(name: str) -> bool:
    """Something that a device plugin would offer: counted whole, and never promised twice."""
    is_native = "/" not in name or _KUBERNETES in name
    if is_native or name.startswith(_REQUESTS):
        return False
    return not names.qualified(f"{_REQUESTS}{name}")


def _amount_causes(name: str, text: Any, field: str) -> Iterator[Cause]:
    problems = names.qualified(name)
    yield from (invalid(field, name, problem) for problem in problems)
    is_standard = name in STANDARD or name.startswith(_HUGE_PAGES)
    if "/" not in name and not is_standard:
        yield invalid(field, name, "must be a standard resource type or fully qualified")
        yield invalid(field, name, "must be a standard resource for containers")
    elif "/" in name and _KUBERNETES not in name and not is_extended(name):
        yield invalid(field, name, "doesn't follow extended resource name standard")
    value = amount(text)
    if value < 0:
        yield invalid(field, canonical(text), "must be greater than or equal to 0")
    elif not is_standard and value != value.to_integral_value():
        yield invalid(field, canonical(text), "must be an integer")


def _pair_causes(name: str, asked: JsonObject, path: str) -> Iterator[Cause]:
    """A request beside its limit."""
    limits, request = part(asked, "limits"), part(asked, "requests")[name]
    never_shared = is_extended(name) or name.startswith(_HUGE_PAGES)
    if name not in limits:
        if never_shared:
            why = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", why)
        return
    limit, field = limits[name], f"{path}.requests"
    if never_shared and amount(request) != amount(limit):
        why = f"must be equal to {name} limit of {canonical(limit)}"
        yield invalid(field, canonical(request), why)
    elif amount(request) > amount(limit):
        why = f"must be less than or equal to {name} limit of {canonical(limit)}"
        yield invalid(field, canonical(request), why)
