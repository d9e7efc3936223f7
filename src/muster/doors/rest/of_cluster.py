"""Routes about machines and queues."""

from bisect import bisect_right

from muster.api.pages import ClassPage, DrainDocument, NodePage, QueuePage
from muster.api.site import NodeDocument, QueueDocument
from muster.doors.rest.operation import Asked, Operation, Parameter, done
from muster.doors.rest.show_nodes import node_documents
from muster.doors.rest.show_queues import queue_documents
from muster.doors.rest.show_site import class_document
from muster.model.errors import UnknownError
from muster.model.value import NodeId

MOST_ON_A_PAGE = 1_000


async def _nodes(asked: Asked) -> NodePage:
    limit = asked.number("limit", MOST_ON_A_PAGE, least=1, most=MOST_ON_A_PAGE)
    return await asked.read(_node_page, asked, limit)


def _node_page(asked: Asked, limit: int) -> NodePage:
    snapshot = asked.queries.snapshot()
    names = sorted(snapshot.nodes)
    begin = bisect_right(names, NodeId(asked.text("after") or ""))
    shown = names[begin : begin + limit]
    return NodePage(
        nodes=node_documents(snapshot, (snapshot.nodes[name] for name in shown)),
        next=shown[-1] if begin + limit < len(names) else None,
    )


async def _node(asked: Asked) -> NodeDocument:
    return await asked.read(_one_node, asked)


def _one_node(asked: Asked) -> NodeDocument:
    snapshot = asked.queries.snapshot()
    found = snapshot.nodes.get(NodeId(asked.path["id"]))
    if found is None:
        raise UnknownError(f"There is no node {asked.path['id']}; see the list of nodes.")
    return node_documents(snapshot, (found,))[0]


async def _drain(asked: Asked) -> NodeDocument:
    node = NodeId(asked.path["id"])
    await done(asked.service.drain(asked.caller, node, asked.document.reason))
    return await _node(asked)


async def _undrain(asked: Asked) -> NodeDocument:
    await done(asked.service.undrain(asked.caller, NodeId(asked.path["id"])))
    return await _node(asked)


async def _queues(asked: Asked) -> QueuePage:
    return QueuePage(queues=await asked.read(_all_queues, asked))


async def _queue(asked: Asked) -> QueueDocument:
    path = asked.path["path"]
    for queue in await asked.read(_all_queues, asked):
        if queue.path == path:
            return queue
    raise UnknownError(f"There is no queue {path}; see the list of queues.")


def _all_queues(asked: Asked) -> tuple[QueueDocument, ...]:
    return queue_documents(asked.queries.snapshot(), asked.queries.site().policy.share)


async def _classes(asked: Asked) -> ClassPage:
    classes = asked.queries.site().classes.values()
    ordered = sorted(classes, key=lambda each: (-each.priority, each.name))
    return ClassPage(classes=tuple(map(class_document, ordered)))


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/nodes",
        summary="List nodes",
        answer=_nodes,
        gives=NodePage,
        parameters=(
            Parameter(name="limit", text="so many on a page", kind="integer"),
            Parameter(name="after", text="the `next` of the page before"),
        ),
    ),
    Operation(
        method="GET",
        path="/v1/nodes/{id}",
        summary="Show a node",
        answer=_node,
        gives=NodeDocument,
    ),
    Operation(
        method="POST",
        path="/v1/nodes/{id}/drain",
        summary="Let a node take nothing new",
        answer=_drain,
        takes=DrainDocument,
        gives=NodeDocument,
    ),
    Operation(
        method="POST",
        path="/v1/nodes/{id}/resume",
        summary="Let a node take work again",
        answer=_undrain,
        gives=NodeDocument,
    ),
    Operation(
        method="GET",
        path="/v1/queues",
        summary="List queues with what they use, may use and borrow",
        answer=_queues,
        gives=QueuePage,
    ),
    Operation(
        method="GET",
        path="/v1/queues/{path:path}",
        summary="Show a queue",
        answer=_queue,
        gives=QueueDocument,
    ),
    Operation(
        method="GET",
        path="/v1/classes",
        summary="List job classes",
        answer=_classes,
        gives=ClassPage,
    ),
)
