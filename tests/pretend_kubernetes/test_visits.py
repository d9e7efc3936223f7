"""What comes out of the channels of a WebSocket when somebody visits a pod on a cluster."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from muster.backends.kubernetes.visits import NOT_STARTED, ClusterVisit, Way
from muster.model.running import STDERR, STDOUT, AttachTo, ConnectTo, RunInside, Visit

POD = "/api/v1/namespaces/jobs/pods/train-0"
SHELL = RunInside(container="main", argv=("sh", "-c", "x"), stdin=True)
SUCCESS = b'\3{"status": "Success"}'
CLOSABLE = Subprotocol("v5.channel.k8s.io")

Kubelet = Callable[[ServerConnection], Awaitable[None]]
Visitor = Callable[[ClusterVisit], Awaitable[None]]


def visited(
    kubelet: Kubelet,
    wanted: Visit,
    visitor: Visitor,
    *,
    refuses: int = 0,
    terminals: frozenset[str] = frozenset(),
) -> None:
    """Both ends, each with its own say. refuses: the code with which it does not even begin."""

    def refused(_: ServerConnection, _request: Request) -> Response | None:
        body = b'{"message": "pod not found"}'
        return Response(refuses, "No", Headers(), body) if refuses else None

    async def both() -> None:
        protocols = [CLOSABLE, Subprotocol("v4.channel.k8s.io")]
        async with serve(
            kubelet, "127.0.0.1", 0, subprotocols=protocols, process_request=refused
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            way = Way(
                server=f"http://127.0.0.1:{port}",
                tls=ssl.create_default_context(),
                headers={"Authorization": "Bearer t"},
                server_name=None,
            )
            visit = ClusterVisit(way, POD, wanted, terminals)
            try:
                await asyncio.wait_for(visitor(visit), 20)
            finally:
                visit.close()

    asyncio.run(both())


async def silent(_: ServerConnection) -> None:
    """It hangs up at once."""


def test_what_is_written_is_told_apart_and_the_code_comes_last() -> None:
    async def kubelet(line: ServerConnection) -> None:
        assert line.request is not None
        assert line.request.path.startswith(f"{POD}/exec?container=main&stdout=true&stderr=true")
        assert line.request.path.endswith("&command=sh&command=-c&command=x")
        assert line.request.headers["Authorization"] == "Bearer t"
        for each in (b"\1", b"\1out", b"\2err"):
            await line.send(each)
        cause = {"reason": "ExitCode", "message": "7"}
        await line.send(b"\3" + json.dumps({"details": {"causes": [cause]}}).encode())

    async def visitor(visit: ClusterVisit) -> None:
        assert await visit.read() == (STDOUT, b"out")
        assert await visit.read() == (STDERR, b"err")
        assert await visit.read() == (STDOUT, b"")
        assert (visit.exit_code, visit.failure) == (7, None)

    visited(kubelet, SHELL, visitor)


def test_what_a_visitor_sends_arrives_and_has_an_end() -> None:
    heard: list[str | bytes] = []

    async def kubelet(line: ServerConnection) -> None:
        heard.extend([await line.recv() for _ in range(3)])
        await line.send(SUCCESS)

    async def visitor(visit: ClusterVisit) -> None:
        await visit.write(b"typed")
        await visit.resize(24, 80)
        await visit.end_input()
        assert await visit.read() == (STDOUT, b"")
        assert visit.exit_code == 0

    visited(kubelet, SHELL, visitor)
    assert heard == [b"\0typed", b'\4{"Width": 80, "Height": 24}', b"\xff\0"]


def test_a_command_that_cannot_be_started_says_why() -> None:
    async def kubelet(line: ServerConnection) -> None:
        told = "Internal error occurred: error executing command in container: no such program"
        await line.send(b"\3" + json.dumps({"status": "Failure", "message": told}).encode())

    async def visitor(visit: ClusterVisit) -> None:
        assert await visit.read() == (STDOUT, b"")
        assert (visit.exit_code, visit.failure) == (NOT_STARTED, "no such program")

    visited(kubelet, SHELL, visitor)


def test_a_visit_that_is_refused_says_why() -> None:
    async def visitor(visit: ClusterVisit) -> None:
        assert await visit.read() == (STDOUT, b"")
        assert visit.failure == "pod not found"
        await visit.write(b"in vain")

    visited(silent, SHELL, visitor, refuses=404)


def test_a_pod_that_goes_without_a_word_is_gone() -> None:
    async def visitor(visit: ClusterVisit) -> None:
        with pytest.raises(ConnectionError, match="the pod is gone"):
            await visit.read()

    visited(silent, AttachTo(container="main"), visitor)


def test_who_watches_a_terminal_says_so() -> None:
    async def kubelet(line: ServerConnection) -> None:
        assert line.request is not None
        assert line.request.path == f"{POD}/attach?container=main&stdout=true&tty=true&stdin=true"
        await line.send(SUCCESS)

    async def visitor(visit: ClusterVisit) -> None:
        assert await visit.read() == (STDOUT, b"")
        assert (visit.exit_code, visit.failure) == (0, None)

    wanted = AttachTo(container="main", stdin=True)
    visited(kubelet, wanted, visitor, terminals=frozenset({"main"}))


def test_a_port_begins_with_its_number_which_is_nobody_s_word() -> None:
    async def kubelet(line: ServerConnection) -> None:
        assert line.request is not None
        assert line.request.path == f"{POD}/portforward?ports=8080"
        for each in (b"\0\x90\x1f", b"\1\x90\x1f", b"\0hello", b"\1refused"):
            await line.send(each)

    async def visitor(visit: ClusterVisit) -> None:
        assert await visit.read() == (STDOUT, b"hello")
        assert await visit.read() == (STDOUT, b"")
        assert visit.failure == "refused"

    visited(kubelet, ConnectTo(port=8080), visitor)
