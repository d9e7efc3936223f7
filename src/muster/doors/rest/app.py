"""The REST door as one ASGI application, built from the table of operations."""

from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from muster.controller.use_cases.service import Service
from muster.doors.rest import (
    of_alerts,
    of_cluster,
    of_diagnosis,
    of_events,
    of_jobs,
    of_kubernetes,
    of_logs,
    of_muster,
    of_site,
    of_slurm,
    of_telemetry,
)
from muster.doors.rest.auth import UserNames
from muster.doors.rest.endpoint import Endpoint, send_trouble
from muster.doors.rest.hub import Hub
from muster.doors.rest.of_terminals import TerminalEndpoint
from muster.doors.rest.openapi import described
from muster.doors.rest.operation import Door, KubernetesEntry, Operation
from muster.doors.rest.problems import NoSuchPageError
from muster.model.value import Instant

# In the order in which paths are tried: those that are asked for most come first.
TABLE: tuple[Operation, ...] = (
    *of_jobs.OPERATIONS,
    *of_logs.OPERATIONS,
    *of_events.OPERATIONS,
    *of_muster.OPERATIONS,
    *of_cluster.OPERATIONS,
    *of_telemetry.OPERATIONS,
    *of_diagnosis.OPERATIONS,
    *of_site.OPERATIONS,
    *of_alerts.OPERATIONS,
    *of_slurm.OPERATIONS,
    *of_kubernetes.OPERATIONS,
)


class RestApp:
    """The application, and the way to let its endless answers end."""

    def __init__(self, router: Router, door: Door) -> None:
        self._router = router
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router(scope, receive, send)

    def end_streams(self) -> None:
        """Let everybody go who listens; called on the loop."""
        self._door.hub.end()

    def close(self) -> None:
        """Let go of everything; called when no client is served any more."""
        self._door.close()


def rest_app(
    service: Service, clock: Callable[[], Instant], kubernetes: KubernetesEntry | None = None
) -> RestApp:
    """Everything under `/v1`. kubernetes: how to reach the Kubernetes API, where it is served."""
    hub = Hub(service.queries.history.follow)
    door = Door(service=service, clock=clock, hub=hub, kubernetes=kubernetes)
    service.queries.telemetry.export(door.counts)
    people = UserNames()
    operations = (*TABLE, *described(TABLE))
    terminal = WebSocketRoute("/v1/jobs/{id:int}/terminal", TerminalEndpoint(door, people))
    router = Router([*_routes(operations, door, people), terminal], redirect_slashes=False)
    router.default = _nowhere
    return RestApp(router, door)


def _routes(operations: Sequence[Operation], door: Door, people: UserNames) -> list[BaseRoute]:
    """One route for each path, whatever can be done there."""
    by_path: dict[str, list[Operation]] = {}
    for each in operations:
        by_path.setdefault(each.path, []).append(each)
    return [Route(path, Endpoint(found, door, people)) for path, found in by_path.items()]


async def _nowhere(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "no such page"})
        return
    text = f"There is nothing at {scope['path']}; see /v1/docs for what there is."
    await send_trouble(NoSuchPageError(text), send)
