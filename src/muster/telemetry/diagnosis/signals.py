"""What is known of one device in one minute, as the rules read it (pure).

Everything is in thousandths: of the time, of the limit, of what was granted. A signal that is not
there is not a number, so that no comparison with it is ever true: a rule cannot hold by accident,
and none has to ask first whether its signals are there.
"""

import math
from collections.abc import Iterable

from muster.model.value import Value

MISSING = math.nan


class Signals(Value, gc=False):
    """One device, or part of one, in one minute, beside the CPU side of its job.

    useful: the part of the minute that computed, to compare with what could have been.
    link: bytes over PCIe or NVLink, of what the present link can carry, whichever is busier;
    pcie: the same of PCIe alone. heat, power_cap, brake, clocks_set: the part of the minute in
    which clocks were kept low by this. processes: how many of this job are on the device.
    cpu: used of granted. thread: the busiest one, of one CPU. io: time in which somebody waited
    for a disk. written and moved are KiB a second: written by the job; read and written.
    network: MiB a second of the job's busiest machine. host_memory: used of what it may use.
    """

    busy: float = MISSING
    sm: float = MISSING
    occupancy: float = MISSING
    tensor: float = MISSING
    fp32: float = MISSING
    fp64: float = MISSING
    dram: float = MISSING
    memory: float = MISSING
    power: float = MISSING
    clock: float = MISSING
    link: float = MISSING
    pcie: float = MISSING
    temperature: float = MISSING
    heat: float = MISSING
    power_cap: float = MISSING
    brake: float = MISSING
    clocks_set: float = MISSING
    processes: float = MISSING
    cpu: float = MISSING
    cpu_throttled: float = MISSING
    thread: float = MISSING
    io: float = MISSING
    blocked: float = MISSING
    written: float = MISSING
    moved: float = MISSING
    network: float = MISSING
    host_memory: float = MISSING
    is_narrow: bool = False
    is_broken: bool = False


NOTHING = Signals()
"""Nobody looked."""

TELLING = ("busy", "sm", "tensor", "dram", "power", "cpu", "thread", "io")
"""The signals without which a cause may hide; the order in which they are asked for."""


def missing_of(signals: Signals) -> tuple[str, ...]:
    """Which of the telling signals are not there."""
    return tuple(name for name in TELLING if math.isnan(getattr(signals, name)))


def mean(values: Iterable[float]) -> float:
    """Of those that are there; missing where none is."""
    known = [value for value in values if value == value]  # noqa: PLR0124 - not so for a missing one
    return sum(known) / len(known) if known else MISSING


def median(values: Iterable[float]) -> float:
    """The middle one of those that are there, the lower of two; missing where none is."""
    known = sorted(value for value in values if value == value)  # noqa: PLR0124 - as above
    return known[(len(known) - 1) // 2] if known else MISSING


def low_quarter(values: Iterable[float]) -> float:
    """What a quarter of those that are there do not exceed; missing where none is."""
    known = sorted(value for value in values if value == value)  # noqa: PLR0124 - as above
    return known[(len(known) - 1) // 4] if known else MISSING
