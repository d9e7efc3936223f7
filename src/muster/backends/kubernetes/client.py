"""What we ask of an API server, with time-outs and patience; JSON in, JSON out.

An answer that does not come says nothing about what happened. So everything that is sent may be
sent again: objects have names that we chose, bindings and deletions name the uid that they mean.
"""

import contextlib
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import urllib3
from urllib3.util import Retry, Timeout
from websockets.exceptions import (
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidStatus,
    WebSocketException,
)
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from muster.backends.kubernetes.amounts import plain
from muster.backends.kubernetes.hands import HANDS
from muster.backends.kubernetes.kubeconfig import Access, Program
from muster.backends.kubernetes.visits import Way

Json = dict[str, Any]

_JSON = "application/json"
_ANSWER_S = 30
_WATCH_S = 240
"""So long a watch goes on before it is begun again, where the last one ended."""
_COMMAND_S = 5.0
"""So long a command in a container may take: what runs there is a user's, whatever it is called."""
_LONGEST_OUTCOME = 65_536
_CHANNELS = Subprotocol("v4.channel.k8s.io")
_OUTCOME = 3
"""The channel on which is said how a command in a container ended."""
_BUSY = (429, 500, 502, 503, 504)
_LATER_S = 5
"""So late it is asked again at most: who waits longer keeps everything else waiting too."""


class KubernetesDownError(Exception):
    """The API server did not answer; whether it did what was asked is not known."""


class KubernetesRefusedError(Exception):
    """The API server understood, and said no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_missing(self) -> bool:
        return self.code == 404

    @property
    def is_conflict(self) -> bool:
        return self.code == 409

    @property
    def is_too_old(self) -> bool:
        """What we know is so old that the server has forgotten what happened since."""
        return self.code == 410


class _Patience(Retry):
    """Whoever is told to come back later does so: when the server says, within reason."""

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        said = super().get_retry_after(response)
        return None if said is None else min(said, _LATER_S)


class Client:
    """One API server. Any thread may call.

    command_s: how long commands in containers may take; answer_s: how long an answer may.
    tries: how often what was not taken is sent once more.
    """

    def __init__(
        self,
        access: Access,
        command_s: float = _COMMAND_S,
        *,
        answer_s: int = _ANSWER_S,
        tries: int = 4,
    ) -> None:
        self._command_s = command_s
        self._access = access
        self._tls = _tls(access)
        self._token = _Token(access)
        if not access.verifies:
            # The administrator said so; once for each request is no news.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        more: dict[str, Any] = {"server_hostname": access.server_name} if access.server_name else {}
        self._pool = urllib3.PoolManager(
            maxsize=2 * HANDS,
            ssl_context=self._tls,
            assert_hostname=None if access.verifies else False,
            timeout=Timeout(connect=min(5, answer_s), read=answer_s),
            retries=_Patience(
                total=tries,
                connect=min(1, tries),
                read=0,
                redirect=0,
                status_forcelist=_BUSY,
                allowed_methods=None,
                backoff_factor=0.2,
                backoff_max=_LATER_S,
                raise_on_status=False,
            ),
            **more,
        )

    def close(self) -> None:
        """Hang up; whoever asks afterwards calls again."""
        self._pool.clear()

    def get(self, path: str, **query: str) -> Json:
        return self._asked("GET", path, query=query)

    def create(self, path: str, body: Json) -> Json:
        return self._asked("POST", path, body)

    def merge(self, path: str, change: Json) -> Json:
        """Change an object: null takes a field away, and lists are merged as their kind says."""
        return self._asked("PATCH", path, change, kind="application/strategic-merge-patch+json")

    def delete(self, path: str, options: Json) -> None:
        """Gone already is as good."""
        try:
            self._asked("DELETE", path, options)
        except KubernetesRefusedError as error:
            # A conflict: the uid is another one, so that it is not the one that was meant.
            if not error.is_missing and not error.is_conflict:
                raise

    def text(self, path: str, **query: str) -> bytes:
        """An answer that is no JSON, such as a log."""
        return self._sent("GET", path, query=query).data

    def listed(self, path: str) -> tuple[list[Json], str]:
        """All objects, in portions, and the version that they have together."""
        found: list[Json] = []
        query = {"limit": "500"}
        while True:
            page = self.get(path, **query)
            found += page.get("items") or ()
            about: Json = page.get("metadata") or {}
            if "resourceVersion" not in about:
                raise KubernetesDownError(f"{path}: it answered with something else than a list")
            if not about.get("continue"):
                return found, about["resourceVersion"]
            query["continue"] = about["continue"]

    def watch(self, path: str, version: str) -> "Watch":
        """What happens to these objects after this version."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        return Watch(self._opened(path, query))

    def run_inside(self, path: str, container: str, argv: Sequence[str]) -> None:
        """Run a command in a container of a pod, and wait a little for its end."""
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", each) for each in argv]
        url = f"{self._access.server}{path}/exec?{urlencode(query)}"
        secure = url.startswith("https:")
        try:
            with connect(
                url.replace("http", "ws", 1),
                ssl=self._tls if secure else None,
                server_hostname=self._access.server_name or None,
                subprotocols=[_CHANNELS],
                additional_headers=self._shown(),
                open_timeout=_ANSWER_S,
                close_timeout=1,
                max_size=_LONGEST_OUTCOME,
            ) as stream:
                outcome = _outcome(stream, self._command_s)
        except InvalidStatus as error:
            raise _error(error.response.status_code, bytes(error.response.body or b"")) from None
        except TimeoutError:
            raise KubernetesRefusedError(504, f"it did not end in {self._command_s:g} s") from None
        except (WebSocketException, OSError) as error:
            raise KubernetesDownError(f"no command could be run in {path}: {error}") from None
        if outcome:
            _demand_success(outcome)

    def way(self) -> Way:
        """For whoever speaks to the API server without us."""
        return Way(
            server=self._access.server,
            tls=self._tls,
            headers=self._shown(),
            server_name=self._access.server_name or None,
        )

    def _opened(self, path: str, query: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        timeout = Timeout(connect=5, read=_WATCH_S + 30)
        try:
            answer = self._pool.request(
                "GET",
                f"{self._access.server}{path}?{urlencode(query)}",
                headers=self._headers(),
                timeout=timeout,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise KubernetesDownError(_short(error)) from None
        if answer.status >= 400:
            said = answer.data
            answer.release_conn()
            raise _error(answer.status, said)
        return answer

    def _asked(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, str] = {},
        kind: str = _JSON,
    ) -> Json:
        return _object(self._sent(method, path, body, query, kind).data or b"{}")

    def _sent(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, str] = {},
        kind: str = _JSON,
    ) -> urllib3.BaseHTTPResponse:
        asked = f"?{urlencode(query)}" if query else ""
        try:
            answer = self._pool.request(
                method,
                f"{self._access.server}{path}{asked}",
                body=None if body is None else json.dumps(body).encode(),
                headers={**self._headers(), "Content-Type": kind},
            )
        except (urllib3.exceptions.HTTPError, ssl.SSLError) as error:
            raise KubernetesDownError(_short(error)) from None
        if answer.status >= 400:
            raise _error(answer.status, answer.data)
        return answer

    def _headers(self) -> dict[str, str]:
        return {"Accept": _JSON, "Content-Type": _JSON, **self._shown()}

    def _shown(self) -> dict[str, str]:
        """Who asks. Kubelets refuse a command whose caller wants JSON."""
        token, agent = self._token.now(), {"User-Agent": "muster"}
        return {**agent, "Authorization": f"Bearer {token}"} if token else agent


class Watch:
    """What happens, as it happens; `hang_up`, from any thread, ends it."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        self._answer = answer

    def __iter__(self) -> Generator[Json]:
        rest = b""
        try:
            for part in self._answer.stream(65_536, decode_content=True):
                *lines, rest = (rest + part).split(b"\n")
                yield from map(json.loads, filter(None, lines))
        except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as error:
            raise KubernetesDownError(_short(error)) from None

    def hang_up(self) -> None:
        """Whoever reads is told that there is no more."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._answer.shutdown()

    def close(self) -> None:
        """Release the connection; only who reads may."""
        self._answer.close()


class _Token:
    """The token to show now: written down, in a file that is renewed, or printed by a program."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._printed, self._until = "", 0.0

    def now(self) -> str:
        access = self._access
        if access.token_file:
            try:
                return Path(access.token_file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise KubernetesDownError(f"{access.token_file}: {error.strerror}") from None
        if access.program is None:
            return access.token
        with self._lock:
            if time.time() >= self._until:
                self._printed, self._until = _printed(access.program)
            return self._printed


def _printed(program: Program) -> tuple[str, float]:
    """What the program printed, and until when that holds."""
    asked: Json = {"apiVersion": program.version, "kind": "ExecCredential", "spec": {}}
    env = {**os.environ, **program.env, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
    try:
        said = subprocess.run(  # noqa: S603 -- as the administrator's kubeconfig says
            program.words, env=env, capture_output=True, timeout=60, check=True
        ).stdout
        status = json.loads(said)["status"]
        ends = status.get("expirationTimestamp")
        until = datetime.fromisoformat(ends).timestamp() - 60 if ends else time.time() + 300
        return status["token"], until
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        text = f"{program.words[0]} of the kubeconfig gave no token: {error}"
        raise KubernetesDownError(text) from None


def _tls(access: Access) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=access.authority or None)
    if not access.verifies:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if access.certificate:
        # The library reads them from files only.
        with tempfile.TemporaryDirectory(prefix="muster-") as folder:
            certificate, key = Path(folder, "certificate"), Path(folder, "key")
            certificate.write_text(access.certificate, encoding="ascii")
            key.write_text(access.key, encoding="ascii")
            made.load_cert_chain(certificate, key)
    return made


def _object(said: bytes) -> Json:
    """What stands between us and the server may answer in its place."""
    try:
        data: Any = json.loads(said)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise KubernetesDownError(
            f"what answered is no API server: {plain(said[:200].decode(errors='replace'))}"
        )
    return cast("Json", data)


def _error(code: int, said: bytes) -> KubernetesRefusedError | KubernetesDownError:
    try:
        told = json.loads(said).get("message") or f"it answered {code}"
    except (ValueError, AttributeError, RecursionError):
        told = f"it answered {code}: {said[:200].decode(errors='replace')}"
    message = plain(told)
    if code in _BUSY or code == 401:
        # Unauthorized: a token was renewed, or the server does not know it yet.
        return KubernetesDownError(message)
    return KubernetesRefusedError(code, message)


def _outcome(stream: ClientConnection, patience_s: float) -> Json:
    """How the command ended; what it writes is nothing to us. TimeoutError: it does not end."""
    ends_at, found = time.monotonic() + patience_s, b""
    with contextlib.suppress(ConnectionClosedOK, ConnectionClosedError):
        while (left := ends_at - time.monotonic()) > 0:
            said = stream.recv(timeout=left)
            if isinstance(said, bytes) and said[:1] == bytes([_OUTCOME]):
                found = said[1:]
        raise TimeoutError
    return _object(found) if found else {}


def _demand_success(outcome: Json) -> None:
    if outcome.get("status") != "Success":
        raise KubernetesRefusedError(500, plain(outcome.get("message") or "the command failed"))


def _short(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error)[:300]
