"""Metrics as Datadog's agent takes them by UDP (pure).

Every series is billed there, so that a sink which names no metrics gets a short list.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator

from muster.telemetry.family import Family, FamilyKind, Labels

USUAL = (
    "muster_jobs",
    "muster_jobs_waiting",
    "muster_jobs_submitted_total",
    "muster_jobs_ended_total",
    "muster_pool_gpus",
    "muster_queue_used_gpus",
    "muster_queue_oldest_wait_seconds",
    "muster_leads",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_POWER_USAGE",
)

LARGEST = 1_432
"""Bytes of a datagram that passes any network whole."""

_Series = tuple[str, Labels]


class Deltas:
    """By how much counters grew: the agent adds up what it is told. Of one sink, in one thread."""

    def __init__(self) -> None:
        self._before: dict[_Series, float] = {}

    def lines(self, families: Iterable[Family]) -> Iterator[str]:
        """Gauges as they are and counters by how they grew; what is born counts from now on."""
        now: dict[_Series, float] = {}
        for family in families:
            name = _name(family.name)
            for point in family.points:
                if not math.isfinite(point.value):
                    continue
                if family.kind is FamilyKind.GAUGE:
                    yield _line(name, point.value, "g", point.labels)
                elif family.kind is FamilyKind.COUNTER:
                    series = (name, point.labels)
                    now[series] = point.value
                    before = self._before.get(series, point.value)
                    # One that was set back counts from nothing again.
                    grown = point.value - before if point.value >= before else point.value
                    if grown:
                        yield _line(name, grown, "c", point.labels)
        self._before = now


def datagrams(lines: Iterable[str]) -> Iterator[tuple[bytes, int]]:
    """As many lines together as fit, and how many these are."""
    taken: list[bytes] = []
    size = 0
    for line in lines:
        encoded = line.encode("utf-8", "replace")[:LARGEST]
        if taken and size + 1 + len(encoded) > LARGEST:
            yield b"\n".join(taken), len(taken)
            taken, size = [], 0
        taken.append(encoded)
        size += len(encoded) + 1
    if taken:
        yield b"\n".join(taken), len(taken)


def chosen(families: Iterable[Family], wanted: Collection[str]) -> Iterator[Family]:
    """Those that are named."""
    return (family for family in families if family.name in wanted)


def _name(name: str) -> str:
    """`muster.jobs`: ours have a namespace of their own there."""
    rest = name.removeprefix("muster_")
    return name if rest == name else f"muster.{rest}"


def _line(name: str, value: float, kind: str, labels: Labels) -> str:
    tags = ",".join(f"{_word(key)}:{_word(text)}" for key, text in labels if text)
    line = f"{name}:{value!r}|{kind}"
    return f"{line}|#{tags}" if tags else line


_BREAKS = re.compile(r"[\s,|#:]")


def _word(text: str) -> str:
    """Names of people must not be able to break a line into two."""
    return _BREAKS.sub("_", text)[:200]
