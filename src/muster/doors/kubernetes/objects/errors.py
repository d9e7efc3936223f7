"""What the API refuses, in the words of Kubernetes: a `Status` with reason, code and causes."""

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject, Kind
from muster.model.errors import MusterError
from muster.model.value import Value


class Reason(Enum):
    """Why a request failed, and the HTTP code that goes with it."""

    BAD_REQUEST = ("BadRequest", 400)
    UNAUTHORIZED = ("Unauthorized", 401)
    FORBIDDEN = ("Forbidden", 403)
    NOT_FOUND = ("NotFound", 404)
    METHOD_NOT_ALLOWED = ("MethodNotAllowed", 405)
    NOT_ACCEPTABLE = ("NotAcceptable", 406)
    ALREADY_EXISTS = ("AlreadyExists", 409)
    CONFLICT = ("Conflict", 409)
    GONE = ("Gone", 410)
    EXPIRED = ("Expired", 410)
    REQUEST_ENTITY_TOO_LARGE = ("RequestEntityTooLarge", 413)
    UNSUPPORTED_MEDIA_TYPE = ("UnsupportedMediaType", 415)
    INVALID = ("Invalid", 422)
    TOO_MANY_REQUESTS = ("TooManyRequests", 429)
    INTERNAL_ERROR = ("InternalError", 500)
    UNKNOWN = ("", 500)
    SERVICE_UNAVAILABLE = ("ServiceUnavailable", 503)
    TIMEOUT = ("Timeout", 504)

    @property
    def word(self) -> str:
        """As the `Status` names it."""
        return self.value[0]

    @property
    def code(self) -> int:
        """As HTTP names it."""
        return self.value[1]


class CauseReason(Enum):
    """What is wrong with one field, and how its message begins."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    MANAGER_CONFLICT = ("FieldManagerConflict", "conflict")
    DISRUPTION_BUDGET = ("DisruptionBudget", "")
    UID_MISMATCH = ("UIDMismatch", "")
    RESOURCE_VERSION_TOO_LARGE = ("ResourceVersionTooLarge", "")
    UNEXPECTED_RESPONSE = ("UnexpectedServerResponse", "")

    @property
    def word(self) -> str:
        """As the cause names it."""
        return self.value[0]

    @property
    def start(self) -> str:
        """How the message begins."""
        return self.value[1]


class Cause(Value):
    """One thing that is wrong with an object. field: a path, such as `spec.containers[0].name`."""

    reason: CauseReason
    message: str
    field: str = ""


def required(field: str, detail: str = "") -> Cause:
    """A field that must be there is not."""
    return _cause(CauseReason.REQUIRED, field, detail)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A field has a value that cannot be."""
    return _cause(CauseReason.INVALID, field, f"{shown(value)}: {detail}")


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    """A field has a value of another type."""
    return _cause(CauseReason.TYPE_INVALID, field, f"{shown(value)}: {detail}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """A field must be one of these."""
    listed = ", ".join(json.dumps(each) for each in supported)
    return _cause(CauseReason.NOT_SUPPORTED, field, f"{shown(value)}: supported values: {listed}")


def duplicate(field: str, value: Any) -> Cause:
    """Something that must be there once is there again."""
    return _cause(CauseReason.DUPLICATE, field, shown(value))


def forbidden_field(field: str, detail: str) -> Cause:
    """A field may not be set, or not be changed."""
    return _cause(CauseReason.FORBIDDEN, field, detail)


def too_long(field: str, most: int) -> Cause:
    """A text has more than `most` bytes."""
    return _cause(CauseReason.TOO_LONG, field, f"may not be more than {most} bytes")


def too_many(field: str, value: int, most: int) -> Cause:
    """A list has more than `most` items."""
    return _cause(CauseReason.TOO_MANY, field, f"{value}: must have at most {most} items")


def not_found_field(field: str, value: Any) -> Cause:
    """A field names something that is not there."""
    return _cause(CauseReason.NOT_FOUND, field, shown(value))


def _cause(reason: CauseReason, field: str, rest: str) -> Cause:
    return Cause(reason=reason, message=": ".join(filter(None, (reason.start, rest))), field=field)


def shown(value: Any) -> str:
    """A value as messages show it: texts in quotes, the rest as JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class StatusError(MusterError):
    """A request that fails with a `Status`.

    kind, name: whatever the details name; None: there are no details.
    token: with which a list that cannot go on as it began goes on all the same.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        details: JsonObject | None = None,
        code: int | None = None,
        token: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.details = details
        self.code = code or reason.code
        self.token = token

    def status(self) -> JsonObject:
        """The `Status` as clients read it."""
        answer: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.token} if self.token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason.word:
            answer["reason"] = self.reason.word
        if self.details is not None:
            answer["details"] = self.details
        answer["code"] = self.code
        return answer


class DeniedError(StatusError):
    """Who asks has no right to it, which is said before the request itself is looked at."""


def not_found(kind: Kind, name: str) -> StatusError:
    """There is no such object."""
    return StatusError(
        Reason.NOT_FOUND, f'{kind.resource} "{name}" not found', details=details_of(kind, name)
    )


def already_exists(kind: Kind, name: str) -> StatusError:
    """There is such an object already."""
    return StatusError(
        Reason.ALREADY_EXISTS,
        f'{kind.resource} "{name}" already exists',
        details=details_of(kind, name),
    )


def conflict(kind: Kind, name: str, why: str) -> StatusError:
    """The object is not as the request supposes."""
    return StatusError(
        Reason.CONFLICT,
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}',
        details=details_of(kind, name),
    )


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """Somebody else may, or nobody."""
    called = f'{kind.resource} "{name}"' if name else kind.resource
    return StatusError(
        Reason.FORBIDDEN, f"{called} is forbidden: {why}", details=details_of(kind, name)
    )


def bad_request(message: str) -> StatusError:
    """The request cannot be understood."""
    return StatusError(Reason.BAD_REQUEST, message)


def invalid_object(kind: Kind, name: str, causes: Iterable[Cause]) -> StatusError:
    """The object breaks rules of its kind: all of them at once."""
    all_causes = tuple(causes)
    # As Kubernetes does, equal lines are said once; the causes name them all.
    lines = tuple(dict.fromkeys(_line(each) for each in all_causes))
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = details_of(kind, name, field="kind")
    details["causes"] = [cause_json(each) for each in all_causes]
    return StatusError(
        Reason.INVALID, f'{kind.qualified_kind} "{name}" is invalid: {text}', details=details
    )


def cause_json(cause: Cause) -> JsonObject:
    """A cause as clients read it."""
    told: JsonObject = {"reason": cause.reason.word, "message": cause.message}
    return {**told, "field": cause.field} if cause.field else told


def details_of(kind: Kind, name: str, *, field: str = "plural") -> JsonObject:
    """Which object it is about. field: `Invalid` names the kind, everything else the resource."""
    named = {"name": name} if name else {}
    group = {"group": kind.group} if kind.group else {}
    return {**named, **group, "kind": kind.kind if field == "kind" else kind.plural}


def _line(cause: Cause) -> str:
    return f"{cause.field}: {cause.message}" if cause.field else cause.message
