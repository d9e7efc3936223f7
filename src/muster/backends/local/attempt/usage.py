"""What processes used, counted as they end. Every supervisor has it: only the standard library."""

import resource

from muster.backends.local.attempt import spool

_BLOCKS_PER_KIB = 2
"""The kernel counts blocks of 512 bytes."""


class UsageSum:
    """Sums of what ended processes used, and the most that one of them held."""

    def __init__(self) -> None:
        self.max_memory_kib = 0
        self._user_s = 0.0
        self._system_s = 0.0
        self._read = 0
        self._written = 0
        self._faults = 0

    def add(self, usage: resource.struct_rusage) -> None:
        """Another process has ended."""
        self._user_s += usage.ru_utime
        self._system_s += usage.ru_stime
        self._read += usage.ru_inblock
        self._written += usage.ru_oublock
        self._faults += usage.ru_majflt
        self.max_memory_kib = max(self.max_memory_kib, usage.ru_maxrss)

    def file(self, max_memory_mib: int) -> spool.UsedFile:
        """All of it, to be written down."""
        return {
            "cpu_ms": int((self._user_s + self._system_s) * 1_000),
            "max_memory_mib": max_memory_mib,
            "system_ms": int(self._system_s * 1_000),
            "read_kib": self._read // _BLOCKS_PER_KIB,
            "written_kib": self._written // _BLOCKS_PER_KIB,
            "faults": self._faults,
        }
