"""Nodes, namespaces, services, events, secrets and rights as rows."""

from collections.abc import Callable

from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.objects.rules import Printing
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    name_of,
    part,
)
from muster.doors.kubernetes.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    age,
    first_of,
    shown_labels,
    since,
    text,
    wide,
)

ROLE_PREFIX = "node-role.kubernetes.io/"
MOST_SHOWN = 3


def node_cells(node: JsonObject) -> list[Cell]:
    told = part(node, "status", "nodeInfo")
    kernel = told.get("kernelVersion") or UNKNOWN
    if told.get("architecture"):
        kernel += f" ({told['architecture']})"
    return [
        name_of(node),
        _node_status(node),
        ",".join(_roles(node)) or NONE,
        age(node),
        told.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        told.get("osImage") or UNKNOWN,
        kernel,
        told.get("containerRuntimeVersion") or UNKNOWN,
    ]


NODES = Printing(
    columns=(
        NAME,
        text("Status"),
        text("Roles"),
        AGE,
        text("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ),
    cells=node_cells,
)


def event_cells(event: JsonObject) -> list[Cell]:
    about = part(event, "involvedObject")
    kind = str(about.get("kind", "")).lower()
    first: Cell = since(event.get("firstTimestamp") or event.get("eventTime"))
    last = since(event["lastTimestamp"]) if event.get("lastTimestamp") else first
    seen = event.get("count") or 1
    series = part(event, "series")
    if series:
        last, seen = since(series.get("lastObservedTime")), series.get("count", 1)
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _source(event),
        str(event.get("message", "")).strip(),
        first,
        seen,
        name_of(event),
    ]


EVENTS = Printing(
    columns=(
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        wide("Count"),
        wide("Name"),
    ),
    cells=event_cells,
)


def service_cells(service: JsonObject) -> list[Cell]:
    spec = part(service, "spec")
    addresses = items(service, "spec", "clusterIPs")
    return [
        name_of(service),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external_address(service),
        ",".join(_port(each) for each in items(service, "spec", "ports")) or NONE,
        age(service),
        shown_labels(part(service, "spec", "selector")),
    ]


SERVICES = Printing(
    columns=(
        NAME,
        text("Type"),
        text("Cluster-IP"),
        text("External-IP"),
        text("Port(s)"),
        AGE,
        wide("Selector"),
    ),
    cells=service_cells,
)


def endpoint_slice_cells(piece: JsonObject) -> list[Cell]:
    ports = [str(each.get("port") or each.get("name") or "*") for each in items(piece, "ports")]
    addresses = [each for one in items(piece, "endpoints") for each in items(one, "addresses")]
    return [
        name_of(piece),
        piece.get("addressType", ""),
        first_of(ports, MOST_SHOWN, empty="<unset>"),
        first_of(addresses, MOST_SHOWN, empty="<unset>"),
        age(piece),
    ]


ENDPOINT_SLICES = Printing(
    columns=(NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE),
    cells=endpoint_slice_cells,
)


def endpoints_cells(endpoints: JsonObject) -> list[Cell]:
    shown: list[str] = []
    for subset in items(endpoints, "subsets"):
        addresses = [each["ip"] for each in items(subset, "addresses")]
        ports = items(subset, "ports")
        shown += addresses if not ports else []
        shown += [f"{each}:{port['port']}" for port in ports for each in addresses]
    return [name_of(endpoints), first_of(shown, MOST_SHOWN, empty=NONE), age(endpoints)]


ENDPOINTS = Printing(columns=(NAME, text("Endpoints"), AGE), cells=endpoints_cells)


def binding_cells(binding: JsonObject) -> list[Cell]:
    role = part(binding, "roleRef")
    subjects = items(binding, "subjects")
    users = [each["name"] for each in subjects if each.get("kind") == "User"]
    groups = [each["name"] for each in subjects if each.get("kind") == "Group"]
    accounts = [
        f"{each['namespace']}/{each['name']}" if each.get("namespace") else each["name"]
        for each in subjects
        if each.get("kind") == "ServiceAccount"
    ]
    return [
        name_of(binding),
        f"{role.get('kind')}/{role.get('name')}",
        age(binding),
        *(", ".join(each) for each in (users, groups, accounts)),
    ]


ROLE_BINDINGS = Printing(
    columns=(
        NAME,
        text("Role"),
        AGE,
        wide("Users"),
        wide("Groups"),
        wide("ServiceAccounts"),
    ),
    cells=binding_cells,
)


def _with(name: str, cell: Callable[[JsonObject], Cell], *more: str) -> Printing:
    """A kind of which its name, one or two facts and its age are shown."""

    def cells(obj: JsonObject) -> list[Cell]:
        return [name_of(obj), *(obj.get(each) or "" for each in more), cell(obj), age(obj)]

    columns = (*(text(each.capitalize()) for each in more), text(name))
    return Printing(columns=(NAME, *columns, AGE), cells=cells)


def _data_size(obj: JsonObject) -> int:
    return len(part(obj, "data")) + len(part(obj, "binaryData"))


NAMESPACES = _with("Status", lambda obj: part(obj, "status").get("phase", ""))
CONFIG_MAPS = _with("Data", _data_size)
SECRETS = _with("Data", _data_size, "type")
LEASES = _with("Holder", lambda obj: part(obj, "spec").get("holderIdentity") or "")


def plain_cells(obj: JsonObject) -> list[Cell]:
    return [name_of(obj), age(obj)]


PLAIN = Printing(columns=(NAME, AGE), cells=plain_cells)


def _node_status(node: JsonObject) -> str:
    ready = found(items(node, "status", "conditions"), "Ready")
    told = ["Unknown"]
    if ready is not None:
        told = ["Ready" if ready.get("status") == "True" else "NotReady"]
    if part(node, "spec").get("unschedulable"):
        told.append("SchedulingDisabled")
    return ",".join(told)


def _roles(node: JsonObject) -> list[str]:
    roles: set[str] = set()
    for key, value in labels_of(node).items():
        if key.startswith(ROLE_PREFIX) and len(key) > len(ROLE_PREFIX):
            roles.add(key.removeprefix(ROLE_PREFIX))
        elif key == "kubernetes.io/role" and value:
            roles.add(value)
    return sorted(roles)


def _address(node: JsonObject, type_: str) -> str:
    for each in items(node, "status", "addresses"):
        if each.get("type") == type_:
            return str(each["address"])
    return NONE


def _source(event: JsonObject) -> str:
    source = part(event, "source")
    component, instance = source.get("component"), source.get("host")
    if not component:
        component, instance = event.get("reportingComponent"), event.get("reportingInstance")
    return f"{component or ''}, {instance}" if instance else component or ""


def _external_address(service: JsonObject) -> str:
    spec = part(service, "spec")
    given: list[str] = items(service, "spec", "externalIPs")
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            balancers = items(service, "status", "loadBalancer", "ingress")
            found_at = {each.get("ip") or each.get("hostname") or "" for each in balancers}
            return ",".join([*sorted(filter(None, found_at)), *given]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return UNKNOWN


def _port(port: JsonObject) -> str:
    number = f"{port['port']}:{port['nodePort']}" if port.get("nodePort") else f"{port['port']}"
    return f"{number}/{port.get('protocol', 'TCP')}"
