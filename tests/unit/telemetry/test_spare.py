"""Which free GPUs somebody could have, and which are of no use to those who wait."""

import pytest

from controller.desk import spec
from muster.model.gpu import GpuAsk, TimeShare
from muster.model.job import Ask, Together, Where
from muster.model.value import ClusterName, GpuModel, NodeId, PoolName, replace
from muster.telemetry.spare import Idle, Spare, Wanted, spare, wanted_by

POOL = (ClusterName("lab"), PoolName("main"))
A100, H100 = GpuModel("A100-40GB"), GpuModel("H100-80GB")


def idle(gpus: int, *, model: GpuModel = A100, cpus: int = 64, is_plain: bool = True) -> Idle:
    return Idle(POOL, model, 40_960, gpus, 1_000 * cpus, 512_000, is_plain)


def wants(gpus: int, tasks: int = 1, *, cpus: int = 1, is_plain: bool = True) -> Wanted:
    ask = GpuAsk(count=gpus)
    each = Ask(cpu_milli=1_000 * cpus, memory_mib=1_024, gpus=ask)
    return Wanted(each=each, gpus=ask, tasks=tasks, is_plain=is_plain)


@pytest.mark.parametrize(
    ("nodes", "wanted", "expected"),
    [
        ([idle(4)], [wants(2)], Spare(fillable=2)),
        # As often as somebody wants it, and no more often than there is room.
        ([idle(4)], [wants(2)] * 3, Spare(fillable=4)),
        ([idle(3)], [wants(4)], Spare(stranded=3)),
        # All tasks of a job or none; what fits a task of it is not stranded.
        ([idle(4), idle(4)], [wants(4, tasks=2)], Spare(fillable=8)),
        ([idle(4)], [wants(4, tasks=2)], Spare()),
        ([idle(4), idle(1)], [wants(4, tasks=2)], Spare(stranded=1)),
        # Of one model.
        ([idle(4), idle(4, model=H100)], [wants(4, tasks=2)], Spare()),
        # Without CPU a GPU is of no use.
        ([idle(4, cpus=1)], [wants(1, cpus=2)], Spare(stranded=4)),
        ([idle(4, cpus=4)], [wants(1, cpus=2)] * 4, Spare(fillable=2)),
        # What is not certain is no room, and not stranded.
        ([idle(4, is_plain=False)], [wants(1)], Spare()),
        ([idle(4)], [wants(1, is_plain=False)], Spare()),
        ([idle(4)], [], Spare()),
    ],
)
def test_gpus_are_fillable_or_stranded_or_just_free(
    nodes: list[Idle], wanted: list[Wanted], expected: Spare
) -> None:
    assert spare(nodes, wanted)[POOL] == expected


def test_a_pool_that_nobody_wants_strands_nothing() -> None:
    elsewhere = replace(wants(8), pools=(PoolName("other"),))

    assert spare([idle(4)], [elsewhere])[POOL] == Spare()


def test_memory_and_model_of_gpus_count() -> None:
    large = replace(wants(1), gpus=GpuAsk(count=1, min_memory_mib=80_000))
    other = replace(wants(1), gpus=GpuAsk(count=1, models=(H100,)))

    assert spare([idle(2)], [large])[POOL] == Spare(stranded=2)
    assert spare([idle(2)], [other])[POOL] == Spare(stranded=2)


def test_jobs_with_rules_about_nodes_are_not_plain() -> None:
    plain = spec(gpus=2)
    (group,) = plain.groups
    rules = (
        replace(group, where=Where(nodes=(NodeId("n1"),))),
        replace(group, together=Together(level="rack")),
        replace(group, each=Ask(gpus=GpuAsk(count=1, slice=TimeShare(replicas=2)))),
    )

    assert [each.is_plain for each in wanted_by(plain)] == [True]
    for rule in rules:
        assert [each.is_plain for each in wanted_by(replace(plain, groups=(rule,)))] == [False]
    assert [each.is_plain for each in wanted_by(replace(plain, groups=(group, group)))] == [
        False,
        False,
    ]
    assert wanted_by(spec(gpus=0)) == ()
