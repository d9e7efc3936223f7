"""Routes about machines and queues."""

from bisect import bisect_right

from muster.api.pages import ClassPage, DrainDocument, NodePage, QueuePage
from muster.api.site import NodeDocument, QueueDocument
from muster.doors.rest.operation import Asked, Operation, Parameter, done
from muster.doors.rest.show_nodes import node_documents
from muster.doors.rest.show_queues import queue_document
from muster.doors.rest.show_site import class_document
from muster.model.errors import UnknownError
from muster.model.queue import usual_class
from muster.model.site import Role
from muster.model.value import NodeId, QueuePath

MOST_ON_A_PAGE = 1_000


async def _nodes(asked: Asked) -> NodePage:
    limit = asked.number("limit", MOST_ON_A_PAGE, least=1, most=MOST_ON_A_PAGE)
    return await asked.read(_node_page, asked, limit)


def _node_page(asked: Asked, limit: int) -> NodePage:
    nodes = asked.queries.nodes.all()
    names = sorted(nodes)
    begin = bisect_right(names, NodeId(asked.text("after") or ""))
    shown = names[begin : begin + limit]
    return NodePage(
        nodes=node_documents([nodes[name] for name in shown], asked.queries.nodes.held(shown)),
        next=shown[-1] if begin + limit < len(names) else None,
    )


async def _node(asked: Asked) -> NodeDocument:
    return await asked.read(_one_node, asked)


def _one_node(asked: Asked) -> NodeDocument:
    found = asked.queries.nodes.find(NodeId(asked.path["id"]))
    if found is None:
        raise UnknownError(f"There is no node {asked.path['id']}; see the list of nodes.")
    return node_documents([found], asked.queries.nodes.held([found.id]))[0]


async def _drain(asked: Asked) -> NodeDocument:
    node = NodeId(asked.path["id"])
    await done(asked.service.drain(asked.caller, node, asked.document.reason))
    return await _node(asked)


async def _undrain(asked: Asked) -> NodeDocument:
    await done(asked.service.undrain(asked.caller, NodeId(asked.path["id"])))
    return await _node(asked)


async def _queues(asked: Asked) -> QueuePage:
    uses = await asked.read(asked.queries.queues.all)
    return QueuePage(queues=tuple(map(queue_document, uses)))


async def _queue(asked: Asked) -> QueueDocument:
    path = QueuePath(asked.path["path"])
    use = await asked.read(asked.queries.queues.find, path)
    if use is None:
        raise UnknownError(f"There is no queue {path}; see the list of queues.")
    return queue_document(use)


async def _classes(asked: Asked) -> ClassPage:
    site = asked.queries.site()
    usual = site.classes.get(usual_class(site.queues, site.default_queue))
    ordered = sorted(site.classes.values(), key=lambda each: (-each.priority, each.name))
    return ClassPage(classes=tuple(class_document(each, usual) for each in ordered))


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/nodes",
        summary="List nodes",
        costly=True,
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
        needs=Role.ADMIN,
        answer=_drain,
        takes=DrainDocument,
        gives=NodeDocument,
    ),
    Operation(
        method="POST",
        path="/v1/nodes/{id}/resume",
        summary="Let a node take work again",
        needs=Role.ADMIN,
        answer=_undrain,
        gives=NodeDocument,
    ),
    Operation(
        method="GET",
        path="/v1/queues",
        summary="List queues with what they use, may use and borrow",
        costly=True,
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
