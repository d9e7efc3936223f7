"""Times as Slurm reads and writes them. Pure; `now` and the zone are given."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from muster.doors.slurm.words import dates
from muster.doors.slurm.words.dates import BadTimeError, DateAndTime
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant

ENDLESS = frozenset({"unlimited", "infinite", "-1"})

_MOST_DAYS = 36_500

ENDLESS_LIMIT = Duration(_MOST_DAYS * DAY)
"""Stands for no limit at all, where no limit would mean the usual one."""

_CLOCK = re.compile(r"([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,4})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_EPOCH = re.compile(r"uts([0-9]{1,12})")


def limit(text: str) -> Duration | None:
    """`30`, `90:00`, `1:30:00`, `1-12`, `1-12:30:00`, in whole minutes; None has no end."""
    written = text.strip().lower()
    if written in ENDLESS:
        return None
    return Duration(-(-exact(written) // MINUTE) * MINUTE)


def exact(text: str) -> Duration:
    """The same forms, to the second."""
    seconds = _seconds(text.strip().lower())
    if seconds is None or seconds > _MOST_DAYS * 86_400:
        raise BadTimeError(text)
    return Duration(seconds * SECOND)


def short_text(span: Duration) -> str:
    """As squeue has it: `0:01`, `1:00:00`, `1-00:00:00`."""
    if span < SECOND:
        # So it is with everything that waits.
        return "0:00"
    days, hours, minutes, seconds = _parts(span)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def long_text(span: Duration) -> str:
    """As scontrol and sacct have it: `00:00:01`, `1-00:00:00`."""
    days, hours, minutes, seconds = _parts(span)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{days}-{clock}" if days else clock


def cpu_text(span: Duration) -> str:
    """As sacct has measured times: `00:01.250`, but whole seconds and hours are `01:00:01`."""
    if span >= HOUR or span % SECOND == 0:
        return long_text(span)
    minutes, rest = divmod(int(span), MINUTE)
    return f"{minutes:02}:{rest // 1_000:02}.{rest % 1_000:03}"


def instant_text(at: Instant, form: str = "", zone: tzinfo | None = None) -> str:
    """`2026-11-15T08:25:07` local time, or as SLURM_TIME_FORMAT wants it."""
    return _second_text(at // 1_000, form, zone)


@lru_cache(maxsize=65_536)
def _second_text(second: int, form: str, zone: tzinfo | None) -> str:
    """Lists name the same seconds again and again."""
    if form == "%s":
        return str(second)
    usual = not form or form in {"standard", "relative"}
    local = _local(Instant(1_000 * second), zone)
    return local.strftime("%Y-%m-%dT%H:%M:%S" if usual else form)


def heading_text(at: Instant, zone: tzinfo | None = None) -> str:
    """`Sun Nov 15 08:25:07 2026`: the line above long lists."""
    return _local(at, zone).strftime("%a %b %d %H:%M:%S %Y")


def instant(text: str, now: Instant, zone: tzinfo | None = None) -> Instant:
    """Everything that --begin and --deadline take: what is over today means tomorrow."""
    return _read(text, now, zone, past=False)


def past_instant(text: str, now: Instant, zone: tzinfo | None = None) -> Instant:
    """What sacct -S and -E take: times are today's, days without a year were the last of them."""
    return _read(text, now, zone, past=True)


def _read(text: str, now: Instant, zone: tzinfo | None, *, past: bool) -> Instant:
    if found := _EPOCH.fullmatch(text.strip().lower()):
        return Instant(int(found[1]) * 1_000)
    today = _local(now, zone)
    moment = dates.read(text, today)
    if moment.from_now is not None:
        return Instant(max(0, now + moment.from_now))
    at = _by_calendar(moment, today, past=past)
    if at is None:
        raise BadTimeError(text)
    if zone is None:
        # Another day may have another offset from UTC.
        at = at.replace(tzinfo=None).astimezone()
    return Instant(int(at.timestamp()) * 1_000)


def _by_calendar(moment: DateAndTime, today: datetime, *, past: bool) -> datetime | None:
    """When that is; None if no month has such a day."""
    day = today
    if moment.day is not None:
        year, month, number = moment.day
        is_ahead = (month, number) > (today.month, today.day)
        try:
            day = today.replace(
                year=year or today.year - (past and is_ahead), month=month, day=number
            )
        except ValueError:
            return None
    hour, minute, second = moment.clock or (0, 0, 0)
    at = day.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if moment.day is None and at <= today and not past:
        at += timedelta(days=1)
    return at


def _seconds(written: str) -> int | None:
    if found := _DAYS.fullmatch(written):
        days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
        return days * 86_400 + hours * 3_600 + minutes * 60 + seconds
    found = _CLOCK.fullmatch(written)
    if found is None:
        return None
    first, second, third = found.groups()
    if second is None:
        return int(first) * 60
    if third is None:
        return int(first) * 60 + int(second)
    return int(first) * 3_600 + int(second) * 60 + int(third)


def _parts(span: Duration) -> tuple[int, int, int, int]:
    seconds = max(0, int(span)) // 1_000
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    return days, hours, minutes, seconds


def _local(at: Instant, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at / 1_000, UTC).astimezone(zone)
