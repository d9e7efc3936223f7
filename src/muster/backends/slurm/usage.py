"""What `sstat` says that the steps of running jobs use. Pure."""

import re
from collections.abc import Iterable, Mapping

from muster.model.value import Value

FORMAT = "JobID,TRESUsageInTot"


class Usage(Value):
    """Of all steps of a job on all its nodes together; None: Slurm does not measure it.

    gpu_milli: of one GPU, so that two GPUs at work are 2,000. memory: the most there was of each
    task, added up.
    """

    cpu_ms: int | None = None
    memory_peak_bytes: int | None = None
    gpu_milli: int | None = None
    gpu_memory_bytes: int | None = None


def usage(text: str) -> Mapping[str, Usage]:
    """By the number of the job: what `sstat -a -n -P` prints of its steps, added up."""
    found: dict[str, Usage] = {}
    for row in text.splitlines():
        step, _, said = row.partition("|")
        job = step.partition(".")[0]
        if job and said:
            found[job] = _sum(found.get(job, Usage()), _of_step(said))
    return found


def _of_step(said: str) -> Usage:
    parts = {name: text for name, _, text in (each.partition("=") for each in said.split(","))}
    gpu = _number(parts.get("gres/gpuutil", ""))
    return Usage(
        cpu_ms=_time_ms(parts.get("cpu", "")),
        memory_peak_bytes=_number(parts.get("mem", "")),
        gpu_milli=None if gpu is None else 10 * gpu,
        gpu_memory_bytes=_number(parts.get("gres/gpumem", "")),
    )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        cpu_ms=_added((one.cpu_ms, other.cpu_ms)),
        memory_peak_bytes=_added((one.memory_peak_bytes, other.memory_peak_bytes)),
        gpu_milli=_added((one.gpu_milli, other.gpu_milli)),
        gpu_memory_bytes=_added((one.gpu_memory_bytes, other.gpu_memory_bytes)),
    )


def _added(parts: Iterable[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d{1,3})\d*)?")
_NUMBER = re.compile(r"(\d+)(?:\.\d+)?([KMGTP]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


def _time_ms(text: str) -> int | None:
    """`1-02:03:04`, `00:00:12`, `03:04.500`."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups()[:4])
    millis = int((found[5] or "0").ljust(3, "0"))
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + millis


def _number(text: str) -> int | None:
    """`95`, `10564K`."""
    found = _NUMBER.fullmatch(text)
    return None if found is None else int(found[1]) * _UNITS[found[2]]
