"""What went wrong, as a document and a status."""

import logging
import re
import secrets
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from muster.api.site import Problem
from muster.doors.config.faults import BadSiteError
from muster.doors.request.bad import BadRequestError
from muster.doors.rest.words import kind
from muster.doors.units import BadTextError
from muster.lifecycle.words import choice, near
from muster.model.errors import (
    BackendDownError,
    BusyError,
    ForbiddenError,
    MusterError,
    RefusedError,
    StaleSnapshotError,
    StoreError,
    StoreFullError,
    UnknownError,
)
from muster.model.value import Value
from muster.telemetry.alerting.reading import BadRulesError

log = logging.getLogger("muster.rest")

RETRY_S = 2
"""When to ask again, if the trouble is ours and passes."""


class UnauthorizedError(MusterError):
    """The user: say who you are."""


class TooLargeError(MusterError):
    """The user: send less."""


class NoSuchPageError(MusterError):
    """The user: the address or the method is wrong."""

    def __init__(self, text: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.allowed = allowed


# The first that fits; classes before those they derive from.
STATUSES: tuple[tuple[type[MusterError], int, str], ...] = (
    (BadRequestError, 400, "bad_request"),
    (BadTextError, 400, "bad_request"),
    (BadSiteError, 400, "bad_site"),
    (BadRulesError, 400, "bad_rules"),
    (UnauthorizedError, 401, "unauthorized"),
    (ForbiddenError, 403, "forbidden"),
    (UnknownError, 404, "unknown"),
    (TooLargeError, 413, "too_large"),
    (BusyError, 429, "busy"),
    (RefusedError, 422, "refused"),
    (StoreFullError, 507, "store_full"),
    (StoreError, 503, "store_down"),
    (BackendDownError, 503, "backend_down"),
    (StaleSnapshotError, 503, "try_again"),
)


class Trouble(Value):
    """A problem, its status, and what the client's software should know beside."""

    status: int
    problem: Problem
    headers: tuple[tuple[bytes, bytes], ...] = ()


def trouble(error: Exception) -> Trouble:
    """What to answer instead of a document."""
    if isinstance(error, NoSuchPageError):
        return _no_such_page(error)
    for known, status, word in STATUSES:
        if isinstance(error, known):
            problem = Problem(
                kind=kind(error.reason) if isinstance(error, RefusedError) else word,
                text=str(error),
                where=_where(error),
            )
            return Trouble(status=status, problem=problem, headers=_headers(status))
    number = secrets.token_hex(4)
    log.error("bug %s", number, exc_info=error)
    text = f"Muster has a bug here. Its log has the details under `bug {number}`; please report it."
    return Trouble(status=500, problem=Problem(kind="our_bug", text=text))


def unreadable(error: msgspec.DecodeError, wanted: type[Value]) -> BadRequestError:
    """Which field of a document is wrong, and what is accepted there."""
    text, _, path = str(error).partition(" - at `")
    where = path.rstrip("`").removeprefix("$").removeprefix(".")
    if found := re.search(r"contains unknown field `([^`]*)`", text):
        return BadRequestError(where, _unknown_field(found[1], wanted))
    if found := re.search(r"missing required field `([^`]*)`", text):
        return BadRequestError(where, f"the field `{found[1]}` is missing")
    return BadRequestError(where, text)


def _no_such_page(error: NoSuchPageError) -> Trouble:
    status, word = (405, "no_such_method") if error.allowed else (404, "no_such_page")
    headers = ((b"allow", ", ".join(error.allowed).encode()),) if error.allowed else ()
    return Trouble(status=status, problem=Problem(kind=word, text=str(error)), headers=headers)


def _where(error: MusterError) -> str | None:
    if isinstance(error, BadSiteError):
        return f"line {error.problems[0].line}"
    return error.where or None if isinstance(error, BadRequestError) else None


def _headers(status: int) -> tuple[tuple[bytes, bytes], ...]:
    if status == 401:
        return ((b"www-authenticate", b"Bearer"),)
    if status == 413:
        # What was not read of the request must not be taken for the next one.
        return ((b"connection", b"close"),)
    return ((b"retry-after", str(RETRY_S).encode()),) if status in {429, 503} else ()


def _unknown_field(name: str, wanted: type[Value]) -> str:
    alike = near(name, _fields(wanted))
    hint = f"did you mean {choice(f'`{each}`' for each in alike)}?" if alike else "leave it out"
    return f"there is no field `{name}`; {hint}"


@cache
def _fields(wanted: type[Value]) -> frozenset[str]:
    """The fields of a document and of those inside it."""
    found: set[str] = set()
    ahead: list[Any] = [inspect.type_info(wanted)]
    while ahead:
        match ahead.pop():
            case inspect.StructType(fields=fields):
                found.update(each.encode_name for each in fields)
                ahead.extend(each.type for each in fields)
            case inspect.UnionType(types=types):
                ahead.extend(types)
            case inspect.VarTupleType(item_type=item):
                ahead.append(item)
            case _:
                pass
    return frozenset(found)
