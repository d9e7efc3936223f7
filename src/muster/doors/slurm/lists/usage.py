"""What jobs hold and used, as accounting writes it: `cpu=2,mem=4G,node=1`, `4.50M`. Pure."""

from collections.abc import Callable

from muster.doors.slurm.words import times
from muster.model.efficiency import JobReport
from muster.model.history import Used
from muster.model.value import Duration, Value

UNITS = "KMGTP"
_SUFFIXES = ("", *UNITS, "E")
_HALF = 512
_MIB = 1_048_576


class Scale(Value):
    """In which unit amounts are shown: as large as stays exact, as it was counted, or one for all.

    Half a unit counts as exact.
    """

    unit: str = ""
    convert: bool = True

    def mib(self, amount: int) -> str:
        """`2G`, `1.50G`, `2000M`."""
        if not amount:
            return "0"
        place, size = 2, float(amount)
        if self.unit:
            wanted = _SUFFIXES.index(self.unit)
            size *= 1_024.0 ** (place - wanted)
            place = wanted
        elif self.convert:
            while size >= 1_024 and size % _HALF == 0 and place < len(_SUFFIXES) - 1:
                size /= 1_024
                place += 1
        shown = str(int(size)) if size == int(size) else f"{size:.2f}"
        return shown + _SUFFIXES[place]


def tres_text(parts: dict[str, str]) -> str:
    """In the order of names, as accounting keeps it."""
    return ",".join(sorted([f"{name}={value}" for name, value in parts.items()]))


def taken_in(used: Used, scale: Scale, tasks: int = 1) -> dict[str, str]:
    """What was consumed, and read: of one task on average, or of all with `tasks` of 1."""
    return {
        "cpu": times.long_text(Duration(used.cpu_ms // tasks)),
        "fs/disk": str(used.read_kib * 1_024 // tasks),
        "mem": scale.mib(used.max_memory_mib),
        "pages": str(used.faults // tasks),
    }


Together = Callable[[list[int]], int]


def gpus_taken(report: JobReport | None, together: Together) -> dict[str, str]:
    """What its GPUs computed, in percent, and what memory they had, as Slurm's plugins name it.

    together: the mean, the sum, the most or the least of its GPUs.
    """
    devices = () if report is None else report.devices
    busy = [each.means["busy"] // 10 for each in devices if "busy" in each.means]
    memory = [
        each.memory_peak_bytes // _MIB for each in devices if each.memory_peak_bytes is not None
    ]
    found: dict[str, str] = {}
    if busy:
        found["gres/gpuutil"] = str(together(busy))
    if memory:
        found["gres/gpumem"] = f"{together(memory)}M"
    return found


def average(values: list[int]) -> int:
    """To the whole number below."""
    return sum(values) // len(values)


def given_out(used: Used, tasks: int = 1) -> dict[str, str]:
    """What was written."""
    return {"fs/disk": str(used.written_kib * 1_024 // tasks)}


def same_for_all(parts: dict[str, str], value: str) -> str:
    """Where, or in which task, each of them was so."""
    return tres_text(dict.fromkeys(parts, value))
