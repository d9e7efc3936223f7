from typing import Any

import pytest

from muster.controller.messages import Fleet
from muster.doors.kubernetes.pods.unschedulable import Around, message
from muster.model.cluster import Abilities, Ability, Cluster, Node, NodeState, Taint
from muster.model.gpu import Device, GpuAsk, Mig
from muster.model.job import Ask, HeldBy, JobRule, JobSpec, LabelRule, TaskGroup, Where
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.reason import NoRoom
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    DeviceId,
    GpuModel,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from unit.doors.kubernetes.pods.worlds import NOW

WHY = NoRoom(group="main", placed=0, wanted=1, nodes=2)
HELPLESS = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: "
    "2 Preemption is not helpful for scheduling."
)


def a_node(name: str, **known: Any) -> Node:
    devices = tuple(
        Device(id=DeviceId(f"{name}-{at}"), index=at, model=GpuModel("T4-16GB"), memory_mib=1)
        for at in range(8)
    )
    return Node(
        id=NodeId(name),
        cluster=ClusterName("c"),
        pool=PoolName("p"),
        cpu_milli=2_000,
        memory_mib=24_000,
        devices=devices,
        **known,
    )


def around(*nodes: Node, held: tuple[Placement, ...] = (), **known: Any) -> Around:
    allocation = Allocation(
        job=JobId(1), attempt=1, cluster=ClusterName("c"), placements=held, placed_at=NOW
    )
    fleet = Fleet(
        clusters={},
        pools={},
        nodes={each.id: each for each in nodes},
        allocations={JobId(1): allocation} if held else {},
    )
    return Around(fleet=fleet, **known)


def a_spec(ask: Ask, where: Where | None = None) -> JobSpec:
    group = TaskGroup(each=ask, where=where or Where())
    return JobSpec(name="p", user=UserName("ada"), queue=QueuePath("t"), groups=(group,))


@pytest.mark.parametrize(
    ("ask", "lacks"),
    [
        (Ask(gpus=GpuAsk(count=9)), "2 Insufficient nvidia.com/gpu"),
        (Ask(cpu_milli=99_000), "2 Insufficient cpu"),
        (
            Ask(cpu_milli=99_000, memory_mib=99_000, gpus=GpuAsk(count=99)),
            "2 Insufficient cpu, 2 Insufficient memory, 2 Insufficient nvidia.com/gpu",
        ),
        (
            Ask(gpus=GpuAsk(count=1, slice=Mig(profile="1g.10gb"))),
            "2 Insufficient nvidia.com/mig-1g.10gb",
        ),
    ],
    ids=["gpus", "cpus", "all", "mig"],
)
def test_a_pod_that_fits_nowhere_says_so_as_the_scheduler_would(ask: Ask, lacks: str) -> None:
    found = message(a_spec(ask), WHY, around(a_node("n1"), a_node("n2")), NOW)

    assert found == f"0/2 nodes are available: {lacks}. {HELPLESS}"


def test_nodes_that_do_not_match_are_counted_apart() -> None:
    where = Where(require=(LabelRule(key="disk", values=("ssd",)),))
    nodes = around(a_node("n1", labels={"disk": "ssd"}), a_node("n2"))

    found = message(a_spec(Ask(gpus=GpuAsk(count=9)), where), WHY, nodes, NOW)

    assert found == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's "
        f"node affinity/selector. {HELPLESS}"
    )


def test_taints_and_cordons_are_named() -> None:
    nodes = around(
        a_node("n1", taints=(Taint(key="x"),)), replace(a_node("n2"), state=NodeState.DRAINING)
    )

    found = message(a_spec(Ask()), WHY, nodes, NOW)

    assert found == (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), "
        f"1 node(s) were unschedulable. {HELPLESS}"
    )


HELD = Placement(
    group="main",
    index=0,
    node=NodeId("n1"),
    pool=PoolName("p"),
    amount=Resources(gpu_milli=8_000),
    devices=tuple(DeviceShare(device=DeviceId(f"n1-{at}")) for at in range(8)),
)
TAKEN = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_what_others_hold_could_be_preempted() -> None:
    found = message(a_spec(Ask(gpus=GpuAsk(count=1))), WHY, around(a_node("n1"), held=(HELD,)), NOW)

    assert found == (
        f"{TAKEN} no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_who_never_preempts_is_told_so_and_who_does_waits_for_its_victims() -> None:
    asked = a_spec(Ask(gpus=GpuAsk(count=1)))
    polite = around(a_node("n1"), held=(HELD,), preempts=False)
    urgent = around(a_node("n1"), held=(HELD,), is_clearing=True)

    assert message(asked, WHY, polite, NOW) == (
        f"{TAKEN} no new claims to deallocate, preemption: "
        "not eligible due to preemptionPolicy=Never."
    )
    assert message(asked, WHY, urgent, NOW) == TAKEN


def test_rules_about_other_pods_have_their_own_words() -> None:
    beside = JobRule(key="app", value="web")
    there = around(a_node("n1"), held=(HELD,), labels={JobId(1): {"app": "web"}})
    apart = message(a_spec(Ask(), Where(apart=(beside,))), WHY, there, NOW)
    near = message(a_spec(Ask(), Where(near=(beside,))), WHY, around(a_node("n2")), NOW)

    assert "1 node(s) didn't match pod anti-affinity rules." in apart
    assert apart.endswith("1 No preemption victims found for incoming pod.")
    assert "1 node(s) didn't match pod affinity rules." in near
    assert near.endswith("1 Preemption is not helpful for scheduling.")


def test_other_reasons_are_told_in_our_own_words() -> None:
    held = HeldBy(user=UserName("root"))

    assert message(a_spec(Ask()), held, around(), NOW) == "Held by root until it is released."
    assert message(a_spec(Ask()), WHY, around(), NOW) == "no nodes available to schedule pods"


def test_nodes_of_a_cluster_that_cannot_run_such_a_pod_say_what_it_cannot() -> None:
    found = around(a_node("n1"), a_node("n2"))
    slurm = Cluster(name=ClusterName("c"), abilities=Abilities(volumes=False))
    found = replace(found, fleet=replace(found.fleet, clusters={slurm.name: slurm}))
    spec = replace(a_spec(Ask()), takes=(Ability.PODS, Ability.VOLUMES))

    said = message(spec, WHY, found, NOW)

    reason = "2 node(s) of cluster c, which mounts no volumes in pods"
    assert said == f"0/2 nodes are available: {reason}. {HELPLESS}"
