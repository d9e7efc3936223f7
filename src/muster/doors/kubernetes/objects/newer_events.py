"""Events of events.k8s.io/v1: the same objects as those of v1, in other words. Pure."""

from muster.doors.kubernetes.objects.errors import Cause, invalid, required
from muster.doors.kubernetes.objects.names import key_faults
from muster.doors.kubernetes.objects.value import JsonObject, copied, namespace_of, part

OLD, NEW = "v1", "events.k8s.io/v1"
NEWER_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""Fields of v1, and what they are called in events.k8s.io."""

OLDER_NAMES = {newer: older for older, newer in NEWER_NAMES.items()}

MOST_LETTERS = 128
MOST_OF_MESSAGE = 1_024
FEWEST_OF_SERIES = 2
TYPES = ("Normal", "Warning")
OF_THE_CLUSTER = ("default", "kube-system")
"""Namespaces of events about what has none."""

_UNSET = ("firstTimestamp", "lastTimestamp", "count")
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    *_UNSET,
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def newer_event(obj: JsonObject) -> JsonObject:
    """An event of v1 as events.k8s.io writes it."""
    return {**_renamed(obj, NEWER_NAMES), "apiVersion": NEW}


def older_event(obj: JsonObject) -> JsonObject:
    """An event of events.k8s.io as v1 writes it."""
    return {**_renamed(obj, OLDER_NAMES), "apiVersion": OLD}


def _renamed(obj: JsonObject, names: dict[str, str]) -> JsonObject:
    return {names.get(name, name): each for name, each in copied(obj).items()}


def newer_event_faults(obj: JsonObject, old: JsonObject | None) -> list[Cause]:
    """What is wrong with an event, in the words of v1, that is written through events.k8s.io.

    Through v1 none of this is asked for: it is older than these rules.
    """
    if old is None:
        return [*_new_faults(obj), *_series_faults(obj), *_unset_faults(obj)]
    is_counted = part(obj, "series") != part(old, "series")
    changed = [name for name in _FIXED if (obj.get(name) or None) != (old.get(name) or None)]
    return [
        *_said_faults(obj),
        *(_series_faults(obj) if is_counted else ()),
        *(invalid(_called(name), obj.get(name), "field is immutable") for name in changed),
    ]


def _called(name: str) -> str:
    """As Kubernetes names it where it finds faults: some names are of its own programs."""
    return "reportingController" if name == "reportingComponent" else name


def _new_faults(obj: JsonObject) -> list[Cause]:
    causes = _said_faults(obj)
    if not obj.get("eventTime"):
        causes.append(required("eventTime"))
    if obj.get("type") not in TYPES:
        causes.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    return causes


def _unset_faults(obj: JsonObject) -> list[Cause]:
    """Fields that only events of v1 have."""
    given = [name for name in _UNSET if obj.get(name)]
    source = part(obj, "source")
    if source.get("component") or source.get("host"):
        given.append("source")
    return [invalid(name, "", "needs to be unset") for name in given]


def _series_faults(obj: JsonObject) -> list[Cause]:
    series = part(obj, "series")
    if not series:
        return []
    causes: list[Cause] = []
    if int(series.get("count") or 0) < FEWEST_OF_SERIES:
        causes.append(invalid("series.count", "", f"should be at least {FEWEST_OF_SERIES}"))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))
    return causes


def _said_faults(obj: JsonObject) -> list[Cause]:
    """What every event must say; of those without a time only where they are."""
    causes = _place_faults(obj)
    if not obj.get("eventTime"):
        return causes
    controller = str(obj.get("reportingComponent") or "")
    if not controller:
        causes.append(required("reportingController"))
    causes += [invalid("reportingController", controller, each) for each in key_faults(controller)]
    for name in ("reportingInstance", "action", "reason"):
        if not obj.get(name):
            causes.append(required(name))
    sizes = {"reportingInstance": MOST_LETTERS, "action": MOST_LETTERS, "reason": MOST_LETTERS}
    for name, most in {**sizes, "message": MOST_OF_MESSAGE}.items():
        if len(str(obj.get(name) or "").encode()) > most:
            causes.append(invalid(name, "", f"can have at most {most} characters"))
    return causes


def _place_faults(obj: JsonObject) -> list[Cause]:
    """An event stands beside what it is about."""
    about, own = str(part(obj, "involvedObject").get("namespace") or ""), namespace_of(obj)
    if not about:
        is_right = own in (OF_THE_CLUSTER if obj.get("eventTime") else ("", "default"))
    else:
        is_right = bool(obj.get("eventTime")) or about == own
    if is_right:
        return []
    return [invalid("involvedObject.namespace", about, "does not match event.namespace")]
