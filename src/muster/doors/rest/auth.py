"""Who asks: by the credentials of a unix socket's other end, or by a bearer token."""

import asyncio
import os
import pwd
import time
from collections.abc import Mapping
from typing import Any

from muster.controller.messages import Caller
from muster.doors.rest.operation import Door
from muster.doors.rest.problems import UnauthorizedError
from muster.model.errors import ForbiddenError
from muster.model.value import UserName

PEER = "uid"
"""Instead of a host: `scope["client"]` is ("uid", 1000) on a unix socket (see `peers.py`)."""

DOORS = frozenset({"cli", "python", "web"})
"""What `X-Muster-Door` may say; everything else came through `rest`."""

LOOK_AGAIN_S = 0.5
"""How long an open stream may outlive its token."""

REMEMBERED_S = 60.0
"""How long a uid keeps its name without the system's list of users being asked again."""


class UserNames:
    """The names of this machine's users."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, float]] = {}

    def name(self, uid: int) -> str:
        """By uid; a uid that has no name goes by its number."""
        known, until = self._names.get(uid, ("", 0.0))
        if time.monotonic() < until:
            return known
        name = _system_name(uid)
        self._names[uid] = (name, time.monotonic() + REMEMBERED_S)
        return name


def caller_of(
    scope: Mapping[str, Any], headers: Mapping[bytes, bytes], door: Door, people: UserNames
) -> Caller:
    """Who asks; UnauthorizedError for somebody who does not say so.

    A token counts also on a unix socket: somebody may want to be less than they are.
    """
    said = headers.get(b"x-muster-door", b"").decode("latin-1")
    through = said if said in DOORS else "rest"
    if (given := headers.get(b"authorization")) is not None:
        return _by_token(given, through, door)
    match scope.get("client"):
        case (str(host), int(uid)) if host == PEER:
            is_root = uid in {0, os.getuid()}
            return Caller(user=UserName(people.name(uid)), door=through, root=is_root)
        case _:
            raise UnauthorizedError("Say who you are: send a token (`muster tokens` makes one).")


async def until_revoked(caller: Caller, door: Door) -> None:
    """Returns when the caller's token is good no more; never, where they came without one.

    It is looked at again and again: a token ends by time, by being revoked here, or elsewhere.
    """
    if caller.token is None:
        await asyncio.Event().wait()
        return
    while door.service.queries.people.is_good(caller.token):
        await asyncio.sleep(LOOK_AGAIN_S)


def _by_token(given: bytes, through: str, door: Door) -> Caller:
    scheme, _, secret = given.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise UnauthorizedError("Send the token as `Authorization: Bearer ...`.")
    try:
        return door.service.queries.people.caller_of(secret.strip(), through)
    except ForbiddenError as refused:
        raise UnauthorizedError(str(refused)) from refused


def _system_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
