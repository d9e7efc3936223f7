from pathlib import Path

from muster.backends.local.hardware.host import (
    cpus,
    hardware,
    listed_cpus,
    memory_mib,
    node_id,
    numa_of,
)

MEMINFO = "MemTotal:       65800000 kB\nMemFree:        1000 kB\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_this_machine_has_cpus_and_memory() -> None:
    found = hardware()

    assert found.cpus.milli >= 1
    assert found.memory_mib > 0
    assert sum(map(len, found.cpus.by_numa.values())) >= 1
    assert set(found.labels) == {"muster/kernel", "muster/arch"}


def test_a_recorded_machine_is_read_as_it_was(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/\n",
            "sys/devices/system/cpu/online": "0-3\n",
            "sys/devices/system/node/node0/cpulist": "0-1\n",
            "sys/devices/system/node/node1/cpulist": "2-3\n",
        },
    )

    found = hardware(root)

    assert found.cpus.by_numa == {0: (0, 1), 1: (2, 3)}
    assert found.cpus.milli == 4_000
    assert found.memory_mib == 64_257


def test_siblings_of_a_core_stand_beside_each_other(tmp_path: Path) -> None:
    files = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}"
        for cpu in range(4)
    }

    found = cpus(write(tmp_path, files), frozenset(range(4)))

    assert found.by_numa == {0: (0, 2, 1, 3)}


def test_cpus_that_we_may_not_use_do_not_count(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "sys/devices/system/node/node0/cpulist": "0-1\n",
            "sys/devices/system/node/node1/cpulist": "2-3\n",
        },
    )

    found = cpus(root, frozenset({1}))

    assert (found.by_numa, found.milli) == ({0: (1,)}, 1_000)


def test_a_quota_of_cgroup_v2_above_us_counts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/inner\n",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/inner/cpu.max": "max 100000\n",
        },
    )

    assert cpus(root, frozenset(range(8))).milli == 1_500


def test_a_quota_of_cgroup_v1_counts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/jobs\n3:cpu,cpuacct:/jobs\n",
            "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )

    assert cpus(root, frozenset(range(8))).milli == 2_000


def test_memory_is_what_the_cgroup_leaves(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/box/memory.max": "1073741824\n",
        },
    )

    assert memory_mib(root) == 1_024


def test_no_limit_of_cgroup_v1_is_no_limit(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )

    assert memory_mib(root) == 64_257


def test_a_device_tells_its_numa_node(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "sys/bus/pci/devices/0000:19:00.0/numa_node": "1\n",
            "sys/bus/pci/devices/0000:1a:00.0/numa_node": "-1\n",
        },
    )

    assert numa_of("00000000:19:00.0", root) == 1
    assert numa_of("00000000:1A:00.0", root) is None
    assert numa_of("00000000:1B:00.0", root) is None


def test_lists_of_cpus_are_read_as_the_kernel_writes_them() -> None:
    assert listed_cpus("0-3,8,10-11\n") == (0, 1, 2, 3, 8, 10, 11)
    assert listed_cpus("\n") == ()


def test_a_node_is_named_after_the_machine() -> None:
    assert node_id("Big_Box.example.org") == "big-box"
    assert node_id("...") == "localhost"
