"""Sends one request to one sink, which may hang, be slow, or refuse."""

import re
import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import urllib3
from urllib3.util import Timeout

from muster.model.errors import MusterError
from muster.model.sinks import Sink
from muster.telemetry.sinks.post import Post

PATIENCE: Final = Timeout(connect=5.0, read=10.0)
LONGEST_AFTER_S: Final = 300.0
"""However long a server asks us to wait, it is tried again after this."""

MOST_HEADERS: Final = 16_384
JSON: Final = "application/json"


class NotTakenError(MusterError):
    """The administrator: the sink refused, or did not answer. It never says what is secret.

    again: the same may be taken later; after_s: so long it asked us to wait.
    """

    def __init__(self, text: str, *, again: bool = True, after_s: float | None = None) -> None:
        super().__init__(text)
        self.again = again
        self.after_s = after_s


class HttpWire:
    """A server that takes requests by HTTP. One thread."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pool = urllib3.PoolManager(num_pools=1, timeout=PATIENCE, retries=False)

    def send(self, post: Post) -> None:
        """NotTakenError: it was not taken."""
        headers = {"Content-Type": JSON, "User-Agent": "muster", **_headers(self._sink)}
        try:
            answer = self._pool.request(
                "POST",
                f"{self._sink.url.rstrip('/')}{post.path}",
                body=post.body,
                headers=headers,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise NotTakenError(f"it does not answer ({type(error).__name__})") from None
        try:
            # What it says is not read: it could go on for ever.
            if not 200 <= answer.status < 300:
                raise NotTakenError(
                    f"it answered with status {answer.status}",
                    again=answer.status == 429 or answer.status >= 500,
                    after_s=_after_s(answer.headers.get("Retry-After", "")),
                )
        finally:
            if answer.headers.get("Content-Length") == "0" or answer.status == 204:
                answer.release_conn()
            else:
                answer.close()

    def close(self) -> None:
        self._pool.clear()


class UdpWire:
    """An agent that takes datagrams. Nobody says whether they come."""

    def __init__(self, sink: Sink) -> None:
        where = urlsplit(sink.url)
        self._address = (where.hostname or "", where.port or 8125)
        self._socket: socket.socket | None = None

    def send(self, content: bytes) -> None:
        """NotTakenError: it could not even be sent."""
        try:
            self._opened().send(content)
        except OSError as error:
            self.close()
            raise NotTakenError(f"it cannot be reached ({error.strerror or error})") from None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _opened(self) -> socket.socket:
        """Connected, so that a port where nobody listens is heard of."""
        if self._socket is None:
            family, kind, protocol, _, address = socket.getaddrinfo(
                *self._address, type=socket.SOCK_DGRAM
            )[0]
            opened = socket.socket(family, kind, protocol)
            opened.setblocking(False)  # noqa: FBT003 - its parameter has no name
            opened.connect(address)
            self._socket = opened
        return self._socket


def _headers(sink: Sink) -> dict[str, str]:
    """The lines of its file, read again each time, so that a new token needs no restart."""
    if not sink.headers_file:
        return {}
    try:
        text = Path(sink.headers_file).read_text(encoding="utf-8")[:MOST_HEADERS]
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotTakenError(f"{sink.headers_file} cannot be read: {why}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [_HEADER.fullmatch(line) for line in lines]
    if None in found:
        text = f"{sink.headers_file} must have lines such as `Authorization: Bearer ...`"
        raise NotTakenError(text)
    return {each[1]: each[2] for each in found if each is not None}


_HEADER = re.compile(r"([A-Za-z0-9-]+):\s*([\x21-\x7e][\x20-\x7e]*)")


def _after_s(text: str) -> float | None:
    """Seconds; a date, which few servers send, counts as nothing said."""
    return min(float(text), LONGEST_AFTER_S) if text.strip().isdigit() else None
