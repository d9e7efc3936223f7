"""Objects of one version of a defined kind as those of another. Pure; whom it asks is elsewhere."""

from typing import Any

from muster.doors.kubernetes.objects.parsing import UnreadableError, demand_shallow, parse_json
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    is_map,
    items,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)

REVIEW = "apiextensions.k8s.io/v1"
_THEIRS = ("annotations", "labels")
"""What of its metadata a webhook may change."""


class ConversionError(Exception):
    """A webhook did not convert an object; the text is why."""


def conversion_review(obj: JsonObject, api_version: str, uid: str) -> JsonObject:
    """What a webhook is sent that is to make an object of this version of another."""
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": [obj]}
    return {"kind": "ConversionReview", "apiVersion": REVIEW, "request": request}


def converted(obj: JsonObject, api_version: str, body: bytes, uid: str) -> JsonObject:
    """The object as a webhook's answer has it; ConversionError where it has none."""
    response = part(_read(body), "response")
    if response.get("uid") != uid:
        raise ConversionError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = part(response, "result")
    if result.get("status") != "Success":
        raise ConversionError(str(result.get("message") or "no reason was given"))
    found = items(response, "convertedObjects")
    if len(found) != 1 or not is_map(found[0]):
        raise ConversionError(f"expected 1 converted objects, got {len(found)}")
    return _demand_same(obj, found[0], api_version)


def renamed(obj: JsonObject, api_version: str) -> JsonObject:
    """The object as it is in another version where versions differ in nothing else."""
    return {**obj, "apiVersion": api_version}


def _read(body: bytes) -> JsonObject:
    try:
        found: Any = parse_json(body)
        demand_shallow(found)
    except UnreadableError as error:
        raise ConversionError(f"the answer is no JSON: {error}") from None
    return found if is_map(found) else {}


def _demand_same(obj: JsonObject, new: JsonObject, api_version: str) -> JsonObject:
    if new.get("apiVersion") != api_version or new.get("kind") != obj.get("kind"):
        wanted = f"{api_version}, Kind={obj.get('kind')}"
        raise ConversionError(f"it is no {wanted}")
    for read in (name_of, namespace_of, uid_of):
        if read(new) != read(obj):
            raise ConversionError("the webhook makes another object of it")
    # Whatever it says of the rest of the metadata, it was not asked about that.
    kept = copied(metadata(obj))
    given = metadata(new)
    for name in _THEIRS:
        kept.pop(name, None)
        if given.get(name):
            kept[name] = given[name]
    return {**new, "metadata": kept}
