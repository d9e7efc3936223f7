"""Checks that specs of many kinds share, in the words of Kubernetes."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from muster.doors.kubernetes.controllers.selecting import is_empty, selects
from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, labels_of, part
from muster.model.value import Value

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
NO_MATCH = "`selector` does not match template `labels`"
PERCENT = re.compile(r"[0-9]+%")
NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)


class PodSpecs(Value):
    """What is known of pods elsewhere.

    fill: writes what the spec of a template leaves out; its first argument is the whole object.
    causes: what is wrong with a spec at a path. labels: what is wrong with labels at a path.
    """

    fill: Callable[[JsonObject, JsonObject], None]
    causes: Callable[[JsonObject, str], Iterable[Cause]]
    labels: Callable[[JsonObject, str], Iterable[Cause]]


def not_negative(spec: JsonObject, path: str, *names: str) -> Iterator[Cause]:
    """Numbers that may not be below zero, where they are given."""
    for name in names:
        value = spec.get(name)
        if value is not None and value < 0:
            yield invalid(f"{path}.{name}", value, NOT_NEGATIVE)


def immutable(new: JsonObject, old: JsonObject, path: str, *names: str) -> Iterator[Cause]:
    """Fields that must stay as they were."""
    for name in names:
        if new.get(name) != old.get(name):
            yield invalid(f"{path}.{name}", new.get(name), IMMUTABLE)


def one_of(value: Any, path: str, *supported: str) -> Iterator[Cause]:
    """A word that must be one of these."""
    if value not in supported:
        yield not_supported(path, value, supported)


def selector_causes(spec: JsonObject, path: str, kind: str) -> Iterator[Cause]:
    """A selector must be there, and select something. kind: in whose words."""
    selector = spec.get("selector")
    where = f"{path}.selector"
    if selector is None:
        yield required(where)
        return
    yield from expression_causes(selector, where)
    if is_empty(selector):
        yield invalid(where, selector, f"empty selector is invalid for {kind}")


def expression_causes(selector: JsonObject, path: str) -> Iterator[Cause]:
    """What is wrong with the expressions of a selector."""
    for place, each in enumerate(items(selector, "matchExpressions")):
        where = f"{path}.matchExpressions[{place}]"
        values = items(each, "values")
        match each.get("operator"):
            case "In" | "NotIn":
                if not values:
                    words = "must be specified when `operator` is 'In' or 'NotIn'"
                    yield required(f"{where}.values", words)
            case "Exists" | "DoesNotExist":
                if values:
                    words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield forbidden_field(f"{where}.values", words)
            case operator:
                yield invalid(f"{where}.operator", operator, "not a valid selector operator")


def template_causes(spec: JsonObject, path: str, pods: PodSpecs) -> Iterator[Cause]:
    """What is wrong with a pod template, and whether the selector selects its pods."""
    template = part(spec, "template")
    where = f"{path}.template"
    selector = spec.get("selector")
    if not is_empty(selector) and not selects(selector, labels_of(template)):
        yield invalid(f"{where}.metadata.labels", labels_of(template), NO_MATCH)
    yield from pods.labels(labels_of(template), f"{where}.labels")
    yield from pods.causes(part(template, "spec"), f"{where}.spec")


def always_causes(spec: JsonObject, path: str, kind: str) -> Iterator[Cause]:
    """Pods of these kinds run for ever."""
    pod_spec = part(spec, "template", "spec")
    where = f"{path}.template.spec"
    if pod_spec.get("restartPolicy") != "Always":
        yield not_supported(f"{where}.restartPolicy", pod_spec.get("restartPolicy"), ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field(f"{where}.activeDeadlineSeconds", words)


def amount_causes(value: Any, path: str) -> Iterator[Cause]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str):
        if PERCENT.fullmatch(value) is None:
            yield invalid(path, value, NOT_PERCENT)
    elif value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def not_over_100_percent(value: Any, path: str) -> Iterator[Cause]:
    """A percentage of at most all."""
    if isinstance(value, str) and PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def is_zero(value: Any) -> bool:
    """Nothing, as a number or as a percentage?"""
    return value == 0 or (isinstance(value, str) and value.removesuffix("%") in {"0", "00"})
