"""slurmrestd, asked over HTTP with time-outs; its documents are for the pure halves.

An answer that does not come in time says nothing about what happened: the caller looks again.
What slurmrestd has no path for goes through Slurm's commands, where they were named as well.
"""

import base64
import binascii
import http.client
import json
import logging
import shlex
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from muster.backends.attempts import Deed, End, Kill, Resume, Send
from muster.backends.local.isolation.users import LaunchError, local_user, surroundings
from muster.backends.slurm import rest_reading as reading
from muster.backends.slurm.clients import without_clients
from muster.backends.slurm.commands import Commands
from muster.backends.slurm.listing import QueuedJob
from muster.backends.slurm.nodes import Fleet, Partition, SlurmNode
from muster.backends.slurm.refusals import failure
from muster.backends.slurm.rest_submission import Asked, UnknownOptionError, document, limit
from muster.backends.slurm.submission import Submission
from muster.backends.slurm.topology import Topology
from muster.backends.slurm.usage import Usage
from muster.backends.slurm.wire import (
    SlurmDownError,
    SlurmNotYetError,
    SlurmRefusedError,
    Submitted,
)
from muster.model.value import UserName, Value

Json = dict[str, Any]

log = logging.getLogger(__name__)

_AT_A_TIME = 4
_TERM = 15
_LEFT_S = 60
"""So long before its end a token is thrown away."""
_USUALLY_S = 300
"""So long a token is used that does not say when it ends."""
_UNSPECIFIED = -1
_NOT_FOUND = 2_017
"""Slurm's number for a job that it does not know (any more)."""
_CHANGES_NOW = 2_020
_AGAIN_AFTER_S = (0.2, 0.5, 1.0, 2.0)


class RestAccess(Value):
    """How slurmrestd is reached: `http://host:6820`, `https://...` or `unix:/path`.

    token_file, or token_command: where a JWT is, of root or SlurmUser, who may be anybody; neither
    where slurmrestd itself is whose jobs are submitted. answer_s: how long an answer may take.
    """

    url: str
    token_file: str = ""
    token_command: str = ""
    answer_s: int = 30


class Rest:
    """The REST API of one cluster. commands: its commands, if they are here."""

    def __init__(self, access: RestAccess, commands: Commands | None = None) -> None:
        self._access, self._commands = access, commands
        self._token = _Token(access)
        self._version = ""

    def jobs(self) -> tuple[QueuedJob, ...]:
        return reading.jobs(self._ask("GET", "slurm", "jobs"))

    def partitions(self) -> tuple[Partition, ...]:
        return reading.partitions(self._ask("GET", "slurm", "partitions"))

    def nodes(self, fleet: Fleet) -> tuple[SlurmNode, ...]:
        return reading.nodes(self._ask("GET", "slurm", "nodes"), fleet)

    def topology(self) -> Topology:
        return Topology() if self._commands is None else self._commands.topology()

    def finished(self, handle: str) -> QueuedJob | None:
        return reading.finished(self._ask("GET", "slurmdb", f"job/{handle}"), handle)

    def usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        return self._through_commands("what running jobs use").usage(handles)

    def submit(self, asked: Sequence[tuple[Submission, UserName]]) -> Sequence[Submitted]:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            return list(pool.map(self._submitted, asked))

    def version(self) -> str:
        """Which Slurm it says that it is."""
        return reading.release_of(self._ask("GET", "slurm", "ping"))

    def accounts(self) -> tuple[str, ...]:
        """Those in whose name jobs can be; none where Slurm keeps no accounts."""
        return self._accounting("accounts", "accounts")

    def qualities(self) -> tuple[str, ...]:
        """Every QOS; none where Slurm keeps no accounts."""
        return self._accounting("qos", "qos") or self._accounting("qos", "QOS")

    def do(self, handle: str, deed: Deed) -> None:
        match deed:
            case Send(first_only=True) | Resume():
                self._through_commands("signals for the first process only, and resuming").do(
                    handle, deed
                )
            case Send(signal=number):
                self._send(handle, number)
            case End():
                self._send(handle, _TERM)
            case Kill():
                # Without a signal it is killed, and cancelled where it waits.
                self._ask("DELETE", "slurm", f"job/{handle}")

    def signal_step(self, handle: str, step: int, number: int) -> None:
        self._through_commands("signals for steps").signal_step(handle, step, number)

    def suspend(self, handle: str) -> None:
        self._through_commands("suspending").suspend(handle)

    def limit(self, handle: str, minutes: int | None) -> None:
        self._ask("POST", "slurm", f"job/{handle}", limit(minutes, self._spoken()))

    def _send(self, handle: str, number: int) -> None:
        """As scancel does: a job that just begins, or changes, takes no signal for a moment."""
        for pause_s in _AGAIN_AFTER_S:
            try:
                self._ask("DELETE", "slurm", f"job/{handle}?signal={number}")
            except SlurmNotYetError:
                time.sleep(pause_s)
            else:
                return
        self._ask("DELETE", "slurm", f"job/{handle}?signal={number}")

    def _through_commands(self, what: str) -> Commands:
        if self._commands is None:
            raise SlurmRefusedError(
                f"slurmrestd has nothing for {what}; name --conf or --commands beside --rest"
            )
        return self._commands

    def _submitted(self, asked: tuple[Submission, UserName]) -> Submitted:
        try:
            return self._job(*asked)
        except UnknownOptionError as error:
            if self._commands is not None:
                return self._commands.submit((asked,))[0]
            return SlurmRefusedError(f"{error}; name --conf or --commands beside --rest")
        except LaunchError as error:
            return SlurmRefusedError(str(error))
        except (SlurmDownError, SlurmRefusedError) as error:
            return error
        except Exception as error:
            # What can never be submitted must end its own attempt, and hold up no other.
            log.exception("slurmrestd cannot be asked for a job")
            return SlurmRefusedError(f"slurmrestd cannot be asked for it: {error}")

    def _job(self, told: Submission, user: UserName) -> str:
        whose = local_user(user)
        folder = told.workdir or whose.home
        env = {**surroundings(whose), **told.env}
        env["PATH"] = without_clients(env["PATH"])
        body = document(Asked(told=told, env=env, folder=folder), self._spoken())
        answer = self._ask("POST", "slurm", "job/submit", body, user=user)
        handle = str(answer.get("job_id") or "")
        if not handle.isdecimal():
            raise SlurmDownError("slurmrestd took a job, and says no number of it")
        self._demand_owner(handle, user, whose.uid)
        return handle

    def _demand_owner(self, handle: str, user: UserName, uid: int) -> None:
        """A name that the cluster does not know becomes nobody there, and is refused nothing."""
        try:
            owner = reading.owner_of(self._ask("GET", "slurm", f"job/{handle}"))
        except (SlurmDownError, SlurmRefusedError):
            # Whose it is, is looked at again in every listing.
            return
        if owner is not None and owner != uid:
            self._ask("DELETE", "slurm", f"job/{handle}")
            raise SlurmRefusedError(
                f"user {user} has the number {uid} here and is {owner} to slurmrestd: users need "
                "the same names and numbers on both, and the token must be SlurmUser's or root's"
            )

    def _accounting(self, path: str, kind: str) -> tuple[str, ...]:
        try:
            return reading.names(self._ask("GET", "slurmdb", path), kind)
        except (SlurmDownError, SlurmRefusedError):
            return ()

    def _spoken(self) -> str:
        """The version of the API that both sides know, which is asked for once."""
        if not self._version:
            found = reading.version_of(self._answer("GET", "/openapi/v3", None, self._token.user()))
            if not found:
                known = f"{reading.KNOWN[-1]} to {reading.KNOWN[0]}"
                raise SlurmDownError(f"{self._access.url} speaks no version of ours: {known}")
            self._version = found
        return self._version

    def _ask(
        self, method: str, part: str, path: str, body: Json | None = None, user: str = ""
    ) -> Json:
        where = f"/{part}/{self._spoken()}/{path}"
        return self._answer(method, where, body, user or self._token.user())

    def _answer(self, method: str, path: str, body: Json | None, user: str) -> Json:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token := self._token.now():
            headers |= {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token}
        sent = None if body is None else json.dumps(body)
        link = _link(self._access)
        try:
            link.request(method, path, sent, headers)
            answer = link.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            text = f"slurmrestd at {self._access.url} does not answer: {error or type(error)}"
            raise SlurmDownError(text) from None
        finally:
            link.close()
        return _read(answer.status, said)


def _read(status: int, said: bytes) -> Json:
    try:
        found: Any = json.loads(said or b"{}")
    except (ValueError, RecursionError):
        found = None
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise SlurmDownError("slurmrestd takes our token no more, or not yet")
    if not isinstance(found, dict):
        raise SlurmDownError(f"what answered is no slurmrestd (status {status})")
    answer = cast("Json", found)
    words, numbers = reading.errors_in(answer), reading.error_numbers(answer)
    # A job that has a number was taken: what else is said, such as that its node is down, is news.
    if not words or answer.get("job_id"):
        return answer
    if status == HTTPStatus.BAD_REQUEST or _NOT_FOUND in numbers:
        raise SlurmRefusedError(words)
    if _CHANGES_NOW in numbers:
        raise SlurmNotYetError(words)
    if _UNSPECIFIED in numbers:
        # All that it says where slurmctld does not take its token, or does not answer.
        raise SlurmDownError(words)
    raise failure(words)


class _Token:
    """The token to show now, and whose it is."""

    def __init__(self, access: RestAccess) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._printed, self._until = "", 0.0

    def now(self) -> str:
        access = self._access
        if access.token_file:
            try:
                return _bare(Path(access.token_file).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise SlurmDownError(f"{access.token_file} cannot be read: {error}") from None
        if not access.token_command:
            return ""
        with self._lock:
            if time.time() >= self._until:
                self._printed = _bare(_printed(access.token_command))
                ends = reading.expiry_of(_claims(self._printed))
                usually = time.time() + _USUALLY_S
                self._until = usually if ends is None else ends / 1_000 - _LEFT_S
            return self._printed

    def user(self) -> str:
        """Who asks for what is nobody's: whom the token is of."""
        found = _claims(self.now()).get("sun")
        return found if isinstance(found, str) else "root"


def _printed(command: str) -> str:
    try:
        return subprocess.run(  # noqa: S603 -- as the administrator said
            shlex.split(command), capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SlurmDownError(f"--token-command gave no token: {error}") from None


def _bare(text: str) -> str:
    """`scontrol token` writes `SLURM_JWT=` before it."""
    return text.strip().removeprefix("SLURM_JWT=")


def _claims(token: str) -> Json:
    """What a JWT says of itself. Nothing is believed because of it."""
    try:
        part = token.split(".")[1]
        found: Any = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return cast("Json", found) if isinstance(found, dict) else {}


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket that has a path."""

    def __init__(self, path: str, timeout: int) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _link(access: RestAccess) -> http.client.HTTPConnection:
    parts = urlsplit(access.url)
    match parts.scheme:
        case "unix":
            return _UnixConnection(parts.path, access.answer_s)
        case "https":
            tls = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.netloc, timeout=access.answer_s, context=tls)
        case _:
            return http.client.HTTPConnection(parts.netloc, timeout=access.answer_s)
