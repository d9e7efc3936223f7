"""What this machine does as a whole: /proc, and how full its disks are."""

import os
from pathlib import Path

from muster.backends.local.measuring import kernel_files
from muster.model.samples import Disk, HostSample
from muster.model.value import Instant, NodeId

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_WAITED_FOR = ("cpu", "memory", "io")


def text_of(path: str) -> str:
    """What the file says; nothing where there is none, or it may not be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class HostReader:
    """Remembers the last look, to say what the CPUs did since. One thread."""

    def __init__(self, home: Path, proc: str = "/proc") -> None:
        self._places = {"state": str(home), "tmp": "/tmp"}  # noqa: S108 -- how full it is
        self._proc = proc
        self._before: tuple[Instant, int] | None = None

    def look(self, node: NodeId, now: Instant) -> HostSample:
        memory = kernel_files.memory_bytes(text_of(f"{self._proc}/meminfo"))
        traffic = kernel_files.network_bytes(text_of(f"{self._proc}/net/dev"))
        return HostSample(
            node=node,
            at=now,
            cpu_used_milli=self._cpu_used(now),
            memory_bytes=memory.get("MemTotal"),
            memory_free_bytes=memory.get("MemAvailable"),
            pressure=kernel_files.pressure(
                {kind: text_of(f"{self._proc}/pressure/{kind}") for kind in _WAITED_FOR}
            ),
            disks=tuple(
                disk
                for what, place in self._places.items()
                if (disk := disk_at(what, place)) is not None
            ),
            received_bytes_total=None if traffic is None else traffic[0],
            sent_bytes_total=None if traffic is None else traffic[1],
        )

    def _cpu_used(self, now: Instant) -> int | None:
        ticks = kernel_files.busy_ticks(text_of(f"{self._proc}/stat"))
        before, self._before = self._before, None if ticks is None else (now, ticks)
        if ticks is None or before is None or now <= before[0]:
            return None
        return 1_000_000 * max(0, ticks - before[1]) // (TICKS_A_SECOND * (now - before[0]))


def disk_at(what: str, place: str) -> Disk | None:
    """The file system that a folder lies on; free is what others than root may still use."""
    try:
        told = os.statvfs(place)
    except OSError:
        return None
    return Disk(
        what=what, bytes=told.f_frsize * told.f_blocks, free_bytes=told.f_frsize * told.f_bavail
    )
