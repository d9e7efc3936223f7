import pytest

from muster.backends.local.steps.topology import SysTopology
from muster.launch.steps.binding import (
    Bind,
    StepCpus,
    cpus_of_tasks,
    mask,
    remark,
    variables,
)

FOUR = StepCpus(cpus=(2, 3, 6, 7), tasks=2)


@pytest.mark.parametrize(
    ("bind", "expected"),
    [
        (Bind(kind="none"), [(2, 3, 6, 7), (2, 3, 6, 7)]),
        (Bind(kind="threads"), [(2,), (3,)]),
        (Bind(kind=""), [(2,), (3,)]),
        (Bind(kind="map_cpu", values=(7, 2)), [(7,), (2,)]),
        (Bind(kind="map_cpu", values=(6,)), [(6,), (6,)]),
        (Bind(kind="mask_cpu", values=(0b1100, 0b11000000)), [(2, 3), (6, 7)]),
        (Bind(kind="map_cpu", values=(0,)), None),
        (Bind(kind="mask_cpu", values=(0b11,)), None),
    ],
)
def test_tasks_are_bound_to_cpus_of_their_step(
    bind: Bind, expected: list[tuple[int, ...]] | None
) -> None:
    assert cpus_of_tasks(bind, FOUR, SysTopology()) == expected


def test_tasks_have_as_many_cpus_as_they_asked_for_or_share_all() -> None:
    pairs = StepCpus(cpus=(2, 3, 6, 7), tasks=2, cpus_per_task=2)
    crowd = StepCpus(cpus=(2, 3), tasks=3)

    assert cpus_of_tasks(Bind(kind="threads"), pairs, SysTopology()) == [(2, 3), (6, 7)]
    assert cpus_of_tasks(Bind(kind="threads"), crowd, SysTopology()) == [(2, 3)] * 3


@pytest.mark.parametrize("kind", ["cores", "sockets", "ldoms"])
def test_whole_cores_sockets_and_numa_nodes_stay_within_the_step(kind: str) -> None:
    found = cpus_of_tasks(Bind(kind=kind), StepCpus(cpus=(0,), tasks=1), SysTopology())

    assert found == [(0,)]


def test_tasks_are_reported_how_they_are_bound() -> None:
    quiet, none = Bind(kind="cores"), Bind(kind="none", verbose=True)

    assert variables(quiet, [(0,), (1, 2)]) == {
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x1,0x6",
        "SLURM_CPU_BIND_LIST": "0x1,0x6",
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPU_BIND_VERBOSE": "quiet",
    }
    assert variables(none, [(0,)])["SLURM_CPU_BIND"] == "verbose,none"
    assert remark(quiet, "n1", 3, 1, (1, 2)) == (
        "cpu-bind-cores=MASK - n1, task  3  1 [%d]: mask 0x6 set\n"
    )
    assert remark(none, "n1", 0, 0, (0,)).endswith("task  0  0 [%d]: mask 0x1\n")
    assert mask((0, 63)) == "0x8000000000000001"
