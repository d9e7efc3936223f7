"""Gathers looks into minutes: who held what for how long, and what was measured meanwhile (pure).

    gathering = Gathering()
    for minute in gathering.add(moment):
        ...                             # each minute of each attempt that is over, the oldest first

Time is counted between looks, by who held each part when: a device that changes hands within a
minute belongs to both for their own time, and what a look measured counts for the time since the
look before. Nobody's time is lost where nothing was measured; its signals are missing then.
"""

from collections.abc import Mapping
from operator import attrgetter

from muster.model.holding import Holding
from muster.model.samples import DeviceSample, HostSample, JobSample, Samples
from muster.model.value import MINUTE, DeviceId, Duration, Instant, JobId, NodeId, Value, replace
from muster.telemetry.diagnosis.judging import Member, Part
from muster.telemetry.diagnosis.reading import Surroundings, signals_of, with_job
from muster.telemetry.diagnosis.signals import NOTHING, Signals

Attempt = tuple[JobId, int]

LONGEST_REACH = Duration(5 * MINUTE)
"""A look says nothing about what was longer ago than this."""


class Moment(Value):
    """One look, with what else is known of that moment.

    holdings: what is held now, and what was held until a moment since the look before. broken:
    devices that are not well.
    """

    at: Instant
    holdings: tuple[Holding, ...] = ()
    samples: tuple[Samples, ...] = ()
    broken: frozenset[DeviceId] = frozenset()


class HeldPart(Value):
    """One part that an attempt held in a minute, what is known of it, and whose it was."""

    holding: Holding
    member: Member


class Minute(Value):
    """One minute of one attempt, with every part that it held; the minute begins at `at`."""

    at: Instant
    parts: tuple[HeldPart, ...]

    @property
    def attempt(self) -> Attempt:
        holding = self.parts[0].holding
        return holding.job, holding.attempt


_NAMES = tuple(name for name, kind in Signals.__annotations__.items() if kind in {float, "float"})
_VALUES = attrgetter(*_NAMES)
_PLACES = range(len(_NAMES))


class _Sum:
    """One part of one attempt in one minute: signals by the time that they were measured for."""

    __slots__ = ("broken", "holding", "known_ms", "ms", "narrow", "totals")

    def __init__(self) -> None:
        self.holding: Holding | None = None
        self.ms = 0
        self.totals = [0.0] * len(_NAMES)
        self.known_ms = [0] * len(_NAMES)
        self.broken = False
        self.narrow = 0

    def add(self, holding: Holding, ms: int, signals: Signals) -> None:
        self.holding = holding
        self.ms += ms
        self.broken |= signals.is_broken
        self.narrow += ms if signals.is_narrow else 0
        totals, known_ms, values = self.totals, self.known_ms, _VALUES(signals)
        for place in _PLACES:
            value = values[place]
            # Not so for one that is missing.
            if value >= 0:
                totals[place] += value * ms
                known_ms[place] += ms

    def held_part(self) -> HeldPart | None:
        if self.holding is None:
            return None
        means = {
            name: total / known
            for name, total, known in zip(_NAMES, self.totals, self.known_ms, strict=True)
            if known
        }
        signals = Signals(
            **means,
            is_narrow=2 * self.narrow > self.ms,
            is_broken=self.broken,
        )
        return HeldPart(
            holding=self.holding,
            member=Member(part=part_of(self.holding), signals=signals, held=Duration(self.ms)),
        )


class Gathering:
    """Minutes that are not over yet, and the look before. One thread."""

    def __init__(self) -> None:
        self._at: Instant | None = None
        self._devices: Mapping[_Place, DeviceSample] = {}
        self._hosts: Mapping[NodeId, HostSample] = {}
        self._open: dict[tuple[int, Attempt], dict[Part, _Sum]] = {}

    def add(self, moment: Moment) -> tuple[Minute, ...]:
        """The minutes that this look closes. A clock that was set back begins again."""
        before, self._at = self._at, moment.at
        devices, hosts, jobs = _by_place(moment), _by_node(moment), _by_attempt(moment)
        if before is not None and before < moment.at:
            for holding in moment.holdings:
                beside = Surroundings(
                    job=jobs.get((holding.job, holding.attempt, holding.node)),
                    host=hosts.get(holding.node),
                    host_before=self._hosts.get(holding.node),
                    device_before=self._devices.get(_place_of(holding)),
                )
                signals = self._seen(moment, holding, devices.get(_place_of(holding)), beside)
                self._count(holding, signals, since=before, until=moment.at)
        self._devices, self._hosts = devices, hosts
        return self._closed(before=moment.at - moment.at % MINUTE)

    def close(self) -> tuple[Minute, ...]:
        """All that is open, though its minute is not over."""
        return self._closed(before=None)

    def _seen(
        self,
        moment: Moment,
        holding: Holding,
        sample: DeviceSample | None,
        beside: Surroundings,
    ) -> Signals:
        found = with_job(NOTHING, beside) if sample is None else signals_of(sample, holding, beside)
        return replace(found, is_broken=True) if holding.device in moment.broken else found

    def _count(self, holding: Holding, signals: Signals, *, since: Instant, until: Instant) -> None:
        """Held from `since` on, as far as the holding was there; measured as far as a look sees."""
        start = max(since, holding.since)
        end = until if holding.until is None else min(until, holding.until)
        part, attempt = part_of(holding), (holding.job, holding.attempt)
        seen_from = until - LONGEST_REACH
        while start < end:
            minute = start - start % MINUTE
            stop = min(end, minute + MINUTE)
            parts = self._open.setdefault((minute, attempt), {})
            into = parts.get(part)
            if into is None:
                into = parts[part] = _Sum()
            into.add(holding, stop - start, signals if stop > seen_from else NOTHING)
            start = Instant(stop)

    def _closed(self, before: int | None) -> tuple[Minute, ...]:
        over = sorted(key for key in self._open if before is None or key[0] < before)
        return tuple(_minute(key[0], self._open.pop(key)) for key in over)


def part_of(holding: Holding) -> Part:
    """Which part of which device it is."""
    return Part(
        node=holding.node,
        device=holding.device,
        instance=holding.instance,
        start=holding.start if holding.profile else None,
    )


def _minute(at: int, sums: Mapping[Part, _Sum]) -> Minute:
    parts = [part for each in sums.values() if (part := each.held_part()) is not None]
    return Minute(at=Instant(at), parts=tuple(sorted(parts, key=_order)))


def _order(part: HeldPart) -> tuple[NodeId, DeviceId, int, int]:
    of = part.member.part
    return of.node, of.device, -1 if of.instance is None else of.instance, of.start or 0


_Place = tuple[DeviceId, int | None, str]


def _place_of(holding: Holding) -> _Place:
    """By its number where that is known, else by its profile."""
    known = holding.instance is not None
    return holding.device, holding.instance, "" if known else holding.profile


def _by_place(moment: Moment) -> Mapping[_Place, DeviceSample]:
    """Instances also by their profile, where they are the only one of it on their device."""
    found: dict[_Place, DeviceSample] = {}
    twice: set[_Place] = set()
    for samples in moment.samples:
        for sample in samples.devices:
            found[sample.device, sample.instance, ""] = sample
            if sample.instance is not None:
                place = (sample.device, None, sample.profile)
                if place in found:
                    twice.add(place)
                found[place] = sample
    return {place: sample for place, sample in found.items() if place not in twice}


def _by_node(moment: Moment) -> Mapping[NodeId, HostSample]:
    return {sample.node: sample for samples in moment.samples for sample in samples.hosts}


def _by_attempt(moment: Moment) -> Mapping[tuple[JobId, int, NodeId], JobSample]:
    return {
        (sample.job, sample.attempt, sample.node): sample
        for samples in moment.samples
        for sample in samples.jobs
    }
