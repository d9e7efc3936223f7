"""What the processes of an attempt use while they run, as /proc shows it."""

import os
from pathlib import Path

from muster.backends.local.attempt import processes
from muster.model.history import Used
from muster.model.running import Measured

_TICK_MS = 1_000 // os.sysconf("SC_CLK_TCK")
_STEP = b"SLURM_STEP_ID="


def measured(supervisor: int) -> tuple[Measured, ...]:
    """What runs below a supervisor, the job's script first, then its steps by number."""
    found = _by_step(supervisor)
    order = sorted(found, key=lambda step: -1 if step is None else step)
    return tuple(_together(step, found[step]) for step in order)


def _together(step: int | None, processes: "list[_Process]") -> Measured:
    peak = max(each.peak_kib for each in processes)
    system_ms = sum(each.system_ms for each in processes)
    return Measured(
        step=step,
        processes=tuple(str(each.pid) for each in processes),
        used=Used(
            cpu_ms=system_ms + sum(each.user_ms for each in processes),
            max_memory_mib=peak // 1_024,
            system_ms=system_ms,
            read_kib=sum(each.read_kib for each in processes),
            written_kib=sum(each.written_kib for each in processes),
            faults=sum(each.faults for each in processes),
        ),
        resident_kib=sum(each.resident_kib for each in processes),
        peak_kib=peak,
        virtual_kib=max(each.virtual_kib for each in processes),
    )


class _Process:
    """One process now. Whatever it has waited for counts as its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        stat = _after_name(pid)
        status = _table(f"/proc/{pid}/status")
        io = _table(f"/proc/{pid}/io")
        numbers = [int(each) for each in stat[1:]] if stat else [0] * 20
        self.faults = numbers[8] + numbers[9]
        self.user_ms = (numbers[10] + numbers[12]) * _TICK_MS
        self.system_ms = (numbers[11] + numbers[13]) * _TICK_MS
        self.resident_kib = status.get("VmRSS", 0)
        self.peak_kib = status.get("VmHWM", 0)
        self.virtual_kib = status.get("VmPeak", 0)
        self.read_kib = io.get("read_bytes", 0) // 1_024
        self.written_kib = io.get("write_bytes", 0) // 1_024


def _by_step(supervisor: int) -> dict[int | None, list[_Process]]:
    """By the step that they belong to; None: to the job's script."""
    found: dict[int | None, list[_Process]] = {}
    for pid in processes.descendants(supervisor):
        process = _Process(pid)
        if process.peak_kib:
            # What has no memory any more only waits to be reaped.
            found.setdefault(_step_of(pid), []).append(process)
    return found


def _step_of(pid: int) -> int | None:
    for variable in processes.environ(pid).split(b"\0"):
        if variable.startswith(_STEP):
            number = variable[len(_STEP) :]
            return int(number) if number.isdigit() else None
    return None


def _after_name(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def _table(path: str) -> dict[str, int]:
    """Lines such as `VmRSS:   1234 kB`."""
    found: dict[str, int] = {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError:
        return found
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0])
    return found
