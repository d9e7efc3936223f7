"""Routes about Muster itself: how it is, and what can be asked."""

from muster.api.site import StatusDocument
from muster.doors.rest.operation import Asked, Content, Operation
from muster.doors.rest.show_site import status_document


async def _status(asked: Asked) -> StatusDocument:
    return await asked.read(_looked, asked)


def _looked(asked: Asked) -> StatusDocument:
    queries = asked.queries
    live, nodes = queries.jobs.count_by_state(), queries.nodes.all()
    return status_document(queries.status.health(), live, nodes, queries.nodes.gpu_milli_held())


async def _healthy(_: Asked) -> Content:
    return Content(body=b"ok\n", media="text/plain")


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/status",
        summary="See the installation at a glance",
        answer=_status,
        gives=StatusDocument,
    ),
    Operation(
        method="GET",
        path="/healthz",
        summary="Say that the server answers",
        answer=_healthy,
        media="text/plain",
        open=True,
    ),
)
