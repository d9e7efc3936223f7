from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject
from properties.kubernetes_world import KubernetesWorld, pod


def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() -> None:
    world = KubernetesWorld()
    node = world.create(machine())

    node = world.edit(node, unschedulable=True)
    world.settles()
    assert world.fresh(node)["spec"] == {
        "taints": [
            {
                "effect": "NoSchedule",
                "key": "node.kubernetes.io/unschedulable",
                "timeAdded": "2026-11-16T09:00:00Z",
            }
        ],
        "unschedulable": True,
    }

    world.update({**world.fresh(node), "spec": {"taints": world.fresh(node)["spec"]["taints"]}})
    world.settles()
    assert world.fresh(node)["spec"] == {}


def test_taints_of_others_stay() -> None:
    world = KubernetesWorld()
    mine = {"key": "gpu", "value": "bad", "effect": "NoSchedule"}
    node = world.create(machine(taints=[mine]))

    world.edit(node, unschedulable=True)
    world.settles()

    assert world.fresh(node)["spec"]["taints"][0] == mine


def test_a_node_that_is_not_ready_drives_pods_away_after_their_patience() -> None:
    world = KubernetesWorld()
    world.create(machine() | {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    patient = pod("patient")
    patient["spec"]["tolerations"] = [
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    ]
    held = world.create(patient)
    world.runs(held)
    world.settles()
    assert len(world.active()) == 1

    world.passes(300)
    world.settles()

    assert world.active() == []
    words = "Marking for deletion Pod default/patient"
    assert world.said(held) == [("TaintManagerEviction", words)]


def test_a_pod_without_a_toleration_leaves_at_once() -> None:
    world = KubernetesWorld()
    node = world.create(machine())
    held = world.create(pod("p"))
    world.runs(held)
    world.settles()

    world.edit(node, taints=[{"key": "maintenance", "value": "now", "effect": "NoExecute"}])
    world.settles()

    assert world.active() == []
    told = world.fresh(held)["status"]["conditions"][-1]
    assert (told["type"], told["reason"]) == ("DisruptionTarget", "DeletionByTaintManager")


def machine(**spec: Any) -> JsonObject:
    about = {"name": "n1", "namespace": ""}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "spec": spec}
