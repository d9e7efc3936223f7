"""Looks at a steady job, laid one after the other for longer than anybody wants to wait (pure)."""

from collections.abc import Mapping, Sequence

from muster.model.samples import DeviceSample, HostSample, Samples
from muster.model.value import MINUTE, SECOND, Instant, replace

STEP = 15 * SECOND
"""As often does the product look."""


def stretched(looks: Sequence[Samples], *, minutes: int) -> tuple[Samples, ...]:
    """The same looks, round and round, as if the product had taken them; from the second on.

    The first only says what the second grew from. What counts up grows as fast as it did.
    """
    found: list[Samples] = [_first(looks[0])]
    for number in range(1, minutes * MINUTE // STEP + 1):
        place = (number - 1) % (len(looks) - 1)
        found.append(_next(found[-1], looks[place], looks[place + 1]))
    return tuple(found)


def _first(look: Samples) -> Samples:
    return replace(
        look,
        at=Instant(0),
        devices=tuple(replace(each, at=Instant(0)) for each in look.devices),
        jobs=tuple(replace(each, at=Instant(0)) for each in look.jobs),
        hosts=tuple(replace(each, at=Instant(0)) for each in look.hosts),
    )


def _next(last: Samples, before: Samples, after: Samples) -> Samples:
    at = Instant(last.at + STEP)
    faster = STEP / (after.at - before.at)
    return Samples(
        at=at,
        devices=tuple(
            _device(at, faster, *each)
            for each in zip(last.devices, before.devices, after.devices, strict=True)
        ),
        jobs=tuple(replace(each, at=at) for each in after.jobs),
        hosts=tuple(
            _host(at, faster, *each)
            for each in zip(last.hosts, before.hosts, after.hosts, strict=True)
        ),
    )


def _device(
    at: Instant, faster: float, last: DeviceSample, before: DeviceSample, after: DeviceSample
) -> DeviceSample:
    return replace(
        after,
        at=at,
        interval_ms=STEP,
        throttled_ns=_grown(faster, last.throttled_ns, before.throttled_ns, after.throttled_ns),
        energy_mj_total=_more(
            faster, last.energy_mj_total, before.energy_mj_total, after.energy_mj_total
        ),
    )


def _host(
    at: Instant, faster: float, last: HostSample, before: HostSample, after: HostSample
) -> HostSample:
    return replace(
        after,
        at=at,
        received_bytes_total=_more(
            faster,
            last.received_bytes_total,
            before.received_bytes_total,
            after.received_bytes_total,
        ),
        sent_bytes_total=_more(
            faster, last.sent_bytes_total, before.sent_bytes_total, after.sent_bytes_total
        ),
    )


def _grown(
    faster: float, last: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]
) -> Mapping[str, int]:
    more = {
        name: _more(faster, last.get(name), before.get(name), value)
        for name, value in after.items()
    }
    return {name: value for name, value in more.items() if value is not None}


def _more(faster: float, last: int | None, before: int | None, after: int | None) -> int | None:
    if last is None or before is None or after is None:
        return None
    return last + round(faster * (after - before))
