from typing import Any

from muster.doors.kubernetes.objects.kinds import ENDPOINT_SLICE, ENDPOINTS
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, metadata
from properties.kubernetes_world import KubernetesWorld

MIRROR = "endpointslicemirroring-controller.k8s.io"


def test_endpoints_that_somebody_wrote_have_a_slice() -> None:
    world = KubernetesWorld()
    world.create(service())
    made = world.create(endpoints(addresses("192.0.2.1", port=80)))
    world.settles()

    (piece,) = world.of(ENDPOINT_SLICE)
    assert labels_of(piece)["kubernetes.io/service-name"] == "db"
    assert labels_of(piece)["endpointslice.kubernetes.io/managed-by"] == MIRROR
    assert metadata(piece)["ownerReferences"][0]["uid"] == metadata(made)["uid"]
    assert piece["addressType"] == "IPv4"
    assert piece["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]
    assert piece["endpoints"] == [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]


def test_what_changes_of_them_changes_of_their_slice_and_it_goes_with_them() -> None:
    world = KubernetesWorld()
    world.create(service())
    made = world.create(endpoints(addresses("192.0.2.1", port=80)))
    world.settles()
    before = world.of(ENDPOINT_SLICE)[0]

    world.update({**made, **endpoints(addresses("192.0.2.2", port=80)), **about(made)})
    world.settles()

    (piece,) = world.of(ENDPOINT_SLICE)
    assert metadata(piece)["uid"] == metadata(before)["uid"]
    assert piece["endpoints"][0]["addresses"] == ["192.0.2.2"]
    world.delete(made)
    world.settles()
    assert world.of(ENDPOINT_SLICE) == []


def test_each_set_of_ports_and_family_of_addresses_has_a_slice() -> None:
    world = KubernetesWorld()
    world.create(service())
    world.create(
        endpoints(addresses("192.0.2.1", "2001:db8::1", port=80), addresses("192.0.2.1", port=81))
    )
    world.settles()

    found = [(each["addressType"], each["ports"][0]["port"]) for each in world.of(ENDPOINT_SLICE)]
    assert sorted(found) == [("IPv4", 80), ("IPv4", 81), ("IPv6", 80)]


def test_who_is_not_ready_is_in_the_slice_as_such() -> None:
    world = KubernetesWorld()
    world.create(service())
    late = {"notReadyAddresses": [{"ip": "192.0.2.9", "hostname": "late"}]}
    world.create(endpoints({**addresses(port=80), **late}))
    world.settles()

    (piece,) = world.of(ENDPOINT_SLICE)
    assert piece["endpoints"] == [
        {"addresses": ["192.0.2.9"], "conditions": {"ready": False}, "hostname": "late"}
    ]


def test_endpoints_without_such_a_service_or_not_meant_to_be_mirrored_have_none() -> None:
    world = KubernetesWorld()
    made = world.create(endpoints(addresses("192.0.2.1", port=80)))
    world.settles()
    assert world.of(ENDPOINT_SLICE) == []

    asked = world.create(service())
    world.settles()
    assert len(world.of(ENDPOINT_SLICE)) == 1

    marked = {**metadata(made), "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    world.update({**world.fresh(made), "metadata": marked})
    world.settles()
    assert world.of(ENDPOINT_SLICE) == []
    assert world.is_there(asked)


def test_those_of_a_service_that_selects_pods_are_not_mirrored() -> None:
    world = KubernetesWorld()
    asked = service()
    asked["spec"]["selector"] = {"app": "db"}
    world.create(asked)
    world.settles()

    assert len(world.of(ENDPOINTS)) == 1
    managed = [labels_of(each) for each in world.of(ENDPOINT_SLICE)]
    assert MIRROR not in str(managed)


def service() -> JsonObject:
    about = {"name": "db", "namespace": "default"}
    spec = {"ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def endpoints(*subsets: JsonObject) -> JsonObject:
    about = {"name": "db", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": about, "subsets": [*subsets]}


def addresses(*ips: str, port: int) -> JsonObject:
    found: dict[str, Any] = {"ports": [{"port": port, "protocol": "TCP"}]}
    return {**found, "addresses": [{"ip": each} for each in ips]} if ips else found


def about(obj: JsonObject) -> JsonObject:
    return {"metadata": metadata(obj)}
