from typing import Any

from muster.controller.alerting.loop import shipped_rules
from muster.doors.kubernetes.pods.nodes_of import HEAT, LINKS, GpuAlert, Machine, SeenNode, node_of
from muster.model.cluster import Node, NodeState, Pool, Taint
from muster.model.gpu import Device, MigInstance
from muster.model.value import ClusterName, DeviceId, GpuModel, NodeId, PoolName, UserName, replace
from unit.doors.kubernetes.pods.worlds import NOW

A100 = GpuModel("A100-40GB")
DEVICES = (
    Device(id=DeviceId("g0"), index=0, model=A100, memory_mib=40_960),
    Device(
        id=DeviceId("g1"), index=1, model=A100, memory_mib=40_960, healthy=False, reason="Xid 79"
    ),
    Device(
        id=DeviceId("g2"),
        index=2,
        model=A100,
        memory_mib=40_960,
        mig=(MigInstance(profile="1g.5gb", start=0), MigInstance(profile="1g.5gb", start=1)),
    ),
)
NODE = Node(
    id=NodeId("n1"),
    cluster=ClusterName("c"),
    pool=PoolName("big"),
    cpu_milli=2_000,
    memory_mib=24_576,
    devices=DEVICES,
    where=("z1", "r7"),
    labels={"disk": "ssd"},
    taints=(Taint(key="gpu", value="yes"),),
)
POOL = Pool(name=PoolName("big"), cluster=ClusterName("c"), levels=("zone", "rack"))


def shown(
    node: Node,
    before: dict[str, Any] | None = None,
    alerts: tuple[GpuAlert, ...] | None = None,
) -> dict[str, Any]:
    machine = Machine(address="192.0.2.2")
    seen = SeenNode(node=node, pool=POOL, machine=machine, since=NOW, now=NOW, alerts=alerts)
    return node_of(seen, before)


def test_a_node_shows_what_it_has_and_what_of_it_works() -> None:
    found = shown(NODE)

    assert found["status"]["capacity"] == {
        "cpu": "2",
        "memory": "24Gi",
        "pods": "110",
        "nvidia.com/gpu": "2",
        "nvidia.com/mig-1g.5gb": "2",
    }
    assert found["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_a_node_can_be_selected_by_its_labels() -> None:
    labels = shown(NODE)["metadata"]["labels"]

    assert labels["disk"] == "ssd"
    assert labels["kubernetes.io/hostname"] == "n1"
    assert labels["topology.kubernetes.io/rack"] == "r7"
    assert labels["nvidia.com/gpu.product"] == "A100-40GB"
    assert labels["muster.io/pool"] == "big"


def test_a_cordoned_node_takes_nothing_new() -> None:
    drained = replace(NODE, state=NodeState.DRAINING, drained_by=UserName("root"))

    spec = shown(drained)["spec"]

    assert spec == {
        "unschedulable": True,
        "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    }


def test_taints_that_it_was_given_stay() -> None:
    before = {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoExecute"}]}}

    taints = shown(NODE, before)["spec"]["taints"]

    assert [each["key"] for each in taints] == ["team", "gpu"]


def test_health_is_a_condition() -> None:
    sick = conditions(NODE)
    down = conditions(replace(NODE, state=NodeState.DOWN, reason="no power"))

    assert sick["GPUsHealthy"] == ("False", "GPU 1: Xid 79")
    assert sick["GpuProblem"] == ("True", "GPU 1: Xid 79")
    assert sick["GpuLinkProblem"] == ("False", "every link works")
    assert sick["Ready"] == ("True", "kubelet is posting ready status")
    assert down["Ready"] == ("False", "no power")


def test_alerts_about_heat_and_links_are_conditions() -> None:
    hot = conditions(NODE, (GpuAlert("2", "GpuThermalThrottle"), GpuAlert("0", "GpuBroken")))
    narrow = conditions(NODE, (GpuAlert("0", "GpuPcieLinkNarrow"),))

    assert hot["GpuThermalProblem"] == ("True", "GPU 2: GpuThermalThrottle")
    assert hot["GpuLinkProblem"] == ("False", "every link works")
    assert narrow["GpuThermalProblem"] == ("False", "every GPU is cool enough")
    assert narrow["GpuLinkProblem"] == ("True", "GPU 0: GpuPcieLinkNarrow")


def test_heat_that_nobody_has_judged_is_not_known() -> None:
    assert conditions(NODE)["GpuThermalProblem"][0] == "Unknown"


def test_alerts_that_are_conditions_are_in_the_rules_that_ship() -> None:
    assert all(f"alert: {name}\n" in shipped_rules() for name in HEAT | LINKS)


def conditions(
    node: Node, alerts: tuple[GpuAlert, ...] | None = None
) -> dict[str, tuple[str, str]]:
    listed = shown(node, alerts=alerts)["status"]["conditions"]
    return {each["type"]: (each["status"], each["message"]) for each in listed}
