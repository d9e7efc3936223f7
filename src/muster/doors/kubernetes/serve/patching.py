"""PATCH: what each kind of patch makes of an object, and what is wrong with it if it cannot."""

import json
from collections.abc import Callable
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    CauseReason,
    Reason,
    StatusError,
    bad_request,
    cause_json,
    required,
)
from muster.doors.kubernetes.objects.fields import fields_of, path_text
from muster.doors.kubernetes.objects.parsing import UnreadableError, demand_shallow, parse_json
from muster.doors.kubernetes.objects.patches import (
    MOST_OPERATIONS,
    PatchError,
    json_patched,
    merge_patched,
    strategic_patched,
)
from muster.doors.kubernetes.objects.repeated import (
    duplicates,
    repeated_fields,
    repeated_keys,
)
from muster.doors.kubernetes.objects.schemas.types import field_of, items_of, target
from muster.doors.kubernetes.objects.shaping import Shaped, WrongShapeError, go_text
from muster.doors.kubernetes.objects.strategy import Blueprint
from muster.doors.kubernetes.objects.value import JsonObject, is_list, is_map, metadata
from muster.doors.kubernetes.serve.body import called, document, in_yaml, unknown_fields
from muster.doors.kubernetes.serve.call import Writing, wrong_options
from muster.doors.kubernetes.serve.writing import ObjectWriter, Request, Result

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"

REJECTED = "the server rejected our request due to an error in our request"

Patched = Callable[[JsonObject], JsonObject]


class Patcher:
    """Patches objects through the writer. warnings: of fields that nobody knows."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self.warnings: tuple[str, ...] = ()

    def patch(self, request: Request, body: bytes, media: str) -> Result:
        """The object after the patch."""
        media = media.partition(";")[0].strip()
        if media == APPLY_YAML:
            return self._writer.apply(request, self._config(request, body))
        patched = patched_by(media, body, request.blueprint)

        def mutate(old: JsonObject | None) -> JsonObject | None:
            if old is None:
                return None
            return self._shaped(patched(old), request, body, media)

        return self._writer.change(request, mutate)

    def _shaped(self, new: JsonObject, request: Request, body: bytes, media: str) -> JsonObject:
        schema = request.blueprint.schema
        if schema is None:
            return new
        try:
            found = Shaped(schema, new)
        except WrongShapeError as error:
            is_strategic = media == STRATEGIC
            shown = (
                go_text(parse_json(body))
                if is_strategic
                else json.dumps({name: new[name] for name in sorted(new)}, separators=(",", ":"))
            )
            raise wrong_patch(shown, error.restoring if is_strategic else str(error)) from None
        if request.writing.validation == "Ignore":
            return found.object
        repeated = () if media == JSON_PATCH else duplicates(repeated_fields(body))
        faults = (*repeated, *unknown_fields(found.unknown))
        if faults and request.writing.validation == "Strict":
            raise wrong_patch(
                go_text(parse_json(body)), f"strict decoding error: {', '.join(faults)}"
            )
        self.warnings = faults
        return found.object

    def _config(self, request: Request, body: bytes) -> JsonObject:
        """The configuration that is applied; nothing in it may be unknown."""
        _demand_manager(request.writing)
        try:
            found = document(body, "application/yaml")
        except UnreadableError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
        kind = request.kind
        if metadata(found).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        if (found.get("apiVersion"), found.get("kind")) != (kind.api_version, kind.kind):
            raise bad_request(
                f"invalid object type: /{found.get('apiVersion')}, Kind={found.get('kind')}"
            )
        name = metadata(found).get("name")
        if name and name != request.target.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({request.target.name})"
            )
        _demand_declared(request, found)
        _demand_typed(request, found)
        repeated = () if request.writing.validation == "Ignore" else repeated_keys(body)
        if repeated and request.writing.validation == "Strict":
            text = f"error converting YAML to JSON: {in_yaml(repeated)}"
            raise bad_request(f"error strict decoding YAML: {text}")
        self.warnings = repeated
        return found


NOT_FOR_CUSTOM = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


def patched_by(media: str, body: bytes, blueprint: Blueprint) -> Patched:
    """What a patch makes of an object."""
    match media:
        case "application/json-patch+json":
            operations = _operations(body)
            return lambda old: _rejecting(lambda: json_patched(old, operations))
        case "application/merge-patch+json":
            patch = _patch_object(body)
            return lambda old: merge_patched(old, patch)
        case "application/strategic-merge-patch+json" if not blueprint.kind.is_custom:
            patch = _patch_object(body)
            schema = blueprint.schema
            return lambda old: _strategic(old, patch, lambda: strategic_patched(old, patch, schema))
        case _:
            text = NOT_FOR_CUSTOM if blueprint.kind.is_custom else "415: Unsupported Media Type"
            raise StatusError(Reason.UNSUPPORTED_MEDIA_TYPE, text, details={})


def _strategic(_: JsonObject, patch: JsonObject, make: Callable[[], JsonObject]) -> JsonObject:
    try:
        return make()
    except PatchError as error:
        raise wrong_patch(go_text(patch), str(error)) from None


def _rejecting(make: Callable[[], Any]) -> JsonObject:
    try:
        found = make()
    except PatchError:
        raise StatusError(Reason.INVALID, REJECTED, details={}) from None
    if not is_map(found):
        raise StatusError(Reason.INVALID, REJECTED, details={})
    try:
        demand_shallow(found)
    except UnreadableError:
        raise StatusError(Reason.INVALID, REJECTED, details={}) from None
    return found


def _operations(body: bytes) -> list[Any]:
    found = _parsed(body)
    if not is_list(found):
        text = f"json: cannot unmarshal {called(found)} into Go value of type"
        raise bad_request(f"error decoding patch: {text} []handlers.jsonPatchOp")
    if len(found) > MOST_OPERATIONS:
        raise StatusError(
            Reason.REQUEST_ENTITY_TOO_LARGE,
            f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, "
            f"got {len(found)}",
        )
    return found


def _patch_object(body: bytes) -> JsonObject:
    found = _parsed(body)
    if not is_map(found):
        text = f"json: cannot unmarshal {called(found)} into Go value of type"
        raise bad_request(f"{text} map[string]interface {{}}")
    return found


def _parsed(body: bytes) -> Any:
    try:
        return parse_json(body)
    except UnreadableError as error:
        raise bad_request(str(error)) from None


def wrong_patch(shown: str, why: str) -> StatusError:
    """The object that comes of the patch is none of its kind."""
    message = f"Invalid value: {json.dumps(shown)}: {why}"
    cause = Cause(reason=CauseReason.INVALID, message=message, field="patch")
    return StatusError(
        Reason.INVALID, f' "" is invalid: patch: {message}', details={"causes": [cause_json(cause)]}
    )


def _demand_manager(writing: Writing) -> None:
    if not writing.manager:
        cause = required("fieldManager", "is required for apply patch")
        raise wrong_options("PatchOptions", [cause])


def _demand_declared(request: Request, config: JsonObject) -> None:
    schema = request.blueprint.schema
    if schema is None:
        return
    unknown = {path for path in fields_of(config, schema) if not _is_declared(path, schema)}
    # What is inside of an unknown field is not told of as well.
    undeclared = [path_text(path) for path in sorted(unknown) if not _is_inside(path, unknown)]
    if not undeclared:
        return
    lines = [f"{each}: field not declared in schema" for each in undeclared]
    raise _untyped(request, lines[0] if len(lines) == 1 else "errors:\n  " + "\n  ".join(lines))


def _demand_typed(request: Request, config: JsonObject) -> None:
    """StatusError where a value is not of its field's type."""
    schema = request.blueprint.schema
    if schema is None:
        return
    try:
        Shaped(schema, config)
    except WrongShapeError as error:
        raise _untyped(request, str(error)) from None


def _untyped(request: Request, why: str) -> StatusError:
    kind, target = request.kind, request.target
    place = f"{target.namespace}/{target.name}; {kind.group}/{kind.version}, Kind={kind.kind}"
    return StatusError(Reason.UNKNOWN, f"failed to create typed patch object ({place}): {why}")


def _is_inside(path: tuple[str, ...], others: set[tuple[str, ...]]) -> bool:
    return any(path[:length] in others for length in range(1, len(path)))


def _is_declared(path: tuple[str, ...], schema: Any) -> bool:
    """Does the type have all fields on this path?"""
    here = schema
    for step in path:
        if here is None or (
            "properties" not in target(here)
            and "additionalProperties" not in target(here)
            and not items_of(here)
        ):
            return True
        keeps_all = target(here).get("x-kubernetes-preserve-unknown-fields")
        here = field_of(here, step[2:]) if step.startswith("f:") else items_of(here)
        if here is None:
            return bool(keeps_all)
    return True
