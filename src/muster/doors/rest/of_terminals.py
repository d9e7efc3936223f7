"""The websocket to a job's terminal: bytes go both ways, text says the size of the window."""

import asyncio
from contextlib import closing

import msgspec
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from muster.controller.messages import Caller
from muster.doors.rest.auth import UserNames, caller_of, until_revoked
from muster.doors.rest.operation import Door
from muster.doors.rest.problems import trouble
from muster.model.errors import ForbiddenError, MusterError
from muster.model.running import TerminalStream
from muster.model.value import JobId, Value

MOST_LINES = 10_000

# What a websocket is closed with: it went as it should, the server ends, it was refused.
OVER, GOING_AWAY, REFUSED, BROKEN = 1000, 1001, 1008, 1011


class Size(Value):
    """What a text frame says."""

    rows: int
    columns: int


class TerminalEndpoint:
    """The application behind the path of a terminal."""

    def __init__(self, door: Door, people: UserNames) -> None:
        self._door = door
        self._people = people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        try:
            caller = caller_of(scope, dict(scope["headers"]), self._door, self._people)
            stream = await self._attached(caller, JobId(scope["path_params"]["id"]))
        except MusterError as error:
            # Accepted first: only then can the client learn why.
            await websocket.accept()
            await websocket.close(REFUSED, trouble(error).problem.text[:120])
            return
        with closing(stream):
            await websocket.accept()
            await _relay(websocket, stream, caller, self._door)

    async def _attached(self, caller: Caller, job: JobId) -> TerminalStream:
        service = self._door.service
        try:
            return await asyncio.to_thread(service.attach, caller, job)
        except ForbiddenError as error:
            service.note_refusal(caller, f"attach to job {job}", str(error))
            raise


async def _relay(websocket: WebSocket, stream: TerminalStream, caller: Caller, door: Door) -> None:
    """Pass bytes on until one side ends, the server ends, or the caller's token is good no more."""
    shown = asyncio.create_task(_show(websocket, stream))
    typed = asyncio.create_task(_type(websocket, stream))
    ended = asyncio.create_task(door.hub.ending.wait())
    revoked = asyncio.create_task(until_revoked(caller, door))
    tasks = {shown, typed, ended, revoked}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        is_revoked = revoked.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(shown, typed, ended, revoked, return_exceptions=True)
    if is_revoked:
        await _close(websocket, REFUSED, "the token is good no more")
        return
    if typed.done() and not typed.cancelled() and typed.exception() is None:
        return
    if shown.done() and not shown.cancelled() and shown.exception() is None:
        await _close(websocket, OVER, f"exit {shown.result()}")
    else:
        await _close(websocket, GOING_AWAY if door.hub.ending.is_set() else BROKEN, "")


async def _show(websocket: WebSocket, stream: TerminalStream) -> int:
    """What the job writes, until it ends; its exit code."""
    while shown := await stream.read():
        await websocket.send_bytes(shown)
    if stream.exit_code is None:
        raise ConnectionError("the terminal closed before the job ended")
    return stream.exit_code


async def _type(websocket: WebSocket, stream: TerminalStream) -> None:
    """What the user types, until they leave."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if (keys := message.get("bytes")) is not None:
            await stream.write(keys)
        elif (size := _size(message.get("text") or "")) is not None:
            await stream.resize(size.rows, size.columns)


def _size(text: str) -> Size | None:
    try:
        size = msgspec.json.decode(text, type=Size)
    except msgspec.DecodeError:
        return None
    fits = 0 < size.rows <= MOST_LINES and 0 < size.columns <= MOST_LINES
    return size if fits else None


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    try:
        await websocket.close(code, reason)
    except (RuntimeError, WebSocketDisconnect):
        # The other end was quicker.
        return
