"""Services: their defaults, their addresses, and what is refused. Pure.

Pods have the machine's network, and so have Services: each has an address of the loopback network,
which every process of this machine reaches and nobody else does.
"""

import hashlib
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

from muster.doors.kubernetes.objects.errors import (
    Cause,
    duplicate,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.selectors import text_at
from muster.doors.kubernetes.objects.value import JsonObject, items, part, uid_of

HEADLESS = "None"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
NODE_PORTS = range(30_000, 32_768)
PORTS = range(1, 65_536)
AFFINITY_S = 10_800
"""So long a client stays with one endpoint, unless the Service says otherwise."""

_FIRST, _ADDRESSES = 0x7F_01_00_01, 0xFD_FF_FE
"""From 127.1.0.1 to 127.254.255.254: hosts use the addresses that begin with 127.0."""

_OF_CLUSTER = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


def _default(service: JsonObject) -> JsonObject:
    spec = service.setdefault("spec", {})
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("type", "ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", AFFINITY_S)
    elif spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    for port in items(service, "spec", "ports"):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")
    if spec["type"] == "ExternalName":
        return service
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return service


def _prepare(service: JsonObject, old: JsonObject | None) -> JsonObject:
    """Addresses and ports of its own, which it keeps."""
    spec, before = service["spec"], part(old or {}, "spec")
    if spec["type"] == "ExternalName":
        for name in (*_OF_CLUSTER, "externalTrafficPolicy"):
            spec.pop(name, None)
    else:
        _give_address(service, before)
    _give_node_ports(service, before)
    if old is None:
        service["status"] = {"loadBalancer": {}}
    return service


def _give_address(service: JsonObject, before: JsonObject) -> None:
    spec = service["spec"]
    if not spec.get("clusterIP"):
        listed = items(service, "spec", "clusterIPs")
        spec["clusterIP"] = before.get("clusterIP") or (listed[0] if listed else address(service))
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _give_node_ports(service: JsonObject, before: JsonObject) -> None:
    spec = service["spec"]
    if spec["type"] not in WITH_NODE_PORTS:
        spec.pop("externalTrafficPolicy", None)
        kept = {port.get("nodePort") for port in items({"": before}, "", "ports")}
        for port in items(service, "spec", "ports"):
            if port.get("nodePort") in kept:
                port.pop("nodePort", None)
        return
    known = {
        (port.get("protocol"), port.get("port")): port.get("nodePort")
        for port in items({"": before}, "", "ports")
    }
    for place, port in enumerate(items(service, "spec", "ports")):
        if not port.get("nodePort"):
            was = known.get((port.get("protocol"), port.get("port")))
            port["nodePort"] = was or NODE_PORTS[_drawn(service, place) % len(NODE_PORTS)]


def address(service: JsonObject) -> str:
    """An address that follows from who it is: of a thousand Services hardly two share one."""
    return str(IPv4Address(_FIRST + _drawn(service) % _ADDRESSES))


def ports_and_balancers(service: JsonObject) -> dict[str, int]:
    """What a quota counts of a Service beside itself, as quotas name it."""
    spec = part(service, "spec")
    is_balanced = spec.get("type") == "LoadBalancer"
    has_ports = spec.get("type") == "NodePort" or (
        is_balanced and spec.get("allocateLoadBalancerNodePorts") is not False
    )
    ports = len(items(spec, "ports")) if has_ports else 0
    return {"services.nodeports": ports, "services.loadbalancers": int(is_balanced)}


def _drawn(service: JsonObject, place: int = 0) -> int:
    text = f"{uid_of(service)}/{place}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def _causes(service: JsonObject, old: JsonObject | None) -> list[Cause]:
    spec = part(service, "spec")
    return [*_kind_causes(spec), *_port_causes(service), *_changed_causes(spec, old)]


def _kind_causes(spec: JsonObject) -> Iterator[Cause]:
    if spec.get("type") not in TYPES:
        yield not_supported("spec.type", spec.get("type"), TYPES)
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    is_headless = spec.get("clusterIP") == HEADLESS
    if is_headless and spec.get("type") in WITH_NODE_PORTS:
        words = "may not be set to 'None' for LoadBalancer services"
        if spec["type"] == "NodePort":
            words = "may not be set to 'None' for NodePort services"
        yield invalid("spec.clusterIPs[0]", HEADLESS, words)
    affinities = ("ClientIP", "None")
    if spec.get("sessionAffinity") not in affinities:
        yield not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), affinities)


def _port_causes(service: JsonObject) -> Iterator[Cause]:
    spec, ports = part(service, "spec"), items(service, "spec", "ports")
    if not ports and spec.get("clusterIP") != HEADLESS and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    names = [str(port.get("name") or "") for port in ports]
    for place, port in enumerate(ports):
        where = f"spec.ports[{place}]"
        if len(ports) > 1 and not names[place]:
            yield required(f"{where}.name")
        if names[place] and names[place] in names[:place]:
            yield duplicate(f"{where}.name", names[place])
        yield from _number_causes(port.get("port"), f"{where}.port")
        if isinstance(port.get("targetPort"), int):
            yield from _number_causes(port["targetPort"], f"{where}.targetPort")
        protocols = ("SCTP", "TCP", "UDP")
        if port.get("protocol") not in protocols:
            yield not_supported(f"{where}.protocol", port.get("protocol"), protocols)
        number = port.get("nodePort")
        if number and number not in NODE_PORTS:
            words = (
                "provided port is not in the valid range. The range of valid ports is 30000-32767"
            )
            yield invalid(f"{where}.nodePort", number, words)


def _number_causes(number: Any, where: str) -> Iterator[Cause]:
    if number not in PORTS:
        yield invalid(where, number or 0, "must be between 1 and 65535, inclusive")


def _changed_causes(spec: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    before = part(old or {}, "spec")
    was, now = before.get("clusterIP"), spec.get("clusterIP")
    if was and was != now and "ExternalName" not in {before.get("type"), spec.get("type")}:
        yield invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")


SERVICES = Rules(
    default=_default,
    prepare=_prepare,
    validate=_causes,
    selectable={
        "spec.clusterIP": text_at("spec", "clusterIP"),
        "spec.type": text_at("spec", "type"),
    },
)
