"""How large a process is."""

from pathlib import Path


def memory_kib(pid: int, field: str = "VmRSS") -> int:
    """What it holds now, or at its peak (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has no {field}")
