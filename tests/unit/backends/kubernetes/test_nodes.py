from typing import Any

import pytest

from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.model.cluster import NodeState, Taint
from muster.model.value import ClusterName, GpuModel

SHARED = "nvidia.com/gpu.shared"
FLEET = Fleet(cluster=ClusterName("pods"))


def document(**more: Any) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    return {
        "metadata": {"name": "n1", "labels": labels},
        "spec": more.get("spec", {}),
        "status": {
            "allocatable": {
                "cpu": "63500m",
                "memory": "1Gi",
                "nvidia.com/gpu": "2",
                **more.get("amounts", {}),
            },
            "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
        },
    }


def test_a_node_has_what_it_can_give_to_pods() -> None:
    node = node_of(document(), FLEET)

    assert (node.cpu_milli, node.memory_mib, node.state) == (63_500, 1_024, NodeState.UP)
    assert [each.model for each in node.devices] == [GpuModel("A100-80GB")] * 2


def test_mig_instances_are_on_devices_of_their_own() -> None:
    node = node_of(document(amounts={"nvidia.com/mig-3g.40gb": "3"}), FLEET)

    assert [len(each.mig or ()) for each in node.devices] == [0, 0, 2, 1]


def test_one_that_is_not_ready_is_down_and_a_cordoned_one_drains() -> None:
    assert node_of(document(ready="Unknown"), FLEET).state is NodeState.DOWN
    cordoned = node_of(document(spec={"unschedulable": True}), FLEET)

    assert (cordoned.state, cordoned.reason) == (NodeState.DRAINING, "cordoned")


def test_taints_keep_jobs_off_but_for_that_of_gpus() -> None:
    taints = [
        {"key": "team", "value": "vision", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
    ]

    node = node_of(document(spec={"taints": taints}), FLEET)

    assert node.taints == (Taint(key="team", value="vision"),)


@pytest.mark.parametrize(
    ("amounts", "product"),
    [({"nvidia.com/gpu": "8"}, "A100-SXM4-40GB-SHARED"), ({SHARED: "8"}, "A100-SXM4-40GB")],
)
@pytest.mark.parametrize(
    ("strategy", "by_mps"), [("mps", True), ("time-slicing", False), (None, False)]
)
def test_gpus_that_several_pods_have_at_a_time_are_split(
    amounts: dict[str, str], product: str, strategy: str | None, by_mps: bool
) -> None:
    found = document()
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.replicas": "4"}
    if strategy is not None:
        labels["nvidia.com/gpu.sharing-strategy"] = strategy
    found["metadata"]["labels"] = labels
    found["status"]["allocatable"] = amounts

    devices = node_of(found, FLEET).devices

    assert [(each.turns, each.mps, each.split) for each in devices] == [(4, by_mps, True)] * 2


@pytest.mark.parametrize("replicas", ["", "x", "1", "99999999999"])
def test_parts_that_nobody_counts_are_not_given_away(replicas: str) -> None:
    found = document()
    found["metadata"]["labels"] = {
        "nvidia.com/gpu.product": "A100-SXM4-40GB-SHARED",
        "nvidia.com/gpu.replicas": replicas,
    }

    assert node_of(found, FLEET).devices == ()


def test_a_gpu_that_is_not_split_is_given_away_whole_or_not_at_all() -> None:
    devices = node_of(document(), FLEET).devices

    assert {(each.turns, each.mps, each.split) for each in devices} == {(0, False, False)}


def test_labels_say_where_a_node_is_and_one_without_them_is_there_by_itself() -> None:
    levels = ("topology.kubernetes.io/zone", "rack")
    fleet = Fleet(cluster=ClusterName("pods"), levels=levels)
    found = document()
    found["metadata"]["labels"] = {levels[0]: "west"}

    assert node_of(found, fleet).where == ("west", found["metadata"]["name"])
