"""How the CPUs of this machine belong together, as /sys shows it.

Only the standard library is used here: every supervisor imports it.
"""

from collections.abc import Mapping
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node")


class SysTopology:
    """Reads what it is asked for, when it is asked."""

    def core(self, cpu: int) -> tuple[int, ...]:
        return _listed(_CPUS / f"cpu{cpu}/topology/thread_siblings_list")

    def socket(self, cpu: int) -> tuple[int, ...]:
        return _listed(_CPUS / f"cpu{cpu}/topology/core_siblings_list")

    def domains(self) -> Mapping[int, tuple[int, ...]]:
        """NUMA nodes; a machine that does not tell them has one, with everything."""
        found = {
            int(each.name[4:]): _listed(each / "cpulist") for each in _NODES.glob("node[0-9]*")
        }
        return found or {0: _listed(_CPUS / "online")}


def _listed(path: Path) -> tuple[int, ...]:
    """`0-3,8` as numbers: how the kernel lists CPUs."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return ()
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
