"""Variables by which containers find Services, as every kubelet sets them. Pure."""

from collections.abc import Iterable, Iterator

from muster.doors.kubernetes.objects.services import HEADLESS
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.model.pod import PodLaunch, Text, Variable
from muster.model.value import replace

Links = tuple[tuple[str, str], ...]
"""Names and values."""


def links_to(api: str, services: Iterable[JsonObject]) -> Links:
    """To the API, which listens at this address, and to these Services."""
    host, _, port = api.rpartition(":")
    found = dict(_of_port("KUBERNETES", host.strip("[]"), int(port), "tcp"))
    found |= {
        "KUBERNETES_SERVICE_HOST": host.strip("[]"),
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
    }
    for each in services:
        address = part(each, "spec").get("clusterIP")
        if address and address != HEADLESS:
            found |= dict(_of_service(each, str(address)))
    return tuple(sorted(found.items()))


def with_links(launch: PodLaunch, links: Links) -> PodLaunch:
    """The pod with these variables; what a container says itself comes after them."""
    given = tuple(Variable(name=name, value=Text(value=value)) for name, value in links)
    containers = tuple(replace(each, env=(*given, *each.env)) for each in launch.containers)
    return replace(launch, containers=containers)


def _of_service(service: JsonObject, address: str) -> Iterator[tuple[str, str]]:
    prefix = name_of(service).upper().replace("-", "_")
    yield f"{prefix}_SERVICE_HOST", address
    for place, port in enumerate(items(service, "spec", "ports")):
        number, protocol = int(port["port"]), str(port.get("protocol") or "TCP").lower()
        if not place:
            yield f"{prefix}_SERVICE_PORT", str(number)
            yield f"{prefix}_PORT", f"{protocol}://{address}:{number}"
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_upper(str(port['name']))}", str(number)
        yield from _of_port(prefix, address, number, protocol)


def _of_port(prefix: str, address: str, number: int, protocol: str) -> Iterator[tuple[str, str]]:
    start = f"{prefix}_PORT_{number}_{protocol.upper()}"
    yield start, f"{protocol}://{address}:{number}"
    yield f"{start}_PROTO", protocol
    yield f"{start}_PORT", str(number)
    yield f"{start}_ADDR", address


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
