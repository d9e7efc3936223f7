"""What this machine gives: CPUs, memory and NUMA nodes, as far as we may use them.

Everything is read below `root`, so that a recorded tree can stand in for the machine.
"""

import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.model.value import NodeId, Value

ROOT = Path("/")
_MIB = 1_048_576
# cgroup v1 writes "no limit" as the largest multiple of a page.
_NO_LIMIT_BYTES = 1 << 60


class Cpus(Value):
    """The CPUs we may use, by NUMA node, siblings of one core beside each other.

    milli: how much of them at a time; less than all where a cgroup says so.
    """

    by_numa: Mapping[int, tuple[int, ...]]
    milli: int


class Host(Value):
    """The machine without its GPUs."""

    node: NodeId
    cpus: Cpus
    memory_mib: int
    labels: Mapping[str, str]


def hardware(root: Path = ROOT) -> Host:
    """This machine, or the recorded one below `root`."""
    usable = (
        frozenset(os.sched_getaffinity(0))
        if root == ROOT
        else frozenset(listed_cpus(_text(root / "sys/devices/system/cpu/online")))
    )
    return Host(
        node=node_id(platform.node()),
        cpus=cpus(root, usable),
        memory_mib=memory_mib(root),
        labels={"muster/kernel": platform.release(), "muster/arch": platform.machine()},
    )


def node_id(hostname: str) -> NodeId:
    """The machine's short name, made of letters that every door accepts."""
    short = re.sub(r"[^a-z0-9-]+", "-", hostname.partition(".")[0].lower()).strip("-")
    return NodeId(short or "localhost")


def cpus(root: Path, usable: frozenset[int]) -> Cpus:
    quotas = [quota for folder in _cgroups(root, "cpu") if (quota := _quota_milli(folder))]
    return Cpus(by_numa=_by_numa(root, usable), milli=min(1_000 * len(usable), *quotas, _FREE))


def memory_mib(root: Path) -> int:
    """All of the memory, or what a cgroup leaves us of it, in whole MiB."""
    total = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    total_bytes = 1_024 * int(total[1]) if total else 0
    limits = [limit for folder in _cgroups(root, "memory") if (limit := _limit_bytes(folder))]
    return min(total_bytes, *limits, _NO_LIMIT_BYTES) // _MIB


def numa_of(bus_id: str, root: Path = ROOT) -> int | None:
    """The NUMA node of a PCI device, by NVML's bus id (`00000000:19:00.0`)."""
    domain, _, rest = bus_id.lower().partition(":")
    text = _text(root / f"sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").strip()
    return int(text) if text.isdecimal() else None


def listed_cpus(text: str) -> tuple[int, ...]:
    """`0-3,8,10-11` as numbers: how the kernel lists CPUs."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


_FREE = 1 << 40


def _by_numa(root: Path, usable: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """A machine that does not tell its NUMA nodes has one."""
    order = sorted(usable, key=lambda cpu: (_core(root, cpu), cpu))
    folders = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    nodes = {int(each.name[4:]): set(listed_cpus(_text(each / "cpulist"))) for each in folders}
    found = {
        numa: tuple(cpu for cpu in order if cpu in members)
        for numa, members in sorted(nodes.items())
        if members & usable
    }
    return found or {0: tuple(order)}


def _core(root: Path, cpu: int) -> int:
    """The first CPU of the core that this one belongs to."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    return min(listed_cpus(_text(folder / "thread_siblings_list")), default=cpu)


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Our cgroup for this controller and all those above it, in either version."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounted = root / "sys/fs/cgroup" / (controller if controllers else "")
        inner = mounted / path.lstrip("/")
        # In a container the path may be the machine's, which does not exist here.
        yield from (
            folder for folder in (inner, *inner.parents) if mounted in (folder, *folder.parents)
        )


def _quota_milli(folder: Path) -> int | None:
    quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota = _text(folder / "cpu.cfs_quota_us").strip()
        period = _text(folder / "cpu.cfs_period_us").strip()
    if not quota.isdecimal() or not period.isdecimal():
        return None
    return max(1, 1_000 * int(quota) // int(period))


def _limit_bytes(folder: Path) -> int | None:
    text = (_text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")).strip()
    return int(text) if text.isdecimal() and int(text) < _NO_LIMIT_BYTES else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
