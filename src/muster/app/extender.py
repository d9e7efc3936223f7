"""`muster extender`: answers kube-scheduler, with a copy of the cluster's nodes and pods."""

import asyncio
import logging
import os
import threading
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.backends.kubernetes.client import Client, KubernetesDownError, KubernetesRefusedError
from muster.backends.kubernetes.extender import (
    Args,
    BadArgsError,
    asked_by,
    filtered,
    free_of,
    prioritized,
)
from muster.backends.kubernetes.kubeconfig import (
    BadKubeconfigError,
    OurPod,
    access_to,
    file_to_use,
)
from muster.backends.kubernetes.mirror import Mirror
from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.backends.kubernetes.pods import Pod, pod_of
from muster.doors.cli.daemon.port import ExtenderOptions
from muster.model.cluster import Node
from muster.model.policy import Policy
from muster.model.value import ClusterName, NodeId
from muster.schedule.rank import Ranking
from muster.settings import BadSettingsError

log = logging.getLogger(__name__)

_MOST_BYTES = 128 * 1_024 * 1_024
"""Of a question: enough for some thousand nodes in full."""

_AT_ONCE = 16


class Extender:
    """Nodes and pods as they are, and what follows for a pod."""

    def __init__(self, client: Client) -> None:
        fleet = Fleet(cluster=ClusterName("kubernetes"))
        self._nodes: Mirror[Node] = Mirror(
            client, "/api/v1/nodes", lambda found: node_of(found, fleet), _nothing
        )
        self._pods: Mirror[Pod] = Mirror(client, "/api/v1/pods", pod_of, _nothing)
        self._ranking = Ranking(Policy())
        # One question at a time: what is remembered of the last one is changed by the next.
        self._lock = threading.Lock()

    def start(self) -> None:
        for each in (self._nodes, self._pods):
            each.fill()
            each.start()

    def close(self) -> None:
        self._nodes.close()
        self._pods.close()

    def filter(self, args: Args) -> dict[str, Any]:
        free, numbers = self._judged(args)
        return filtered(args, free, numbers)

    def prioritize(self, args: Args) -> list[dict[str, Any]]:
        _, numbers = self._judged(args)
        return prioritized(args, numbers)

    def _judged(self, args: Args) -> tuple[dict[NodeId, Node], dict[NodeId, int] | None]:
        ask = asked_by(args)
        free = free_of(self._nodes.all(), self._pods.all())
        if ask is None:
            return free, None
        with self._lock:
            return free, self._ranking.numbers(free, ask)


def serve(options: ExtenderOptions) -> int:
    """Answer until the process is told to end."""
    host, _, port = options.listen.rpartition(":")
    if not port.isdecimal():
        raise BadSettingsError(f"--listen {options.listen}: write HOST:PORT, such as :8888")
    try:
        pod = OurPod(environ=os.environ)
        access = access_to(file_to_use(options.kubeconfig, pod), options.context, pod)
        extender = Extender(Client(access))
        extender.start()
    except (BadKubeconfigError, KubernetesDownError, KubernetesRefusedError) as error:
        raise BadSettingsError(f"the cluster cannot be read: {error}") from error
    app = extender_app(extender)
    config = uvicorn.Config(
        app,
        host=host or "127.0.0.1",
        port=int(port),
        log_level="warning",
        limit_concurrency=_AT_ONCE,
    )
    try:
        uvicorn.Server(config).run()
    finally:
        extender.close()
    return 0


def extender_app(extender: Extender) -> Starlette:
    """The two questions that kube-scheduler asks."""

    async def answered(request: Request) -> Response:
        ask = extender.filter if request.url.path == "/filter" else extender.prioritize
        try:
            args = msgspec.json.decode(await _body(request), type=dict[str, Any])
            said = await asyncio.to_thread(ask, args)
        except TooLongError:
            return Response(f"more than {_MOST_BYTES} bytes\n", status_code=413)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
            return Response(f"this is no ExtenderArgs: {error}\n", status_code=400)
        except (BadArgsError, RecursionError) as error:
            return Response(f"this is no ExtenderArgs: {error}\n", status_code=400)
        return Response(msgspec.json.encode(said), media_type="application/json")

    paths = ("/filter", "/prioritize")
    return Starlette(routes=[Route(each, answered, methods=["POST"]) for each in paths])


class TooLongError(Exception):
    """Nobody asks with so much: it is not kept until it ends."""


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            raise TooLongError
    return bytes(found)


def _nothing() -> None:
    """Nobody waits for what changes: the next question sees it."""
