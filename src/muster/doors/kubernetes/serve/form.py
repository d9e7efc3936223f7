"""In which form an answer is wanted: JSON or YAML; objects, a Table, or their metadata alone."""

import json
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.model.value import Value

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

NO_TABLE = (
    "the server was unable to respond with a content type that the client supports: "
    "an answer to a question is no list"
)
NOT_ACCEPTABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


class Shape(StrEnum):
    """What stands in for the objects."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    DISCOVERY = "APIGroupDiscoveryList"


class Form(Value):
    """The form of an answer."""

    media: str = JSON
    shape: Shape = Shape.OBJECT
    version: str = "v1"


_SHAPES = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
    "APIGroupDiscoveryList": Shape.DISCOVERY,
}
_VERSIONS = {"v1", "v1beta1", "v2", "v2beta1"}


def form_of(accept: str, *, discovery: bool = False) -> Form:
    """The first form in the header that can be given; who accepts protobuf gets JSON."""
    if not accept:
        return Form()
    found = (_form(each, discovery=discovery) for each in accept.split(","))
    form = next((each for each in found if each is not None), None)
    if form is None:
        if PROTOBUF in accept:
            return Form()
        raise StatusError(Reason.NOT_ACCEPTABLE, NOT_ACCEPTABLE, details={})
    return form


def _form(clause: str, *, discovery: bool) -> Form | None:
    media, *given = (each.strip() for each in clause.split(";"))
    pairs = [each.partition("=") for each in given]
    parameters = {name: value for name, _, value in pairs}
    wanted = parameters.get("as")
    if media in {"*/*", "application/*", ""}:
        media = JSON
    if media not in {JSON, YAML}:
        return None
    if wanted is None:
        return Form(media=media)
    shape, version = _SHAPES.get(wanted), parameters.get("v", "v1")
    if shape is None or version not in _VERSIONS or (shape is Shape.DISCOVERY) is not discovery:
        return None
    return Form(media=media, shape=shape, version=version)


def written(found: Any) -> bytes:
    """As JSON on one line; what the quick writer does not take, Python's own does."""
    try:
        return msgspec.json.encode(found) + b"\n"
    except (OverflowError, UnicodeEncodeError, RecursionError):
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False, default=opened)
        return text.encode(errors="replace") + b"\n"


def opened(found: msgspec.Raw) -> Any:
    """A part that was written before, for Python's own writer."""
    return json.loads(bytes(found))


def no_table() -> StatusError:
    """An answer to a question is no list, and is not shown as one."""
    return StatusError(Reason.NOT_ACCEPTABLE, NO_TABLE, details={})


def in_form(found: Any, form: Form, *, indented: bool) -> bytes:
    """An answer in the form that is wanted."""
    if form.media == YAML:
        plain = json.loads(written(found))
        return yaml.safe_dump(plain, default_flow_style=False, sort_keys=True).encode()
    if indented:
        text = json.dumps(found, indent=2, ensure_ascii=False, default=opened)
        return text.encode(errors="replace")
    return written(found)
