from typing import Any

from muster.doors.kubernetes.objects.kinds import ENDPOINT_SLICE, ENDPOINTS, POD
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, metadata
from properties.kubernetes_world import KubernetesWorld, pod


def test_a_service_finds_its_pods_by_their_labels() -> None:
    world = KubernetesWorld()
    rank = located(world, "rank-0", "10.0.0.7", app="train")
    located(world, "other", "10.0.0.8", app="other")

    made = world.create(service())
    world.settles()

    piece = world.of(ENDPOINT_SLICE)[0]
    assert metadata(piece)["generateName"] == "train-"
    assert labels_of(piece)["kubernetes.io/service-name"] == "train"
    assert labels_of(piece)["service.kubernetes.io/headless"] == ""
    assert metadata(piece)["ownerReferences"][0]["uid"] == metadata(made)["uid"]
    assert piece["ports"] == [{"name": "", "protocol": "TCP", "port": 29500}]
    assert piece["endpoints"] == [
        {
            "addresses": ["10.0.0.7"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": "n1",
            "targetRef": {
                "kind": "Pod",
                "name": "rank-0",
                "namespace": "default",
                "uid": metadata(rank)["uid"],
            },
        }
    ]


def test_clients_of_the_older_form_find_them_too() -> None:
    world = KubernetesWorld()
    located(world, "rank-0", "10.0.0.7", app="train")
    made = world.create(service())
    world.settles()

    [subset] = world.of(ENDPOINTS)[0]["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.7"]
    assert subset["ports"] == [{"protocol": "TCP", "port": 29500}]

    world.delete(made)
    world.settles()
    assert world.of(ENDPOINTS) == []


def test_pods_that_call_other_ports_by_a_name_have_slices_of_their_own() -> None:
    world = KubernetesWorld()
    for name, number in (("a", 3001), ("b", 3002), ("c", 3001)):
        made = pod(name, app="train")
        made["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": number}]
        with_address(world, world.create(made), f"10.0.0.{number - 3000}")
    asked = service()
    asked["spec"]["ports"] = [{"port": 80, "targetPort": "web"}]
    world.create(asked)
    world.settles()

    slices = world.of(ENDPOINT_SLICE)
    told = {each["ports"][0]["port"]: len(each["endpoints"]) for each in slices}
    assert told == {3001: 2, 3002: 1}
    subsets = world.of(ENDPOINTS)[0]["subsets"]
    assert [each["ports"][0]["port"] for each in subsets] == [3001, 3002]

    world.ends(world.of(POD)[1])
    world.settles()

    assert [each["ports"][0]["port"] for each in world.of(ENDPOINT_SLICE)] == [3001]


def test_a_pod_that_ends_is_found_no_more() -> None:
    world = KubernetesWorld()
    rank = located(world, "rank-0", "10.0.0.7", app="train")
    world.create(service())
    world.settles()

    world.ends(rank)
    world.settles()

    assert world.of(ENDPOINT_SLICE)[0]["endpoints"] == []


def test_a_pod_with_a_name_in_the_service_says_it() -> None:
    world = KubernetesWorld()
    wanted = pod("db-0", app="train")
    wanted["spec"] |= {"hostname": "db-0", "subdomain": "train"}
    with_address(world, world.create(wanted), "10.0.0.9")

    world.create(service())
    world.settles()

    assert world.of(ENDPOINT_SLICE)[0]["endpoints"][0]["hostname"] == "db-0"


def test_a_named_port_is_looked_up_in_the_pods() -> None:
    world = KubernetesWorld()
    wanted = pod("a", app="train")
    ports = [{"name": "http", "containerPort": 8080}]
    wanted["spec"]["containers"] = [{"name": "main", "image": "x", "ports": ports}]
    with_address(world, world.create(wanted), "10.0.0.9")

    world.create(service(ports=[{"port": 80, "targetPort": "http"}]))
    world.settles()

    assert world.of(ENDPOINT_SLICE)[0]["ports"][0]["port"] == 8080


def test_the_slice_of_a_deleted_service_goes_with_it() -> None:
    world = KubernetesWorld()
    made = world.create(service())
    world.settles()

    world.delete(made)
    world.settles()

    assert world.of(ENDPOINT_SLICE) == []


def service(**spec: Any) -> JsonObject:
    wanted: JsonObject = {
        "clusterIP": "None",
        "type": "ClusterIP",
        "selector": {"app": "train"},
        "ports": [{"port": 29500, "protocol": "TCP"}],
    }
    kind = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}}
    return {**kind, "spec": {**wanted, **spec}}


def located(world: KubernetesWorld, name: str, address: str, **labels: str) -> JsonObject:
    return with_address(world, world.create(pod(name, **labels)), address)


def with_address(world: KubernetesWorld, made: JsonObject, address: str) -> JsonObject:
    world.runs(made)
    held = world.fresh(made)
    world.update_status({**held, "status": {**held["status"], "podIP": address}})
    return held
