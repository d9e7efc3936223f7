"""Amounts, spans of time and other small things, as people write them and as values.

What people write is read by one function, and one function writes it: reading what was written
gives the same value back.
"""

import re
import signal
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from muster.model.errors import MusterError
from muster.model.gpu import WHOLE_GPU_MILLI, Mig, MpsShare, Slice, TimeShare
from muster.model.queue import Amount, Meter, Percent
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from muster.model.words import percent, thousandths

LONGEST = Duration(36_500 * DAY)
"""A century: who writes more than this has mistaken the unit."""

MOST_MIB = 2**40
"""An exbibyte, for the same reason."""

MOST_UNITS = 1_000_000_000
"""The most GPUs, cores, instances or money, for the same reason."""


class BadTextError(MusterError):
    """What is written cannot be read; the message says what can."""

    def __init__(self, text: object, accepted: str) -> None:
        super().__init__(f"`{text}` cannot be read here; write {accepted}")
        self.text = str(text)
        self.accepted = accepted


def duration(text: str | int) -> Duration:
    """`90m`, `1h30m`, `30d`, `1-12:00:00`, `MM:SS`; a number alone counts seconds, as text too."""
    written = str(text).strip()
    if _DIGITS.fullmatch(written):
        return _bounded(int(written) * SECOND, text)
    if found := _CLOCK.fullmatch(written):
        return _bounded(_by_clock(found), text)
    if written and _SPAN.fullmatch(written):
        parts = _PART.findall(written.lower())
        return _bounded(sum(_part(number, unit) for number, unit in parts), text)
    raise BadTextError(text, _SPANS)


def duration_text(span: Duration) -> str:
    """`1h30m`: the parts that are not zero, largest first."""
    parts: list[str] = []
    left = int(span)
    for letters, length in _SHOWN_LENGTHS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{letters}")
    return "".join(parts) or "0s"


def span_with_unit(text: str | int) -> Duration:
    """The same where a number alone would be taken for minutes by some: it must have its unit."""
    written = str(text).strip()
    if _DIGITS.fullmatch(written):
        raise BadTextError(text, f"`{written}m` for minutes or `{written}s` for seconds")
    try:
        return duration(written)
    except BadTextError as bad:
        raise BadTextError(text, bad.accepted.replace(_ALONE, "")) from bad


def memory_mib(text: str | int) -> int:
    """`512M`, `16G`, `1.5T`, `4096K`, all binary and rounded up; a number alone counts MiB."""
    found = _MEMORY.fullmatch(str(text).strip())
    if found is None:
        raise BadTextError(text, _MEMORIES)
    unit = (found["unit"] or "m").lower()
    mib = (Decimal(found["number"]) * _MIB[unit]).to_integral_value(ROUND_CEILING)
    if mib > MOST_MIB:
        raise BadTextError(text, f"{_MEMORIES}, and no more than {memory_text(MOST_MIB)}")
    return int(mib)


def memory_text(mib: int) -> str:
    """`16G`: in the largest unit that gives a whole number."""
    letter, size = next(
        (each for each in _SHOWN_SIZES if mib and mib % each[1] == 0), _SHOWN_SIZES[-1]
    )
    return f"{mib // size}{letter}"


def instant(text: str, now: Instant) -> Instant:
    """`2026-12-01T08:00:00Z`, `now`, `now+2h`; without a zone it is local time."""
    written = text.strip()
    if found := _FROM_NOW.fullmatch(written):
        return Instant(now + (duration(found["later"]) if found["later"] else 0))
    if not _DATE.fullmatch(written):
        raise BadTextError(text, _INSTANTS)
    try:
        at = datetime.fromisoformat(written.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as bad:
        raise BadTextError(text, _INSTANTS) from bad
    return Instant((at - _EPOCH) // _MILLISECOND)


def rfc3339(at: Instant) -> str:
    """`2026-12-01T08:00:00Z`, with milliseconds where there are some."""
    written = (_EPOCH + at * _MILLISECOND).replace(tzinfo=None)
    return written.isoformat(timespec="milliseconds" if at % SECOND else "seconds") + "Z"


def slice_of(text: str) -> Slice:
    """`mig:1g.5gb`, `mps:25%`, `mps:25%:8G`, `time:4` (one of two turns at least)."""
    kind, _, rest = text.strip().lower().partition(":")
    if kind == "mig" and _PROFILE.fullmatch(rest):
        return Mig(profile=rest)
    if kind == "mps":
        return _mps(rest, text)
    if kind == "time" and _DIGITS.fullmatch(rest) and 1 < int(rest) <= WHOLE_GPU_MILLI:
        return TimeShare(replicas=int(rest))
    raise BadTextError(text, _SLICES)


def slice_text(part: Slice) -> str:
    """As `slice_of` reads it."""
    match part:
        case Mig(profile=profile):
            return f"mig:{profile}"
        case MpsShare(milli=milli, memory_mib=0):
            return f"mps:{percent(milli)}"
        case MpsShare(milli=milli, memory_mib=mib):
            return f"mps:{percent(milli)}:{memory_text(mib)}"
        case TimeShare(replicas=replicas):
            return f"time:{replicas}"


def signal_number(text: str) -> int:
    """`USR1`, `SIGUSR1`, `10`."""
    written = text.strip().upper()
    if _DIGITS.fullmatch(written) and 0 < int(written) < signal.NSIG:
        return int(written)
    try:
        return signal.Signals[f"SIG{written.removeprefix('SIG')}"].value
    except KeyError:
        raise BadTextError(text, _SIGNALS) from None


def amount(text: str | int, meter: Meter) -> Amount:
    """How much a quota gives: `8`, `0.5`, `50%`, `512G`, in the unit that the meter counts."""
    written = str(text).strip()
    if found := _PERCENT.fullmatch(written):
        part = Decimal(found[1])
        if part > 100 or part % 1:
            raise BadTextError(text, "a whole percentage from `0%` to `100%`")
        return Percent(percent=int(part))
    match meter:
        case Meter.GPU:
            return milli(written, "GPUs")
        case Meter.CPU:
            return milli(written, "cores")
        case Meter.MEMORY:
            return memory_mib(text)
        case Meter.MIG:
            return whole(written)


def amount_text(given: Amount, meter: Meter) -> str:
    """As `amount` reads it."""
    if isinstance(given, Percent):
        return f"{given.percent}%"
    match meter:
        case Meter.GPU | Meter.CPU:
            return thousandths(given)
        case Meter.MEMORY:
            return memory_text(given)
        case Meter.MIG:
            return str(given)


def milli(text: str | int, noun: str) -> int:
    """`8`, `0.5`, `1.142`: a number of things, in thousandths."""
    return _scaled(text, places=3, accepted=f"a number of {noun} such as `8` or `0.5`")


def micros(text: str | int) -> int:
    """`2.50`: money, in millionths."""
    return _scaled(text, places=6, accepted="a price such as `2.50`")


def micros_text(money: int) -> str:
    """As `micros` reads it: `2.5`."""
    units, part = divmod(money, 1_000_000)
    return f"{units}.{part:06}".rstrip("0") if part else str(units)


def whole(text: str | int) -> int:
    """`8`, and nothing below zero."""
    written = str(text).strip()
    if _DIGITS.fullmatch(written) and int(written) <= MOST_UNITS:
        return int(written)
    raise BadTextError(text, "a whole number such as `8`")


def _bounded(span: int, text: str | int) -> Duration:
    if span > LONGEST:
        raise BadTextError(text, f"{_SPANS}, and no more than {duration_text(LONGEST)}")
    return Duration(span)


def _by_clock(found: re.Match[str]) -> int:
    """Slurm's forms: with days the first number is hours, without them the last is seconds."""
    numbers = [int(each) for each in found["clock"].split(":")]
    if found["days"] is None:
        numbers = [0] * (3 - len(numbers)) + numbers
    hours, minutes, seconds = numbers + [0] * (3 - len(numbers))
    days = int(found["days"] or 0)
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND


def _part(number: str, unit: str) -> int:
    return int((Decimal(number) * _LENGTHS[unit]).to_integral_value(ROUND_CEILING))


def _mps(rest: str, text: str) -> MpsShare:
    """A thread percentage has one digit after the point at most: thousandths of a GPU."""
    part, _, memory = rest.partition(":")
    found = _PERCENT.fullmatch(part)
    share = Decimal(found[1]) * 10 if found else Decimal(0)
    mib = memory_mib(memory) if memory else 0
    if not 0 < share <= WHOLE_GPU_MILLI or share % 1 or (":" in rest and not mib):
        raise BadTextError(text, _SLICES)
    return MpsShare(milli=int(share), memory_mib=mib)


def _scaled(text: str | int, *, places: int, accepted: str) -> int:
    written = str(text).strip()
    if not _NUMBER.fullmatch(written) or Decimal(written) > MOST_UNITS:
        raise BadTextError(text, accepted)
    scaled = Decimal(written).scaleb(places)
    if scaled % 1:
        raise BadTextError(text, f"{accepted}, with at most {places} digits after the point")
    return int(scaled)


_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)

_LENGTHS = {
    "ms": 1,
    "s": SECOND,
    "m": MINUTE,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
    "w": 7 * DAY,
}
_SHOWN_LENGTHS = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1))

_MIB = {
    "k": Decimal(1) / 1_024,
    "m": Decimal(1),
    "g": Decimal(1_024),
    "t": Decimal(1_024**2),
    "p": Decimal(1_024**3),
}
_SHOWN_SIZES = (("T", 1_024**2), ("G", 1_024), ("M", 1))

# Twenty digits are more than any bound below; without an end, a long number costs real time.
_N = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
_U = "ms|min|[smhdw]"
_DIGITS = re.compile(r"[0-9]{1,20}")
_NUMBER = re.compile(_N)
_PERCENT = re.compile(rf"({_N})\s*%")
_PART = re.compile(rf"({_N})\s*({_U})")
_SPAN = re.compile(rf"(?:{_N}\s*(?:{_U})\s*){{1,8}}", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:(?P<days>\d{1,6})-(?=\d)|(?=\d+:))(?P<clock>\d{1,6}(?::\d{1,2}){0,2})", re.ASCII
)
_MEMORY = re.compile(rf"(?P<number>{_N})\s*(?:(?P<unit>[kmgtp])(?:i?b)?)?", re.IGNORECASE)
_FROM_NOW = re.compile(r"now(?:\s*\+\s*(?P<later>.+))?", re.IGNORECASE)
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?",
    re.IGNORECASE | re.ASCII,
)
_PROFILE = re.compile(r"[0-9]{1,2}g\.[0-9]{1,4}gb(?:[+-][a-z]+(?:\.[a-z]+)?){0,2}")

_ALONE = "; digits alone are seconds"
_SPANS = f"a time such as `90s`, `45m`, `1h30m`, `7d` or `1-12:00:00`{_ALONE}"
_MEMORIES = "memory such as `512M`, `16G` or `1.5T`; digits alone are MiB"
_INSTANTS = "an instant such as `2026-12-01T08:00:00Z`, `2026-12-01T08:00` (local), or `now+2h`"
_SLICES = "a slice such as `mig:1g.5gb`, `mps:25%`, `mps:25%:8G` or `time:4`"
_SIGNALS = "a signal such as `USR1`, `SIGTERM` or `10`"
