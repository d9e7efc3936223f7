"""Schedules as cron writes them: five fields, or a word such as `@daily`."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.model.errors import MusterError
from muster.model.value import HOUR, MINUTE, SECOND, Duration, Instant, Value

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
UNITS = {
    "ns": 1e-6,
    "us": 1e-3,
    "µs": 1e-3,
    "ms": 1,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
MOST_YEARS = 5
"""A schedule that names no time within so many years names none at all."""

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


class ScheduleError(MusterError):
    """Whoever wrote the schedule must mend it."""


class _Bounds(Value):
    """What a field may be. names: words that stand for numbers."""

    least: int
    most: int
    names: tuple[str, ...] = ()


_MINUTES = _Bounds(least=0, most=59)
_HOURS = _Bounds(least=0, most=23)
_MONTH_DAYS = _Bounds(least=1, most=31)
_MONTHS = _Bounds(least=1, most=12, names=tuple(MONTHS))
_WEEK_DAYS = _Bounds(least=0, most=6, names=tuple(DAYS))


class Schedule(Value):
    """When something is to happen, in one time zone.

    every: as often as this, whatever the clock shows; the fields are empty then.
    any_month_day, any_week_day: a star, so that the other one alone decides.
    """

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    week_days: frozenset[int] = frozenset()
    any_month_day: bool = False
    any_week_day: bool = False
    every: Duration | None = None
    zone: str = ""

    def after(self, moment: Instant) -> Instant | None:
        """The first time after an instant; None when there is none for years."""
        if self.every is not None:
            return Instant((moment + self.every) // SECOND * SECOND)
        zone = time_zone(self.zone)
        at = datetime.fromtimestamp(moment // MINUTE * 60, tz=UTC) + timedelta(minutes=1)
        last = at + timedelta(days=366 * MOST_YEARS)
        while at < last:
            later = self._later(at, at.astimezone(zone))
            if later is None:
                return Instant(int(at.timestamp()) * SECOND)
            at = later
        return None

    def _later(self, at: datetime, local: datetime) -> datetime | None:
        """The next moment worth a look; None if this one is right.

        Hours and minutes pass as they really do, days as the calendar says.
        """
        if local.month not in self.months:
            year, month = (
                (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
            )
            return datetime(year, month, 1, tzinfo=local.tzinfo).astimezone(UTC)
        if not self._is_day(local):
            midnight = local.replace(hour=0, minute=0)
            following = (midnight + timedelta(days=1)).replace(fold=0)
            return max(following.astimezone(UTC), at + timedelta(minutes=1))
        if local.hour not in self.hours:
            return at + timedelta(minutes=60 - local.minute)
        if local.minute not in self.minutes:
            return at + timedelta(minutes=1)
        return None

    def _is_day(self, local: datetime) -> bool:
        by_month = local.day in self.month_days
        by_week = local.isoweekday() % 7 in self.week_days
        if self.any_month_day or self.any_week_day:
            return by_month and by_week
        return by_month or by_week


def time_zone(name: str) -> tzinfo:
    """A time zone by its name; UTC where none is named. ScheduleError if there is no such zone."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def parsed(text: str, zone: str = "") -> Schedule:
    """What a schedule means; ScheduleError says what is wrong with it."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith("@every "):
        return Schedule(every=_duration(text.removeprefix("@every ")), zone=zone)
    if text.startswith("@") and text not in WORDS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = WORDS.get(text, text).split()
    if len(fields) != 5:
        told = " ".join(fields)
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{told}]")
    minutes, hours, month_days, months, week_days = fields
    return Schedule(
        minutes=_field(minutes, _MINUTES),
        hours=_field(hours, _HOURS),
        month_days=_field(month_days, _MONTH_DAYS),
        months=_field(months, _MONTHS),
        week_days=_field(week_days, _WEEK_DAYS),
        any_month_day=_is_star(month_days),
        any_week_day=_is_star(week_days),
        zone=zone,
    )


def _field(text: str, bounds: _Bounds) -> frozenset[int]:
    found: set[int] = set()
    for each in filter(None, text.split(",")):
        found.update(_range(each, bounds))
    return frozenset(found)


def _is_star(text: str) -> bool:
    return any(each.partition("/")[0] in {"*", "?"} for each in text.split(","))


def _range(text: str, bounds: _Bounds) -> range:
    """`*`, `5`, `1-5`, `*/10`, `1-30/5` or `5/15`."""
    span, *steps = text.split("/")
    first, *ends = span.split("-")
    if len(ends) > 1:
        raise ScheduleError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    if first in {"*", "?"}:
        start, end = bounds.least, bounds.most
    else:
        start = _number(first, bounds)
        end = _number(ends[0], bounds) if ends else start
        if steps and not ends:
            end = bounds.most
    step = _number(steps[0], _Bounds(least=0, most=0)) if steps else 1
    if start < bounds.least:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.least}): {text}")
    if end > bounds.most:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.most}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step)


def _number(text: str, bounds: _Bounds) -> int:
    if text.lower() in bounds.names:
        return bounds.names.index(text.lower()) + bounds.least
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        why = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ScheduleError(f"failed to parse int from {text}: {why}")
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _duration(text: str) -> Duration:
    if not text or _DURATION.sub("", text):
        raise ScheduleError(
            f'failed to parse duration @every {text}: time: invalid duration "{text}"'
        )
    total = sum(float(amount) * UNITS[unit] for amount, unit in _DURATION.findall(text))
    return Duration(max(SECOND, int(total) // SECOND * SECOND))
