"""EndpointSlices: at which addresses the pods behind a Service are found."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.changes import NOTHING, Create, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.owning import named, owner_reference
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving, is_ready
from muster.doors.kubernetes.controllers.selecting import selects_all
from muster.doors.kubernetes.objects.kinds import ENDPOINT_SLICE, ENDPOINTS, POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant, Value

SOURCE = "endpoint-slice-controller"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OURS = "endpointslice-controller.k8s.io"


def sync(service: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """Keep slices with the addresses of all pods that a Service selects.

    Pods whose ports have the same numbers are in one slice: each may call another port by a name.
    """
    selector = part(service, "spec", "selector")
    if not selector or part(service, "spec").get("type") == "ExternalName" or is_leaving(service):
        return NOTHING
    draft = Draft(service, SOURCE)
    pods = [
        each
        for each in cluster.list(POD, namespace_of(service))
        if selects_all(selector, labels_of(each)) and _address(each) and not is_finished(each)
    ]
    _keep_endpoints(draft, cluster, pods)
    held = _slices(service, cluster)
    groups = _groups(service, pods)
    kept = [_of_the_same_ports(held, each) for each in groups]
    for ordinal, (group, same) in enumerate(zip(groups, kept, strict=True)):
        wanted = _slice(service, group)
        first = same or (held.pop(0) if held else None)
        if first is None:
            new = named(wanted, cluster, now, kind=ENDPOINT_SLICE, ordinal=ordinal)
            draft.make(Create(object=new))
            continue
        changed = {**first, **{key: wanted[key] for key in ("endpoints", "ports", "addressType")}}
        labels = {**labels_of(first), **labels_of(wanted)}
        changed["metadata"] = {**metadata(first), "labels": labels}
        if changed != first:
            draft.update(changed)
    for each in held:
        draft.remove(Delete(object=each))
    return draft.outcome()


class _Group(Value):
    """Pods whose ports have the same numbers. ports: as slices have them."""

    ports: list[JsonObject]
    pods: list[JsonObject]


def _groups(service: JsonObject, pods: Sequence[JsonObject]) -> list[_Group]:
    """At least one, so that a Service without pods has a slice, too."""
    asked = items(service, "spec", "ports")
    found: list[_Group] = []
    for pod in pods:
        ports = [_port(each, pod) for each in asked]
        group = next((each for each in found if each.ports == ports), None)
        if group is None:
            group = _Group(ports=ports, pods=[])
            found.append(group)
        group.pods.append(pod)
    return found or [_Group(ports=[_port(each, {}) for each in asked], pods=[])]


def _of_the_same_ports(held: list[JsonObject], group: _Group) -> JsonObject | None:
    """A slice to go on with, taken from those held."""
    found = next((each for each in held if items(each, "ports") == group.ports), None)
    if found is not None:
        held.remove(found)
    return found


def _keep_endpoints(draft: Draft, cluster: Cluster, pods: Sequence[JsonObject]) -> None:
    """The same in the older form, which some clients still read."""
    service = draft.about
    space, name = namespace_of(service), name_of(service)
    labels = {**labels_of(service), ENDPOINTS_MANAGED_BY: "endpoint-controller"}
    if part(service, "spec").get("clusterIP") == "None":
        labels[HEADLESS] = ""
    held = cluster.get(ENDPOINTS, space, name)
    wanted = _subsets(service, pods)
    if held is None:
        about: JsonObject = {"name": name, "namespace": space, "labels": labels}
        about["ownerReferences"] = [owner_reference(service)]
        made: JsonObject = {"apiVersion": "v1", "kind": "Endpoints", "metadata": about}
        draft.make(Create(object={**made, "subsets": wanted}))
    elif items(held, "subsets") != wanted or labels_of(held) != labels:
        draft.update({**held, "metadata": {**metadata(held), "labels": labels}, "subsets": wanted})


def _subsets(service: JsonObject, pods: Sequence[JsonObject]) -> list[JsonObject]:
    found = (_subset(service, each) for each in _groups(service, pods))
    return [each for each in found if each is not None]


def _subset(service: JsonObject, group: _Group) -> JsonObject | None:
    """None where nobody is there."""
    ready: list[JsonObject] = []
    others: list[JsonObject] = []
    for pod in group.pods:
        endpoint = _endpoint(pod, service)
        told: JsonObject = {
            "ip": endpoint["addresses"][0],
            "nodeName": endpoint["nodeName"],
            "targetRef": endpoint["targetRef"],
        }
        if "hostname" in endpoint:
            told["hostname"] = endpoint["hostname"]
        if not is_leaving(pod):
            (ready if endpoint["conditions"]["ready"] else others).append(told)
    if not ready and not others:
        return None
    plain = [{name: value for name, value in each.items() if value != ""} for each in group.ports]
    ports = [each for each in plain if "port" in each]
    subset: JsonObject = {"addresses": ready, "notReadyAddresses": others, "ports": ports}
    return {name: value for name, value in subset.items() if value}


def _slices(service: JsonObject, cluster: Cluster) -> list[JsonObject]:
    owned = cluster.controlled(ENDPOINT_SLICE, namespace_of(service), uid_of(service))
    return [each for each in owned if labels_of(each).get(MANAGED_BY) == OURS]


def _slice(service: JsonObject, group: _Group) -> JsonObject:
    labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: OURS}
    if part(service, "spec").get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(each, service) for each in group.pods],
        "ports": group.ports,
    }


def _endpoint(pod: JsonObject, service: JsonObject) -> JsonObject:
    serves = is_ready(pod) or bool(part(service, "spec").get("publishNotReadyAddresses"))
    spec = part(pod, "spec")
    endpoint: JsonObject = {
        "addresses": [_address(pod)],
        "conditions": {
            "ready": serves and not is_leaving(pod),
            "serving": serves,
            "terminating": is_leaving(pod),
        },
        "nodeName": spec.get("nodeName", ""),
        "targetRef": {
            "kind": "Pod",
            "name": name_of(pod),
            "namespace": namespace_of(pod),
            "uid": uid_of(pod),
        },
    }
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def _port(port: JsonObject, pod: JsonObject) -> JsonObject:
    """As a slice has it; without a number where the pod calls no port so."""
    target = port.get("targetPort", port["port"])
    number = target if isinstance(target, int) else _named_port(str(target), pod)
    told: JsonObject = {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP")}
    return told if number is None else {**told, "port": number}


def _named_port(name: str, pod: JsonObject) -> int | None:
    for container in items(pod, "spec", "containers"):
        for each in items(container, "ports"):
            if each.get("name") == name:
                return each["containerPort"]
    return None


def _address(pod: JsonObject) -> str:
    return str(part(pod, "status").get("podIP") or "")
