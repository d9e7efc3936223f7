"""The annotation in which `kubectl apply` remembers what it applied, seen from server-side apply.

Who moves from one to the other meets no conflict with what they applied before, and the annotation
goes along. Both hold for kubectl alone: other managers never wrote it.
"""

import json

from muster.doors.kubernetes.objects.fields import NO_FIELDS, Fields, compared, fields_of
from muster.doors.kubernetes.objects.schemas.types import Schema
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    is_map,
    metadata,
)

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"


def applied_before(live: JsonObject, manager: str, schema: Schema | None) -> Fields:
    """Fields of the live object that still are as kubectl applied them."""
    written = annotations_of(live).get(ANNOTATION)
    if manager != KUBECTL or not written:
        return NO_FIELDS
    try:
        before = json.loads(written)
    except ValueError:
        return NO_FIELDS
    if not is_map(before) or before.get("apiVersion") != live.get("apiVersion"):
        return NO_FIELDS
    found = compared(before, live, schema)
    return fields_of(before, schema) - found.added - found.changed - found.removed


def noted(new: JsonObject, config: JsonObject, manager: str) -> JsonObject:
    """The object with its annotation brought up to date, where it has one."""
    if manager != KUBECTL or not annotations_of(new).get(ANNOTATION):
        return new
    plain = copied(config)
    annotations = annotations_of(plain)
    annotations.pop(ANNOTATION, None)
    if "annotations" in metadata(plain) and not annotations:
        metadata(plain).pop("annotations")
    text = json.dumps(plain, separators=(",", ":"), sort_keys=True) + "\n"
    changed = copied(new)
    annotations_of(changed)[ANNOTATION] = text
    return changed
