import pytest

from muster.model.amounts import capacity_of, ceiling, measured, most_instances, resolved
from muster.model.cluster import Node, NodeState
from muster.model.gpu import Device, Mig
from muster.model.placement import DeviceShare, Placement
from muster.model.queue import Meter, Percent, Quota, Scope
from muster.model.resources import Resources
from muster.model.value import ClusterName, DeviceId, GpuModel, NodeId, PoolName, replace

A100, T4 = GpuModel("A100-40GB"), GpuModel("T4-16GB")
BIG, SMALL = PoolName("big"), PoolName("small")


def node(name: str, pool: PoolName, *models: GpuModel) -> Node:
    return Node(
        id=NodeId(name),
        cluster=ClusterName("here"),
        pool=pool,
        cpu_milli=8_000,
        memory_mib=1_024,
        devices=tuple(
            Device(id=DeviceId(f"{name}-{index}"), index=index, model=model, memory_mib=40_960)
            for index, model in enumerate(models)
        ),
    )


NODES = (node("n1", BIG, A100, A100), node("n2", SMALL, T4), node("n3", SMALL))
GPU, CPU, MEMORY, MIG = Meter.GPU, Meter.CPU, Meter.MEMORY, Meter.MIG


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(), 3_000),
        (Scope(pool=BIG), 2_000),
        (Scope(model=T4), 1_000),
        (Scope(pool=BIG, model=T4), 0),
        (Scope(meter=CPU), 24_000),
        (Scope(meter=CPU, pool=SMALL), 16_000),
        (Scope(meter=CPU, model=T4), 8_000),
        (Scope(meter=MEMORY), 3_072),
        (Scope(meter=MIG, profile="1g.5gb"), 14),
        (Scope(meter=MIG, profile="3g.20gb"), 4),
        (Scope(meter=MIG, profile="3g.20gb", pool=SMALL), 0),
    ],
    ids=repr,
)
def test_a_scope_has_all_that_it_covers(scope: Scope, expected: int) -> None:
    assert capacity_of(scope, NODES) == expected


def test_broken_devices_count_and_nodes_that_are_down_do_not() -> None:
    whole = node("n1", BIG, A100)
    broken = replace(whole, devices=(replace(whole.devices[0], healthy=False),))

    assert capacity_of(Scope(), [broken]) == 1_000
    assert capacity_of(Scope(), [replace(whole, state=NodeState.DRAINING)]) == 1_000
    assert capacity_of(Scope(), [replace(whole, state=NodeState.DOWN)]) == 0


def test_a_percentage_rounds_down() -> None:
    assert resolved(5, 1_000) == 5
    assert resolved(Percent(percent=33), 1_000) == 330
    assert resolved(Percent(percent=50), 3) == 1


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (Quota(guaranteed=4), None),
        (Quota(limit=6), 6),
        (Quota(guaranteed=4, borrow_limit=1), 5),
        (Quota(guaranteed=4, borrow_limit=1, limit=9), 5),
        (Quota(guaranteed=4, borrow_limit=9, limit=6), 6),
        (Quota(guaranteed=Percent(percent=40), borrow_limit=Percent(percent=20)), 6),
        (Quota(limit=0), 0),
    ],
    ids=repr,
)
def test_the_most_a_line_allows(quota: Quota, expected: int | None) -> None:
    assert ceiling(quota, 10) == expected


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(), 284),
        (Scope(meter=CPU), 2_000),
        (Scope(meter=MEMORY), 512),
        (Scope(meter=MIG, profile="1g.5gb"), 2),
        (Scope(meter=MIG, profile="2g.10gb"), 0),
        (Scope(pool=SMALL), 0),
        (Scope(model=T4), 0),
        (Scope(model=A100), 284),
    ],
    ids=repr,
)
def test_a_placement_takes_from_the_scopes_it_is_in(scope: Scope, expected: int) -> None:
    share = DeviceShare(device=DeviceId("n1-0"), slice=Mig(profile="1g.5gb"))
    placed = Placement(
        group="main",
        index=0,
        node=NodeId("n1"),
        pool=BIG,
        amount=Resources(cpu_milli=2_000, memory_mib=512, gpu_milli=284),
        devices=(share, share),
    )

    assert measured(scope, placed, A100) == expected


def test_a_model_has_no_instances_of_a_profile_it_does_not_know() -> None:
    assert most_instances(A100, "1g.5gb") == 7
    assert most_instances(T4, "1g.5gb") == 0
