"""All minutes of one attempt together: what each cause took, and what was measured (pure).

summary = Summary(price)
summary.add(minute, judged)
findings(summary)                   # the dearest first
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muster.model.finding import USE_OF, Cause, Confidence, Evidence, Finding, Use
from muster.model.holding import Holding
from muster.model.value import MINUTE, DeviceId, Duration, Instant, Value
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.gathering import Minute
from muster.telemetry.diagnosis.judging import Judged, Part
from muster.telemetry.diagnosis.money import Time, time_of
from muster.telemetry.diagnosis.signals import Signals, missing_of
from muster.telemetry.diagnosis.thresholds import STARTING_VALUES, Thresholds

SHOWN = ("busy", "sm", "tensor", "dram", "memory", "power", "link", "cpu", "thread", "io")
"""The signals that are told as evidence."""

WORTH_TELLING_MILLI = 100
"""What a cause must waste of a job's time before it is what is said of the job."""

_MS_PER_HOUR = 3_600_000
_SURE_MILLI = 800
_LIKELY_MILLI = 500


class Seen(NamedTuple):
    """What one cause took in one attempt."""

    time: Time
    since: Instant
    until: Instant
    devices: tuple[DeviceId, ...]


class PartUse(Value):
    """What one part of a device did over the attempt: means and peaks, in thousandths."""

    part: Part
    gpu_milli: int
    held: Duration
    means: Mapping[str, int]
    memory_peak_milli: int | None = None


class _OfPart:
    """One part, by signal: the sum over the time that it was known for, and that time."""

    def __init__(self, gpu_milli: int) -> None:
        self.gpu_milli = gpu_milli
        self.held = 0
        self.sums: dict[str, list[float]] = {name: [0.0, 0.0] for name in SHOWN}
        self.memory_peak = -1.0


class _OfCause:
    def __init__(self, at: Instant) -> None:
        self.since = self.until = at
        self.milli_ms = self.wasted = self.ms = 0
        self.devices: set[DeviceId] = set()
        self.sums: dict[str, list[float]] = {name: [0.0, 0.0] for name in SHOWN}
        self.missing: set[str] = set()


class Summary:
    """What is known of one attempt so far. It grows with causes and devices, not with time."""

    def __init__(self, micros_per_hour: int = 0) -> None:
        self.micros_per_hour = micros_per_hour
        self.holding: Holding | None = None
        self.minutes = 0
        self._causes: dict[Cause, _OfCause] = {}
        self._parts: dict[Part, _OfPart] = {}

    def add(self, minute: Minute, judged: Sequence[Judged]) -> None:
        """One minute, with the causes of its parts in their order."""
        self.minutes += 1
        for held, each in zip(minute.parts, judged, strict=True):
            self.holding = held.holding
            self._count(minute.at, held.holding, each)

    @property
    def time(self) -> Time:
        return money.summed(list(self.times().values()))

    def times(self) -> dict[Cause, Time]:
        """What each cause took; together they are all that was held."""
        oversized = self._is_oversized()
        found: dict[Cause, Time] = {}
        for cause, of in sorted(self._causes.items()):
            told = Cause.OVERSIZED if oversized and cause in _MAY_BE_OVERSIZED else cause
            time = Time(milli_ms=of.milli_ms, wasted=of.wasted)
            found[told] = found.get(told, money.NO_TIME) + time
        return found

    def uses(self) -> tuple[PartUse, ...]:
        """What each part did, in the order of node and device."""
        ordered = sorted(self._parts, key=lambda part: (part.node, part.device, part.start or 0))
        return tuple(_part_use(part, self._parts[part]) for part in ordered)

    def mean(self, signal: str) -> float | None:
        """Of all parts together, by the time that they were held."""
        sums = [each.sums[signal] for each in self._parts.values()]
        known = sum(ms for _, ms in sums)
        return sum(total for total, _ in sums) / known if known else None

    def memory_peak_milli(self) -> int | None:
        """The highest of any part; None where it was never known."""
        most = max((each.memory_peak for each in self._parts.values()), default=-1)
        return None if most < 0 else round(most)

    def of_cause(self, cause: Cause) -> tuple[_OfCause, ...]:
        """What was counted under it; more than one where several are told as one."""
        told = _MAY_BE_OVERSIZED if cause is Cause.OVERSIZED else {cause}
        return tuple(self._causes[each] for each in sorted(told) if each in self._causes)

    def _count(self, at: Instant, holding: Holding, judged: Judged) -> None:
        member = judged.member
        time = time_of(gpu_milli=holding.gpu_milli, ms=member.held, slack_milli=judged.slack_milli)
        of = self._causes.setdefault(judged.cause, _OfCause(at))
        of.until = Instant(at + MINUTE)
        of.ms += member.held
        of.milli_ms += time.milli_ms
        of.wasted += time.wasted
        of.devices.add(member.part.device)
        part = self._parts.setdefault(member.part, _OfPart(holding.gpu_milli))
        part.held += member.held
        signals = member.signals
        part.memory_peak = max(part.memory_peak, signals.memory)
        _add(of.sums, signals, member.held)
        _add(part.sums, signals, member.held)
        of.missing.update(missing_of(signals))

    def _is_oversized(self) -> bool:
        """Did the whole job never need more than a part of its one device?"""
        limits: Thresholds = STARTING_VALUES
        sm, peak = self.mean("sm"), self.memory_peak_milli()
        return (
            len(self._parts) == 1
            and sm is not None
            and sm < limits.oversized
            and peak is not None
            and peak < limits.oversized
        )


def findings(summary: Summary) -> tuple[Finding, ...]:
    """Every cause of an attempt that cost it something, or could not be told; the dearest first."""
    holding = summary.holding
    if holding is None:
        return ()
    times = summary.times()
    order = sorted(
        (cause for cause in times if times[cause].wasted or USE_OF[cause] is Use.UNMEASURED),
        key=lambda cause: (-times[cause].wasted, -times[cause].milli_ms, cause),
    )
    return tuple(_finding(summary, holding, cause, times) for cause in order)


def headline(summary: Summary) -> Cause:
    """The one cause that is said of the job: what wastes most, or how it works if little is lost.

    What the start took is said of a job only when there is nothing else to say.
    """
    times = summary.times()
    held = sum(each.milli_ms for each in times.values())
    told = {cause: time for cause, time in times.items() if cause is not Cause.STARTING} or times
    wasteful = [
        cause
        for cause, time in told.items()
        if time.wasted >= WORTH_TELLING_MILLI * held and time.wasted
    ]
    if wasteful:
        return min(wasteful, key=lambda cause: (-told[cause].wasted, cause))
    return min(told, key=lambda cause: (-told[cause].milli_ms, cause), default=Cause.UNKNOWN)


def ranked(summary: Summary) -> tuple[Cause, ...]:
    """The headline, then the others by waste and by time."""
    times, first = summary.times(), headline(summary)
    others = sorted(
        (cause for cause in times if cause not in {first, Cause.STARTING}),
        key=lambda cause: (-times[cause].wasted, -times[cause].milli_ms, cause),
    )
    return (first, *others)


def confidence(summary: Summary, cause: Cause) -> Confidence:
    """Sure: most minutes agree, what was wasted agrees with them, and every signal was there."""
    times = {each: time for each, time in summary.times().items() if each is not Cause.STARTING}
    if cause not in times:
        return Confidence.SURE if cause is Cause.STARTING else Confidence.POSSIBLE
    held = sum(time.milli_ms for time in times.values())
    agrees = 1_000 * times[cause].milli_ms // held if held else 0
    all_there = not any(of.missing for of in summary.of_cause(cause)) or cause in _NEEDS_LITTLE
    if agrees >= _SURE_MILLI and all_there:
        return Confidence.SURE
    return Confidence.LIKELY if agrees >= _LIKELY_MILLI else Confidence.POSSIBLE


_MAY_BE_OVERSIZED = frozenset({Cause.WAITING, Cause.SMALL_WORK})
# What tells of these is there on every GPU.
_NEEDS_LITTLE = frozenset(
    {
        Cause.BROKEN,
        Cause.NEVER_USED,
        Cause.SOME_UNUSED,
        Cause.IDLE,
        Cause.HEAT,
        Cause.BRAKE,
    }
)


def _finding(
    summary: Summary, holding: Holding, cause: Cause, times: Mapping[Cause, Time]
) -> Finding:
    of = summary.of_cause(cause)
    price = summary.micros_per_hour
    ms = sum(each.ms for each in of)
    devices = {device for each in of for device in each.devices}
    wasted = money.wasted_micros(times[cause].wasted, price)
    return Finding(
        job=holding.job,
        attempt=holding.attempt,
        user=holding.user,
        queue=holding.queue,
        cause=cause,
        confidence=confidence(summary, cause),
        since=min(each.since for each in of),
        until=max(each.until for each in of),
        held_ms=Duration(times[cause].gpu_ms),
        wasted_micros=wasted,
        micros_per_hour=wasted * _MS_PER_HOUR * len(devices) // ms if ms else 0,
        wasted_gpu_milli=times[cause].wasted * len(devices) // (ms * 1_000) if ms else 0,
        devices=tuple(sorted(devices)),
        evidence=_evidence(of),
        missing=tuple(sorted({name for each in of for name in each.missing})),
    )


def _evidence(of: Sequence[_OfCause]) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    for name in SHOWN:
        total = sum(each.sums[name][0] for each in of)
        known = sum(each.sums[name][1] for each in of)
        if known:
            found.append(Evidence(signal=name, milli=round(total / known)))
    return tuple(found)


def _part_use(part: Part, of: _OfPart) -> PartUse:
    return PartUse(
        part=part,
        gpu_milli=of.gpu_milli,
        held=Duration(of.held),
        means={name: round(total / ms) for name, (total, ms) in of.sums.items() if ms},
        memory_peak_milli=None if of.memory_peak < 0 else round(of.memory_peak),
    )


def _add(sums: dict[str, list[float]], signals: Signals, ms: int) -> None:
    for name, into in sums.items():
        value: float = getattr(signals, name)
        if not math.isnan(value):
            into[0] += value * ms
            into[1] += ms
