"""Kinds whose objects are kept as those of another kind: the same objects in other words. Pure."""

from collections.abc import Callable, Mapping

from muster.doors.kubernetes.objects.kinds import EVENT, HORIZONTAL_POD_AUTOSCALER
from muster.doors.kubernetes.objects.newer_events import (
    newer_event,
    newer_event_faults,
    older_event,
)
from muster.doors.kubernetes.objects.older_autoscalers import newer_autoscaler, older_autoscaler
from muster.doors.kubernetes.objects.rules import Cell, Default, Printing, Rules, Validate
from muster.doors.kubernetes.objects.selectors import FieldReader
from muster.doors.kubernetes.objects.value import JsonObject, Kind
from muster.model.value import replace

NEWER_EVENT = replace(EVENT, group="events.k8s.io", kept_as=EVENT)
OLDER_AUTOSCALER = replace(
    HORIZONTAL_POD_AUTOSCALER, version="v1", kept_as=HORIZONTAL_POD_AUTOSCALER
)
FACES: tuple[Kind, ...] = (NEWER_EVENT, OLDER_AUTOSCALER)

_Convert = Callable[[JsonObject], JsonObject]
_CONVERTERS: Mapping[str, tuple[_Convert, _Convert]] = {
    NEWER_EVENT.api_version: (newer_event, older_event),
    OLDER_AUTOSCALER.api_version: (older_autoscaler, newer_autoscaler),
}
"""How an object is shown, and how it is kept."""


def as_shown(kind: Kind, obj: JsonObject) -> JsonObject:
    """A kept object as this kind shows it."""
    if kind.kept_as is None or obj.get("apiVersion") == kind.api_version:
        return obj
    return _CONVERTERS[kind.api_version][0](obj)


def as_kept(kind: Kind, obj: JsonObject) -> JsonObject:
    """An object of this kind as it is kept."""
    if kind.kept_as is None or obj.get("apiVersion") != kind.api_version:
        return obj
    return _CONVERTERS[kind.api_version][1](obj)


def face_rules(kind: Kind, kept: Rules) -> Rules:
    """What a kind adds whose objects are kept as another, which adds this."""
    checks = _EVENT_RULES if kind == NEWER_EVENT else kept
    return Rules(
        default=_defaulting(kind, kept.default),
        validate=_validating(kind, checks.validate),
        printing=_printing(kind, kept.printing),
        selectable={
            _SELECTABLE_NAMES.get(name, name): _reading(kind, reader)
            for name, reader in kept.selectable.items()
            if not (kind == NEWER_EVENT and name == "source")
        },
    )


_EVENT_RULES = Rules(validate=newer_event_faults)
_SELECTABLE_NAMES = {
    **{
        f"involvedObject.{name}": f"regarding.{name}"
        for name in "kind namespace name uid apiVersion resourceVersion fieldPath".split()
    },
    "reportingComponent": "reportingController",
}


def _defaulting(kind: Kind, own: Default | None) -> Default | None:
    return None if own is None else lambda obj: as_shown(kind, own(as_kept(kind, obj)))


def _validating(kind: Kind, own: Validate | None) -> Validate | None:
    if own is None:
        return None
    return lambda obj, old: own(as_kept(kind, obj), None if old is None else as_kept(kind, old))


def _reading(kind: Kind, own: FieldReader) -> FieldReader:
    return lambda obj: own(as_kept(kind, obj))


def _printing(kind: Kind, own: Printing | None) -> Printing | None:
    if own is None:
        return None

    def cells(obj: JsonObject) -> list[Cell]:
        return own.cells(as_kept(kind, obj))

    return replace(own, cells=cells)
