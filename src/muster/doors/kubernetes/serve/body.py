"""Bodies of requests: JSON, YAML or protobuf, read into objects of the kind that is expected."""

import json
import math
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from muster.doors.kubernetes.objects.errors import Reason, StatusError, bad_request
from muster.doors.kubernetes.objects.parsing import (
    DEEPEST,
    UnreadableError,
    demand_shallow,
    levels_of,
    parse_json,
    well_formed,
)
from muster.doors.kubernetes.objects.protobuf import BadProtobufError, decoded
from muster.doors.kubernetes.objects.repeated import (
    LOADER,
    duplicates,
    faults_in_order,
    repeated_fields,
    repeated_keys,
)
from muster.doors.kubernetes.objects.schemas.types import Schema
from muster.doors.kubernetes.objects.shaping import Shaped, WrongShapeError
from muster.doors.kubernetes.objects.value import JsonObject, Kind, is_list, is_map
from muster.doors.kubernetes.serve.form import JSON, PROTOBUF, YAML
from muster.model.value import Value

MOST_BODY = 3 * 1_024 * 1_024
"""In bytes, as Kubernetes has it."""

SHOWN = 64 * 1_024
"""So much of what is wrong is sent back."""

MOST_YAML = 1_024 * 1_024
"""YAML takes many times as long to read as JSON."""

MOST_VALUES = 200_000
"""So many values a document of YAML may come to; a few lines of it can stand for any number."""

UNKNOWN_FORMAT = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
)


class Decoded(Value):
    """An object in its shape. warnings: fields that nobody knows, which were left out."""

    object: JsonObject
    warnings: tuple[str, ...] = ()


def document(body: bytes, media: str) -> JsonObject:
    """What is in a body, whatever it is of."""
    media = media.partition(";")[0].strip() or JSON
    match media:
        case "application/json":
            return _json(body)
        case "application/yaml":
            return _yaml(body)
        case "application/vnd.kubernetes.protobuf":
            return _protobuf(body)
        case _:
            raise StatusError(Reason.UNSUPPORTED_MEDIA_TYPE, UNKNOWN_FORMAT)


KNOWN_MEDIA = (JSON, YAML, PROTOBUF)


_WRONG_BYTES = (
    BadProtobufError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    OSError,
    RecursionError,
    struct.error,
)
"""What comes of bytes that are no such message, wherever they are found to be none."""


def _protobuf(body: bytes) -> JsonObject:
    try:
        found = decoded(body)
        demand_shallow(found)
        # It must be possible to write it down again.
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except UnreadableError as error:
        raise bad_request(f"unable to decode the protobuf body: {error}") from None
    except _WRONG_BYTES as error:
        raise bad_request(f"unable to decode the protobuf body: {error}") from None
    return found


def _json(body: bytes) -> JsonObject:
    found = parse_json(body)
    if not is_map(found):
        raise UnreadableError(
            f"json: cannot unmarshal {called(found)} into Go value of type struct"
        )
    return found


def _yaml(body: bytes) -> JsonObject:
    if body.lstrip()[:1] == b"{":
        # Most of what is sent as YAML is JSON.
        try:
            return _json(body)
        except UnreadableError:
            pass
    if len(body) > MOST_YAML:
        text = f"YAML may have {MOST_YAML} bytes; send JSON"
        raise StatusError(Reason.REQUEST_ENTITY_TOO_LARGE, text)
    try:
        _demand_shallow_yaml(body)
        found: Any = yaml.load(body, Loader=_Loader)  # noqa: S506 - a SafeLoader, see below
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise UnreadableError(f"error converting YAML to JSON: {error}") from None
    if not is_map(found):
        raise UnreadableError("json: cannot unmarshal into Go value of type struct")
    _demand_few(found)
    plain: JsonObject = well_formed(_as_json(found), body)
    return plain


def _demand_shallow_yaml(body: bytes) -> None:
    """UnreadableError if it is nested too deeply: its reader in C would run out of stack."""
    depth = 0
    # The stubs say nothing about events.
    events: Any = yaml
    for event in events.parse(body, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UnreadableError("exceeded max depth")


def _demand_few(found: JsonObject) -> None:
    """UnreadableError if aliases make more of a document than anybody could have written."""
    count = 0
    for depth, level in enumerate(levels_of(found)):
        count += sum(map(len, level))
        if count > MOST_VALUES or depth > DEEPEST:
            raise UnreadableError("yaml: document contains excessive aliasing")


def _as_json(value: Any) -> Any:
    """The same in what JSON has; keys of other types are texts, as Go makes them."""
    if is_map(value):
        return {_key(name): _as_json(each) for name, each in value.items()}
    if is_list(value):
        return [_as_json(each) for each in value]
    is_number = isinstance(value, float) and math.isfinite(value)
    if is_number or value is None or isinstance(value, (str, int)):
        return value
    raise UnreadableError(f"error converting YAML to JSON: {called(value)} has no place in JSON")


def _key(name: Any) -> str:
    if isinstance(name, str):
        return name
    if name is None or isinstance(name, (bool, int, float)):
        return json.dumps(name)
    raise UnreadableError("error converting YAML to JSON: a key must be a text")


class _Loader(LOADER):
    """Dates stay text, as in JSON; `y` and `n` are booleans, as in Go's reader."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in each if tag != "tag:yaml.org,2002:timestamp"]
    for key, each in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _letter in "yYnN":
    _Loader.yaml_implicit_resolvers.setdefault(_letter, []).append(
        ("tag:yaml.org,2002:bool", re.compile(f"{_letter}$"))
    )
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def called(value: Any) -> str:
    """What Go calls such a value of JSON."""
    names = {
        "bool": "bool",
        "str": "string",
        "int": "number",
        "float": "number",
        "list": "array",
        "dict": "object",
    }
    return names.get(type(value).__name__, "null")


def expected(body: bytes, media: str, kind: Kind) -> JsonObject:
    """The document, which must be of this kind, or say nothing of its kind."""
    try:
        found = document(body, media)
    except UnreadableError as error:
        shown = body[:SHOWN].decode(errors="replace")
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): "
            f"couldn't get version/kind; json parse error: {error} ({shown})"
        ) from None
    named = str(found.get("kind") or kind.kind)
    version = str(found.get("apiVersion") or kind.api_version)
    if (named, version) != (kind.kind, kind.api_version):
        group = kind.group.partition(".")[0] or "core"
        short = version.rpartition("/")[2]
        raise bad_request(
            f'{named} in version "{short}" cannot be handled as a {kind.kind}: '
            f"converting ({short}.{named}) to ({group}.{kind.kind}): unknown conversion"
        )
    return {**found, "kind": named, "apiVersion": version}


class Sent(Value):
    """A body as it came, and how strict its reader is to be: `Ignore`, `Warn` or `Strict`."""

    body: bytes
    media: str
    validation: str


def shaped(found: JsonObject, kind: Kind, schema: Schema | None, sent: Sent) -> Decoded:
    """The document in the shape of its kind.

    Fields that nobody knows, and those that stand there twice, are refused if that is asked for.
    """
    if schema is None:
        return Decoded(object=found)
    try:
        result = Shaped(schema, found)
    except WrongShapeError as error:
        raise bad_request(f"{_prefix(kind)}: {error}") from None
    if sent.validation == "Ignore":
        return Decoded(object=result.object)
    faults = _faults(sent, result.unknown, is_custom=kind.is_custom)
    if sent.validation == "Warn":
        return Decoded(object=result.object, warnings=faults)
    if faults:
        raise bad_request(f"{_prefix(kind)}: strict decoding error: {_strictly(faults)}")
    return Decoded(object=result.object)


def _faults(sent: Sent, unknown: Sequence[str], *, is_custom: bool) -> tuple[str, ...]:
    media = sent.media.partition(";")[0].strip() or JSON
    if media == YAML:
        return (*repeated_keys(sent.body), *unknown_fields(unknown))
    if media != JSON:
        return unknown_fields(unknown)
    if is_custom:
        return (*duplicates(repeated_fields(sent.body)), *unknown_fields(unknown))
    return faults_in_order(sent.body, unknown)


def unknown_fields(paths: Iterable[str]) -> tuple[str, ...]:
    """As messages say it."""
    return tuple(f'unknown field "{each}"' for each in paths)


def _strictly(faults: Sequence[str]) -> str:
    """All of them in one message; Go's reader of YAML tells of all its own at once."""
    of_yaml = [each for each in faults if each.startswith("line ")]
    others = [each for each in faults if not each.startswith("line ")]
    return ", ".join([*([in_yaml(of_yaml)] if of_yaml else []), *others])


def in_yaml(faults: Iterable[str]) -> str:
    """What Go's reader of YAML found, as it says it."""
    return "\n  ".join(["yaml: unmarshal errors:", *faults])


def _prefix(kind: Kind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
