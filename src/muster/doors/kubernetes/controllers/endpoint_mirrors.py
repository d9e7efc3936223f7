"""Endpoints that somebody wrote for a Service without a selector, also as EndpointSlices."""

from collections.abc import Iterator

from muster.doors.kubernetes.controllers.changes import NOTHING, Create, Delete, Draft, Outcome
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.endpoints import MANAGED_BY, SERVICE_NAME
from muster.doors.kubernetes.controllers.owning import named, owner_reference
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.objects.kinds import ENDPOINT_SLICE, SERVICE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.model.value import Instant

SOURCE = "endpoint-slice-mirroring-controller"
OURS = "endpointslicemirroring-controller.k8s.io"
SKIPPED = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""An annotation of Endpoints that are a lock and lead nowhere."""

_OF_PORTS = ("name", "port", "protocol", "appProtocol")
_OF_ADDRESSES = ("hostname", "nodeName", "targetRef")


def sync(endpoints: JsonObject, cluster: Cluster, now: Instant) -> Outcome:
    """One slice for each subset and family of addresses; none where no such Service is."""
    if is_leaving(endpoints):
        return NOTHING
    draft = Draft(endpoints, SOURCE)
    held = [
        each
        for each in cluster.controlled(ENDPOINT_SLICE, namespace_of(endpoints), uid_of(endpoints))
        if labels_of(each).get(MANAGED_BY) == OURS
    ]
    wanted = list(_slices(endpoints)) if _is_mirrored(endpoints, cluster) else []
    for ordinal, each in enumerate(wanted):
        same = next((one for one in held if _are_alike(one, each)), None)
        if same is None:
            new = named(each, cluster, now, kind=ENDPOINT_SLICE, ordinal=ordinal)
            draft.make(Create(object=new))
            continue
        held.remove(same)
        labels = {**labels_of(same), **labels_of(each)}
        about = {**metadata(same), "labels": labels}
        changed = {**same, "endpoints": each["endpoints"], "metadata": about}
        if changed != same:
            draft.update(changed)
    for each in held:
        draft.remove(Delete(object=each))
    return draft.outcome()


def _is_mirrored(endpoints: JsonObject, cluster: Cluster) -> bool:
    if labels_of(endpoints).get(SKIPPED) == "true" or LEADER in annotations_of(endpoints):
        return False
    service = cluster.get(SERVICE, namespace_of(endpoints), name_of(endpoints))
    return service is not None and not part(service, "spec").get("selector")


def _are_alike(one: JsonObject, other: JsonObject) -> bool:
    """May one become the other? Neither family nor ports of a slice change."""
    return all(one.get(each) == other[each] for each in ("addressType", "ports"))


def _slices(endpoints: JsonObject) -> Iterator[JsonObject]:
    for subset in items(endpoints, "subsets"):
        ports = [_port(each) for each in items(subset, "ports")]
        for family in ("IPv4", "IPv6"):
            found = [
                _endpoint(each, is_ready=is_ready)
                for field, is_ready in (("addresses", True), ("notReadyAddresses", False))
                for each in items(subset, field)
                if (":" in str(each.get("ip"))) is (family == "IPv6")
            ]
            if found:
                yield {
                    **_head(endpoints),
                    "addressType": family,
                    "endpoints": found,
                    "ports": ports,
                }


def _head(endpoints: JsonObject) -> JsonObject:
    labels = {**labels_of(endpoints), SERVICE_NAME: name_of(endpoints), MANAGED_BY: OURS}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(endpoints)}-",
            "namespace": namespace_of(endpoints),
            "labels": labels,
            "ownerReferences": [owner_reference(endpoints)],
        },
    }


def _port(port: JsonObject) -> JsonObject:
    told = {name: port[name] for name in _OF_PORTS if name in port}
    return {"name": "", "protocol": "TCP", **told}


def _endpoint(address: JsonObject, *, is_ready: bool) -> JsonObject:
    told = {name: address[name] for name in _OF_ADDRESSES if address.get(name)}
    return {"addresses": [address["ip"]], "conditions": {"ready": is_ready}, **told}
