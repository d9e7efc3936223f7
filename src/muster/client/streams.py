"""What comes by itself: events, what a job writes, and a terminal."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from muster.api.jobs import JobDocument
from muster.api.site import EventDocument
from muster.client.errors import LostAnswerError, UnreachableError
from muster.client.speech import Query, Speech, decoded
from muster.client.wire import Stream, connected

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

PATIENCE_S = 30.0
"""How long a server that was there may be away before a waiting client gives up."""

PAUSE_S = 0.25

FINAL = frozenset({"completed", "failed", "cancelled"})
"""The states in which a job stays."""


def followed(speech: Speech, after: int | None, query: Query) -> Iterator[EventDocument]:
    """Events for ever, each once and in order, also when the server restarts."""
    last = after
    patience = Patience()
    while True:
        with patience, _stream(speech, last, query) as events:
            for event in events:
                last = event.number
                patience.renew()
                yield event


def waited(speech: Speech, look: Callable[[], JobDocument], job: int) -> JobDocument:
    """The job when it is over, looked at whenever something happened to it."""
    patience = Patience()
    while True:
        with patience:
            # The stream is open before the first look: nothing can happen unseen in between.
            with _stream(speech, None, {"job": job}) as events:
                found = look()
                patience.renew()
                while found.state not in FINAL and next(events, None) is not None:
                    found = look()
            if found.state in FINAL:
                return found


class Patience:
    """Lets a server be away for a while: what it wraps may fail and is tried again, after a pause.

    Raises what it caught when there was nothing to `renew` it for too long.
    """

    def __init__(self) -> None:
        self._until = time.monotonic() + PATIENCE_S

    def renew(self) -> None:
        """The server is there."""
        self._until = time.monotonic() + PATIENCE_S

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            return False
        if not isinstance(error, LostAnswerError | UnreachableError):
            return False
        if time.monotonic() > self._until:
            return False
        time.sleep(PAUSE_S)
        return True


class Events(Iterator[EventDocument]):
    """The events of a stream of server-sent events; its comments are heartbeats."""

    def __init__(self, parts: Stream) -> None:
        self._parts = parts
        self._rest = b""
        self._told: deque[bytes] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def __next__(self) -> EventDocument:
        while not self._told:
            *lines, self._rest = (self._rest + next(self._parts)).split(b"\n")
            self._told.extend(line[6:] for line in lines if line.startswith(b"data: "))
        return decoded(self._told.popleft(), EventDocument)


def terminal(speech: Speech, path: str) -> "ClientConnection":
    """A websocket to the terminal of a job: bytes go both ways; text frames carry its size."""
    # Only here, because few commands need it and it takes long to import.
    from websockets.exceptions import InvalidHandshake  # noqa: PLC0415
    from websockets.sync.client import connect  # noqa: PLC0415

    address = speech.address
    host = "localhost" if address.socket is not None else f"{address.host}:{address.port}"
    headers = {"authorization": f"Bearer {address.secret}"} if address.secret else {}
    connection = connected(address)
    connection.settimeout(None)
    # The socket is secured already, where it must be; hence no `wss`.
    try:
        return connect(
            f"ws://{host}{path}",
            sock=connection,
            additional_headers=headers,
            compression=None,
            proxy=None,
            legacy=True,
        )
    except (InvalidHandshake, EOFError, OSError) as error:
        connection.close()
        raise LostAnswerError(f"the server opened no terminal ({error}); try again") from error


def _stream(speech: Speech, last: int | None, query: Query) -> Events:
    headers = {} if last is None else {"last-event-id": str(last)}
    return Events(speech.streamed("/v1/events/stream", query, headers))
