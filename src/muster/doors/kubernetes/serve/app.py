"""The Kubernetes API as an ASGI application."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from muster.controller.use_cases.service import Service
from muster.doors.kubernetes.controllers.work import Surroundings
from muster.doors.kubernetes.objects.errors import Reason, StatusError, bad_request
from muster.doors.kubernetes.pods.quota import pod_usage
from muster.doors.kubernetes.serve.access import Access
from muster.doors.kubernetes.serve.api import (
    Answer,
    Api,
    Ask,
    Found,
    answer,
    error_answer,
    is_still_allowed,
)
from muster.doors.kubernetes.serve.beginning import begin
from muster.doors.kubernetes.serve.body import MOST_BODY
from muster.doors.kubernetes.serve.entrance import Entrance
from muster.doors.kubernetes.serve.job_pods import JobPods
from muster.doors.kubernetes.serve.keys import KeyFolder
from muster.doors.kubernetes.serve.measured import Measured
from muster.doors.kubernetes.serve.pod_entry import PodEntry
from muster.doors.kubernetes.serve.pod_facts import KnownPods
from muster.doors.kubernetes.serve.pod_gangs import PodGangs
from muster.doors.kubernetes.serve.pod_keeper import PodKeeper
from muster.doors.kubernetes.serve.pod_logs import LogStream, PodLogs
from muster.doors.kubernetes.serve.pod_supplies import PodSupplies
from muster.doors.kubernetes.serve.pod_visits import PodVisits, Visitor
from muster.doors.kubernetes.serve.reading import Reader
from muster.doors.kubernetes.serve.reconciling import Reconciler, Wires
from muster.doors.kubernetes.serve.reviews import Reviews
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.tokens import Signer
from muster.doors.kubernetes.serve.view import ObjectView
from muster.doors.kubernetes.serve.visiting import (
    SPDY,
    PodVisit,
    protocol_of,
    reading_protocol,
    send_events,
    send_log,
)
from muster.doors.kubernetes.serve.watching import Watch
from muster.doors.kubernetes.serve.webhooks import Webhooks
from muster.doors.kubernetes.serve.writing import ObjectWriter
from muster.doors.rest.peers import STREAM
from muster.doors.rest.turns import Turns
from muster.doors.rest.upgraded import UPGRADE
from muster.model.errors import BusyError
from muster.model.value import Instant, UserName, replace

WORKERS = 16
"""Threads that answer: most of the time they wait for a commit."""

OF_ONE_USER = 12
"""So many of them answer one user at most, so that others are answered beside them."""

STREAMS_OF_ONE_USER = 128
LOOKS_AT_RIGHTS_S = 5.0
"""So long after rights or tokens end, what is still being sent ends."""

log = logging.getLogger("muster.kubernetes")

Headers = list[tuple[bytes, bytes]]


class KubernetesApp:
    """Reads requests, lets threads answer them, and sends watches from the loop itself.

    reconciler: runs the controllers; keeper: keeps pods what their jobs are; job_pods: shows other
    jobs as pods. Whoever knows when this process leads tells them.
    """

    def __init__(
        self,
        api: Api,
        reconciler: Reconciler,
        keeper: PodKeeper,
        job_pods: JobPods,
        supplies: PodSupplies,
    ) -> None:
        self.api = api
        self.reconciler = reconciler
        self.keeper = keeper
        self.job_pods = job_pods
        self.supplies = supplies
        self._ending = asyncio.Event()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="kubernetes")
        self._turns = Turns(at_once=WORKERS, of_one_user=OF_ONE_USER)
        self._streams = Counter[UserName]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("websocket", UPGRADE):
            await self._visit(scope, receive, send)
            return
        head = _ask(scope, b"")
        try:
            # Before the body: what is sent with a token that opens nothing is not read.
            user = UserName(self.api.access.identity(head.headers).user.name)
        except StatusError as error:
            await _send_answer(error_answer(error, head), send)
            return
        ask = replace(head, body=await _body(receive))
        found = await self._answer(ask, user)
        if isinstance(found, Visitor):
            found = _no_websocket(ask)
        if isinstance(found, Answer):
            await _send_answer(found, send, is_head=ask.method == "HEAD")
            return
        if not self._may_stream(user, scope):
            await _send_answer(_too_many_streams(ask), send)
            return
        with self._counted(user):
            await self._stream(found, ask, receive, send)

    def end_streams(self) -> None:
        """Let everybody go who watches; called on the loop."""
        self._ending.set()

    def close(self) -> None:
        """Let go of everything; called when no client is served any more."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        self.reconciler.close()
        self.keeper.close()
        self.job_pods.close()
        self.api.view.close()

    async def _answer(self, ask: Ask, user: UserName) -> Found:
        loop = asyncio.get_running_loop()
        if len(ask.body) > MOST_BODY:
            text = f"limit is {MOST_BODY}"
            return error_answer(StatusError(Reason.REQUEST_ENTITY_TOO_LARGE, text), ask)
        try:
            async with self._turns.of(user):
                return await loop.run_in_executor(self._workers, answer, self.api, ask)
        except BusyError as error:
            details = {"retryAfterSeconds": 2}
            return error_answer(
                StatusError(Reason.TOO_MANY_REQUESTS, str(error), details=details), ask
            )
        except Exception:
            # Our bug; the client learns that it is none of its own.
            log.exception("%s %s was not answered", ask.method, ask.path)
            error = StatusError(Reason.INTERNAL_ERROR, "Internal error occurred: see Muster's log")
            return error_answer(error, ask)

    async def _visit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Over a WebSocket or SPDY; who is not let in is answered as over HTTP."""
        await receive()
        ask = replace(_ask(scope, b""), is_upgraded=True)
        try:
            user = UserName(self.api.access.identity(ask.headers).user.name)
        except StatusError as error:
            await _deny(error_answer(error, ask), send)
            return
        found = await self._answer(ask, user)
        is_spdy = scope["type"] == UPGRADE
        if isinstance(found, Answer):
            # What was asked for over SPDY can be anything, and has been done.
            is_told = is_spdy or found.code >= HTTPStatus.BAD_REQUEST
            await _deny(found if is_told else _no_websocket(ask), send)
            return
        if not self._may_stream(user, scope):
            await _deny(_too_many_streams(ask), send)
            return
        wires = (receive, send)
        offered = _stream_protocols(ask) if is_spdy else list(scope["subprotocols"])
        with self._counted(user):
            if isinstance(found, Visitor):
                await self._enter(found, ask, offered, wires, is_spdy=is_spdy)
            elif is_spdy:
                await _deny(_no_websocket(ask), send)
            else:
                await self._read_on(found, ask, offered, wires)

    async def _enter(
        self,
        found: Visitor,
        ask: Ask,
        offered: list[str],
        wires: tuple[Receive, Send],
        *,
        is_spdy: bool,
    ) -> None:
        """A command, a container that is watched, or ports."""
        _, send = wires
        protocol = protocol_of(found, offered, is_spdy=is_spdy)
        if protocol is None:
            if is_spdy:
                await _deny(_no_protocol(offered, ask), send)
            else:
                await send({"type": "websocket.close"})
            return
        loop, visits = asyncio.get_running_loop(), self.api.visits
        try:
            stream = await loop.run_in_executor(self._workers, visits.begin, found)
        except StatusError as error:
            await _deny(error_answer(error, ask), send)
            return
        if is_spdy:
            await send({"type": "websocket.accept", "headers": _spdy_headers(protocol)})
        else:
            await send({"type": "websocket.accept", "subprotocol": protocol or None})
        visit = PodVisit(found, visits, wires, self._ending)
        if stream is None:
            visiting = visit.forward(protocol)
        elif is_spdy:
            visiting = visit.run_in_streams(stream, protocol)
        else:
            visiting = visit.run(stream, protocol)
        await self._while_allowed(ask, visiting)

    def _may_stream(self, user: UserName, scope: Scope) -> bool:
        may_stream: Callable[[], bool] = scope.get(STREAM, _always)
        return self._streams[user] < STREAMS_OF_ONE_USER and may_stream()

    @contextmanager
    def _counted(self, user: UserName) -> Generator[None]:
        """As one of the streams of this user."""
        self._streams[user] += 1
        try:
            yield
        finally:
            self._streams[user] -= 1
            if not self._streams[user]:
                del self._streams[user]

    async def _read_on(
        self,
        found: Watch | LogStream,
        ask: Ask,
        offered: list[str],
        wires: tuple[Receive, Send],
    ) -> None:
        """The same over a WebSocket, on which nothing is said by the client."""
        receive, send = wires
        protocol = reading_protocol(offered) if isinstance(found, LogStream) else ""
        if protocol is None:
            await send({"type": "websocket.close"})
            return
        try:
            first = await self._first(found)
        except StatusError as error:
            await _deny(error_answer(error, ask), send)
            return
        await send({"type": "websocket.accept", "subprotocol": protocol or None})
        if isinstance(found, Watch):
            sending = send_events(found.lines(self._ending), send)
        else:
            sending = send_log(first, found.rest(self._ending), protocol, send)
        await self._while_allowed(ask, _left(receive), sending)

    async def _first(self, found: Watch | LogStream) -> bytes:
        """What is there at once; StatusError where it cannot be had."""
        if isinstance(found, Watch):
            return b""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, found.first)

    async def _stream(
        self, found: Watch | LogStream, ask: Ask, receive: Receive, send: Send
    ) -> None:
        """An answer that goes on until it ends, the client leaves, or its rights do."""
        try:
            first = await self._first(found)
        except StatusError as error:
            await _send_answer(error_answer(error, ask), send)
            return
        media = "text/plain" if isinstance(found, LogStream) else "application/json"
        headers = _headers({"content-type": media, "cache-control": "no-cache, private"})
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if first:
            await send({"type": "http.response.body", "body": first, "more_body": True})
        parts = found.lines(self._ending) if isinstance(found, Watch) else found.rest(self._ending)
        await self._while_allowed(ask, _left(receive), _send_parts(parts, send))

    async def _while_allowed(self, ask: Ask, *works: Coroutine[Any, Any, None]) -> None:
        """Until one of these is done, or who asked may not ask this any more."""
        tasks = [asyncio.ensure_future(each) for each in (*works, self._until_refused(ask))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_refused(self, ask: Ask) -> None:
        """Returns when who asked may not ask this any more."""
        while is_still_allowed(self.api, ask):
            await asyncio.sleep(LOOKS_AT_RIGHTS_S)


def kubernetes_app(
    service: Service, clock: Callable[[], Instant], keys: KeyFolder, address: str
) -> KubernetesApp:
    """All parts of the API, put together."""
    sealing = Sealing(keys.sealing)
    view = ObjectView(service.queries.objects, sealing.opened)
    signer = Signer(keys.signing)
    access = Access(service.queries, view, signer, clock)
    writer = ObjectWriter(view, service.write_objects, sealing, clock)
    entry = PodEntry(service, view, clock, address)
    writer.entry = Entrance(service, view, entry)
    writer.say = webhooks = Webhooks(view)
    kinds = ServedKinds(view, webhooks.converted)
    begin(writer, kinds, address)
    measured = Measured(service.queries, view, clock)
    around = Surroundings(readings=measured, pod_usage=pod_usage, root_ca=keys.ca.decode())
    return KubernetesApp(
        Api(
            view=view,
            kinds=kinds,
            access=access,
            reader=Reader(view, clock, kinds),
            writer=writer,
            reviews=Reviews(access, view, signer, clock),
            logs=PodLogs(service, view, clock),
            visits=PodVisits(service, view),
            measured=measured,
            clock=clock,
            address=address,
        ),
        Reconciler(
            Wires(
                view=view,
                kinds=kinds,
                sealing=sealing,
                commit=service.write_objects,
                clock=clock,
                entry=writer.entry,
                say=writer.say,
            ),
            around,
        ),
        PodKeeper(
            service, writer, kinds, clock, PodGangs(service, entry, KnownPods(view), sealing, clock)
        ),
        JobPods(service, writer, kinds, clock),
        PodSupplies(view, signer, clock, keys.ca),
    )


def _always() -> bool:
    return True


def _too_many_streams(ask: Ask) -> Answer:
    text = "You have too many watches, logs and visits open here; end some of them."
    details = {"retryAfterSeconds": 2}
    return error_answer(StatusError(Reason.TOO_MANY_REQUESTS, text, details=details), ask)


async def _send_parts(parts: AsyncIterator[bytes], send: Send) -> None:
    async for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _ask(scope: Mapping[str, Any], body: bytes) -> Ask:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = headers[name] + b"," + value if name in headers else value
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return Ask(
        method=scope.get("method", "GET"),
        path=scope["path"],
        query=query,
        headers=headers,
        body=body,
    )


async def _body(receive: Receive) -> bytes:
    """All of it, or a little more than is allowed."""
    parts: list[bytes] = []
    size = 0
    while size <= MOST_BODY:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        parts.append(part)
        if not message.get("more_body"):
            break
    return b"".join(parts)


async def _left(receive: Receive) -> None:
    """Returns when the client has gone away."""
    while not (await receive())["type"].endswith(".disconnect"):
        pass


async def _send_answer(found: Answer, send: Send, *, is_head: bool = False) -> None:
    given = {name.lower() for name, _ in found.headers}
    headers = [
        (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in found.headers
    ]
    if "cache-control" not in given:
        headers.append((b"cache-control", b"no-cache, private"))
    headers.append((b"content-type", found.media.encode()))
    headers.append((b"content-length", str(len(found.body)).encode()))
    await send({"type": "http.response.start", "status": found.code, "headers": headers})
    body = b"" if is_head else found.body
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _deny(found: Answer, send: Send) -> None:
    """Answer a request for a WebSocket without giving one."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in found.headers]
    headers += [(b"content-type", found.media.encode()), (b"cache-control", b"no-cache, private")]
    start = {"type": "websocket.http.response.start", "status": found.code, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": found.body, "more_body": False})


_STREAM_PROTOCOL = "x-stream-protocol-version"


def _stream_protocols(ask: Ask) -> list[str]:
    """What a client of SPDY can speak inside it."""
    named = ask.header(_STREAM_PROTOCOL.encode()).split(",")
    return [each for each in map(str.strip, named) if each]


def _spdy_headers(protocol: str) -> Headers:
    given = {"connection": "Upgrade", "upgrade": SPDY, _STREAM_PROTOCOL: protocol}
    return _headers(given)


def _no_protocol(offered: list[str], ask: Ask) -> Answer:
    text = f"unable to upgrade: unable to negotiate protocol: client supports {offered}"
    return error_answer(StatusError(Reason.FORBIDDEN, text), ask)


def _no_websocket(ask: Ask) -> Answer:
    return error_answer(bad_request("nothing is streamed over WebSocket there"), ask)


def _headers(given: Mapping[str, str]) -> Headers:
    return [(name.encode(), value.encode()) for name, value in given.items()]


KEYS_FOLDER = "kubernetes"


def keys_folder(home: Path) -> Path:
    """Where an installation keeps the keys of this door."""
    return home / KEYS_FOLDER
