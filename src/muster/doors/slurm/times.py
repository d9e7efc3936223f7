"""Times as Slurm reads and writes them. Pure; `now` and the zone are given."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant

ENDLESS = frozenset({"unlimited", "infinite", "-1"})

_MOST_DAYS = 36_500

ENDLESS_LIMIT = Duration(_MOST_DAYS * DAY)
"""Stands for no limit at all, where no limit would mean the usual one."""

_CLOCK = re.compile(r"([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,4})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_NOW = re.compile(r"now(?:\s*([+-])\s*([0-9]{1,12})\s*([a-z]*))?")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*([ap]m)?")
_ISO = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_SLASHED = re.compile(r"([0-9]{1,2})[/.]([0-9]{1,2})(?:[/.]([0-9]{2}|[0-9]{4}))?")
_JOINED = re.compile(r"([0-9]{2})([0-9]{2})([0-9]{2})?")
_EPOCH = re.compile(r"uts([0-9]{1,12})")
_HOURS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16}
_UNITS = (
    ("seconds", SECOND),
    ("minutes", MINUTE),
    ("hours", HOUR),
    ("days", DAY),
    ("weeks", Duration(7 * DAY)),
)


class BadTimeError(ValueError):
    """The text is no time; `place` is where reading it stopped."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.place = place


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
    written = text.strip().lower()
    if found := _NOW.fullmatch(written):
        return _from_now(found, now, text)
    if found := _EPOCH.fullmatch(written):
        return Instant(int(found[1]) * 1_000)
    try:
        at = _by_calendar(written, _local(now, zone), past=past)
    except BadTimeError as bad:
        raise BadTimeError(text, max(0, text.lower().find(bad.text))) from bad
    if zone is None:
        # Another day may have another offset from UTC.
        at = at.replace(tzinfo=None).astimezone()
    return Instant(int(at.timestamp()) * 1_000)


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


def _from_now(found: re.Match[str], now: Instant, text: str) -> Instant:
    sign, count, unit = found.groups()
    if sign is None:
        return now
    length = next((length for name, length in _UNITS if unit and name.startswith(unit)), None)
    if unit and length is None:
        raise BadTimeError(text, found.start(3))
    later = int(count) * (length or SECOND)
    return Instant(max(0, now + later if sign == "+" else now - later))


def _by_calendar(written: str, today: datetime, *, past: bool) -> datetime:
    """A day, a time of day, or both in either order."""
    day: datetime | None = None
    clock: tuple[int, int, int] | None = None
    for word in _words(written):
        if clock is None and (read := _clock(word)) is not None:
            clock = read
        elif day is None and (found := _day(word, today, past=past)) is not None:
            day = found
        else:
            raise BadTimeError(word)
    if day is None and clock is None:
        raise BadTimeError(written)
    hour, minute, second = clock or (0, 0, 0)
    at = (day or today).replace(hour=hour, minute=minute, second=second, microsecond=0)
    if day is None and at <= today and not past:
        at += timedelta(days=1)
    return at


def _words(written: str) -> list[str]:
    joined = re.sub(r"\s+([ap]m)\b", r"\1", written)
    return [word for word in re.split(r"\s+|(?<=[0-9])t(?=[0-9])", joined) if word]


def _clock(word: str) -> tuple[int, int, int] | None:
    if word in _HOURS:
        return _HOURS[word], 0, 0
    found = _TIME.fullmatch(word)
    if found is None:
        return None
    hour, minute, second = (int(each or 0) for each in found.groups()[:3])
    if found[4] is not None:
        if hour > 12:
            return None
        hour = hour % 12 + (12 if found[4] == "pm" else 0)
    return (hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _day(word: str, today: datetime, *, past: bool) -> datetime | None:
    if word in {"today", "tomorrow"}:
        return today + timedelta(days=word == "tomorrow")
    if found := _ISO.fullmatch(word):
        year, month, day = (int(each) for each in found.groups())
    elif found := _SLASHED.fullmatch(word) or _JOINED.fullmatch(word):
        month, day = int(found[1]), int(found[2])
        is_ahead = (month, day) > (today.month, today.day)
        year = int(found[3]) if found[3] else today.year - (past and is_ahead)
        year += 2_000 if year < 100 else 0
    else:
        return None
    try:
        return today.replace(year=year, month=month, day=day)
    except ValueError:
        return None
