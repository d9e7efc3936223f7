"""What kube-scheduler's HTTP extender is asked, and answers."""

from typing import Any

import pytest

from muster.backends.kubernetes.extender import (
    BadArgsError,
    asked_by,
    filtered,
    free_of,
    names_in,
    prioritized,
)
from muster.backends.kubernetes.nodes import Fleet, node_of
from muster.backends.kubernetes.pods import pod_of
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import Ask
from muster.model.policy import Policy
from muster.model.value import ClusterName, NodeId
from muster.schedule.rank import Ranking

FLEET = Fleet(cluster=ClusterName("k"))


def node(name: str, gpus: int = 8, cpu: str = "64") -> dict[str, Any]:
    """As kube-scheduler sends it, without what nobody reads here."""
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        },
        "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "512Gi", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(on: str = "", gpus: int = 1, **limits: str) -> dict[str, Any]:
    named = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": f"uid-{on}-{gpus}"},
        "spec": {
            "nodeName": on,
            "schedulerName": "default-scheduler",
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": named | limits, "requests": {"cpu": "500m"}},
                }
            ],
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def args(asked: dict[str, Any], *names: str, cached: bool = True) -> dict[str, Any]:
    """`ExtenderArgs`: with `nodeCacheCapable` names alone, else whole nodes."""
    if cached:
        return {"Pod": asked, "Nodes": None, "NodeNames": list(names)}
    listed: dict[str, Any] = {"metadata": {}, "items": [node(name) for name in names]}
    return {"Pod": asked, "Nodes": listed, "NodeNames": None}


def numbers(asked: dict[str, Any], pods: list[dict[str, Any]], *names: str) -> dict[NodeId, int]:
    found = free_of([node_of(node(name), FLEET) for name in names], map(pod_of, pods))
    ask = asked_by(asked)
    assert ask is not None
    return Ranking(Policy()).numbers(found, ask)


def test_a_pod_asks_for_what_all_its_containers_do() -> None:
    assert asked_by(args(pod(gpus=2))) == Ask(cpu_milli=500, gpus=GpuAsk(count=2))
    cut = pod(gpus=0, **{"nvidia.com/mig-1g.10gb": "1"})
    assert asked_by(args(cut)) == Ask(
        cpu_milli=500, gpus=GpuAsk(count=1, slice=Mig(profile="1g.10gb"))
    )


def test_what_we_cannot_judge_is_let_through_without_a_score() -> None:
    mixed = args(pod(gpus=1, **{"nvidia.com/mig-1g.10gb": "1"}), "n1")

    assert asked_by(mixed) is None
    assert filtered(mixed, (NodeId("n1"),), None)["NodeNames"] == ["n1"]
    assert prioritized(mixed, None) == [{"Host": "n1", "Score": 0}]


def test_the_fullest_node_that_still_fits_is_the_best() -> None:
    asked = args(pod(gpus=2), "empty", "half", "full")
    pods = [pod("half", gpus=6), pod("full", gpus=7)]

    found = numbers(asked, pods, "empty", "half", "full")

    assert filtered(asked, map(NodeId, ("empty", "half", "full")), found) == {
        "NodeNames": ["empty", "half"],
        "FailedNodes": {"full": "Muster: no room for what the pod asks for"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert prioritized(asked, found) == [
        {"Host": "empty", "Score": 0},
        {"Host": "half", "Score": 10},
        {"Host": "full", "Score": 0},
    ]


def test_pods_without_gpus_are_kept_off_gpus() -> None:
    asked = args(pod(gpus=0), "gpus", "none")
    nodes = [node_of(node("gpus"), FLEET), node_of(node("none", gpus=0), FLEET)]
    ask = asked_by(asked)
    assert ask is not None

    found = Ranking(Policy()).numbers(free_of(nodes, ()), ask)

    assert [each["Score"] for each in prioritized(asked, found)] == [0, 10]


def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    asked = args(pod(gpus=9), "n1", "unknown", cached=False)

    found = filtered(asked, (NodeId("n1"),), {})

    assert [each["metadata"]["name"] for each in found["Nodes"]["items"]] == ["unknown"]
    assert names_in(asked) == ("n1", "unknown")


def test_nodes_that_look_alike_have_the_same_score() -> None:
    asked = args(pod(gpus=1), "n1", "n2")

    found = numbers(asked, [], "n1", "n2")

    assert {each["Score"] for each in prioritized(asked, found)} == {10}


def test_what_is_remembered_changes_no_answer() -> None:
    ranking, ask = Ranking(Policy()), Ask(cpu_milli=500, gpus=GpuAsk(count=2))
    nodes = [node_of(node(name), FLEET) for name in ("n1", "n2")]
    for pods in ([], [pod("n1", gpus=4)], [pod("n2", gpus=7)], []):
        free = free_of(nodes, map(pod_of, pods))
        assert ranking.numbers(free, ask) == Ranking(Policy()).numbers(free, ask)


def test_what_is_no_question_is_refused() -> None:
    with pytest.raises(BadArgsError, match="no Pod"):
        asked_by({"Nodes": None})
