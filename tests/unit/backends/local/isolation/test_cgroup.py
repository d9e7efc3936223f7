import os
from pathlib import Path

import pytest

from muster.backends.local.isolation.cgroup import Group, Limits, roots

LIMITS = Limits(memory_mib=64, cpu_milli=1_500, cpus=(0, 2), processes=9)


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    """A version 2 tree in which an ancestor of ours hands out the controllers."""
    root = tmp_path / "cgroup"
    service = root / "user.slice" / "user@7.service"
    (service / "app.scope").mkdir(parents=True)
    for folder, given in ((root, ""), (service, "memory cpu cpuset"), (service / "app.scope", "")):
        (folder / "cgroup.controllers").write_text("memory cpu cpuset pids")
        (folder / "cgroup.subtree_control").write_text(given)
    return root


def mounts(root: Path) -> str:
    return f"cgroup2 {root} cgroup2 rw 0 0\n"


def test_the_nearest_group_that_hands_out_controllers_is_used(unified: Path) -> None:
    own = "0::/user.slice/user@7.service/app.scope\n"
    ground = unified / "user.slice" / "user@7.service" / "muster-x"
    ground.mkdir()
    (ground / "cgroup.subtree_control").write_text("memory cpu cpuset pids")

    found = roots("muster-x", mounts=mounts(unified), own=own)

    assert found.folders == {"v2": str(ground)}
    assert found.unified == {"memory", "cpu", "cpuset", "pids"}
    assert found.problems == ()


def test_a_machine_without_cgroups_says_what_is_not_kept() -> None:
    found = roots("muster-x", mounts="", own="")

    assert found.folders == {}
    assert len(found.problems) == 4
    assert found.problems[0].startswith("memory limits are not kept")


def test_limits_of_version_2_are_written(unified: Path) -> None:
    own = "0::/user.slice/user@7.service/app.scope\n"
    ground = unified / "user.slice" / "user@7.service" / "muster-x"
    (ground / "1.1").mkdir(parents=True)
    (ground / "cgroup.subtree_control").write_text("memory cpu cpuset pids")
    names = ("memory.max", "memory.swap.max", "cpu.weight", "cpuset.cpus", "pids.max")
    for name in names:
        (ground / "1.1" / name).touch()

    Group(roots("muster-x", mounts=mounts(unified), own=own), "1.1", LIMITS)

    written = [(ground / "1.1" / name).read_text() for name in names]
    assert written == [str(64 << 20), "0", "150", "0,2", "9"]


@pytest.mark.parametrize("limits", [LIMITS, Limits(processes=9)])
def test_processes_of_version_2_leave_room_for_groups_beside_them(
    unified: Path, limits: Limits
) -> None:
    """A group with processes of its own has no others below: a container tool could make none."""
    own = "0::/user.slice/user@7.service/app.scope\n"
    ground = unified / "user.slice" / "user@7.service" / "muster-x"
    (ground / "1.1").mkdir(parents=True)
    (ground / "cgroup.subtree_control").write_text("memory cpu cpuset pids")
    for name in ("memory.max", "cpu.weight", "cpuset.cpus", "pids.max", "cgroup.subtree_control"):
        (ground / "1.1" / name).touch()

    group = Group(roots("muster-x", mounts=mounts(unified), own=own), "1.1", limits)

    procs = ground / "1.1" / "main" / "cgroup.procs"
    procs.touch()
    group.join()
    assert procs.read_text() == "0"


def test_version_1_has_a_folder_in_each_hierarchy(tmp_path: Path) -> None:
    lines: list[str] = []
    for name in ("memory", "cpu", "freezer"):
        (tmp_path / name / "here").mkdir(parents=True)
        lines.append(f"cgroup {tmp_path / name} cgroup rw,{name} 0 0")
    own = "3:memory:/here\n2:cpu:/here\n1:freezer:/here\n"

    found = roots("muster-x", mounts="\n".join(lines), own=own)

    assert found.folders == {
        name: str(tmp_path / name / "here" / "muster-x") for name in ("memory", "cpu", "freezer")
    }
    assert [problem.partition(":")[0] for problem in found.problems] == [
        "CPU pinning is left to the job",
        "the number of processes has no limit",
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may make groups on every machine")
def test_this_machines_groups_come_and_go() -> None:
    found = roots(f"muster-test-{os.getpid()}")
    group = Group(found, "1.1", Limits(memory_mib=64))

    assert group.members() == []
    assert group.memory_kills() == 0
    group.remove()

    for folder in found.folders.values():
        os.rmdir(folder)
