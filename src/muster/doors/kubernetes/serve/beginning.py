"""What every installation begins with: namespaces, roles, and who has them."""

from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ENDPOINT_SLICE,
    ENDPOINTS,
    NAMESPACE,
    PRIORITY_CLASS,
    SERVICE,
    SERVICE_CIDR,
)
from muster.doors.kubernetes.objects.roles import first_bindings, first_cluster_roles
from muster.doors.kubernetes.objects.value import JsonObject, Kind, copied, name_of, namespace_of
from muster.doors.kubernetes.pods.admission import SYSTEM_CLASSES, SYSTEM_USES
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.writing import Author, ObjectWriter, Request

MUSTER = Author(caller=ITSELF, agent="muster")

OWN, HOME = "kubernetes", "default"
"""The Service that the API itself is, and its namespace."""

SERVICES_IN = "127.0.0.0/8"
"""Where addresses of Services are from, as `objects/services.py` gives them out."""

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def begin(writer: ObjectWriter, kinds: ServedKinds, address: str) -> None:
    """Create what is missing; what is there stays as it is. address: where the API listens."""
    for name in FIRST_NAMESPACES:
        _make(writer, kinds, NAMESPACE, {"metadata": {"name": name}})
    for name, value in SYSTEM_CLASSES.items():
        about = {"value": value, "description": SYSTEM_USES[name]}
        _make(writer, kinds, PRIORITY_CLASS, {"metadata": {"name": name}, **about})
    for role in first_cluster_roles():
        _make(writer, kinds, CLUSTER_ROLE, role)
    for binding in first_bindings():
        _make(writer, kinds, CLUSTER_ROLE_BINDING, binding)
    _make(
        writer, kinds, SERVICE_CIDR, {"metadata": {"name": OWN}, "spec": {"cidrs": [SERVICES_IN]}}
    )
    _make(writer, kinds, SERVICE, _own_service(address))
    _put(writer, kinds, ENDPOINTS, _own_endpoints(address))
    _put(writer, kinds, ENDPOINT_SLICE, _own_slice(address))


def _own_service(address: str) -> JsonObject:
    """By which pods find the API, as everywhere."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port = {"name": "https", "port": 443, "targetPort": _host_and_port(address)[1]}
    return {
        "metadata": {"name": OWN, "namespace": HOME, "labels": labels},
        "spec": {"ports": [port]},
    }


def _own_endpoints(address: str) -> JsonObject:
    host, port = _host_and_port(address)
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    return {
        "metadata": {"name": OWN, "namespace": HOME, "labels": labels},
        "subsets": [{"addresses": [{"ip": host}], "ports": ports}],
    }


def _own_slice(address: str) -> JsonObject:
    host, port = _host_and_port(address)
    return {
        "metadata": {
            "name": OWN,
            "namespace": HOME,
            "labels": {"kubernetes.io/service-name": OWN},
        },
        "addressType": "IPv6" if ":" in host else "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _put(writer: ObjectWriter, kinds: ServedKinds, kind: Kind, obj: JsonObject) -> None:
    """As it is now: the port may be another one than last time."""
    place = Target(kind=kind, namespace=namespace_of(obj), name=name_of(obj))
    request = Request(
        target=place,
        writing=Writing(manager="muster"),
        author=MUSTER,
        blueprint=kinds.blueprint(kind),
    )
    writer.change(request, lambda old: {**(old or {}), **copied(obj)})


def _make(writer: ObjectWriter, kinds: ServedKinds, kind: Kind, obj: JsonObject) -> None:
    if writer.view.find(kind, namespace_of(obj), name_of(obj)) is not None:
        return
    request = Request(
        target=Target(kind=kind, namespace=namespace_of(obj)),
        writing=Writing(manager="muster"),
        author=MUSTER,
        blueprint=kinds.blueprint(kind),
    )
    try:
        writer.create(request, obj)
    except StatusError as error:
        # Another process that shares the store may begin at the same time.
        if error.reason is not Reason.ALREADY_EXISTS:
            raise
