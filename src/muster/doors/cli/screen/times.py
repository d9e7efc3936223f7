"""Instants and spans of time as people read them."""

from datetime import datetime, timedelta, tzinfo

from muster.model.value import Value


class Moment(Value):
    """Now, and the zone in which people here count."""

    now: datetime

    @property
    def zone(self) -> tzinfo | None:
        """The zone of the user."""
        return self.now.tzinfo

    @property
    def zone_name(self) -> str:
        """`CET`, `UTC`, `UTC+01:00`."""
        return self.now.tzname() or "local time"

    def titled(self, title: str) -> str:
        """The title of a column of times, with the zone that they are in."""
        return f"{title} ({self.zone_name})"

    def since(self, text: str | None) -> float:
        """Seconds that have passed since an instant in RFC 3339; zero if it is not known."""
        if text is None:
            return 0
        return (self.now - datetime.fromisoformat(text)).total_seconds()

    def lasted(self, began: str | None, ended: str | None) -> str:
        """`1:02:03` from one to the other, or so far; `-` for what never began."""
        return "-" if began is None else clock_span(self.since(began) - self.since(ended))

    def local(self, text: str | None) -> str:
        """`2026-11-15 22:24:36` on the user's clock; `-` if it is not known."""
        if text is None:
            return "-"
        there = datetime.fromisoformat(text).astimezone(self.zone)
        return there.strftime("%Y-%m-%d %H:%M:%S")

    def near(self, text: str | None) -> str:
        """Like `local`, but only the time of day when the day is today."""
        full = self.local(text)
        return full[11:] if full.startswith(self.now.strftime("%Y-%m-%d")) else full

    def between(self, early: str, late: str) -> str:
        """`14:10 to 15:30`, with days where it is not today; to the minute, which is enough."""
        first, last = self.near(early)[:-3], self.near(late)[:-3]
        same_day = len(first) > 5 and first[:10] == last[:10]
        return f"{first} to {last[11:] if same_day else last}"

    def relative(self, text: str | None) -> str:
        """`22:24:36 CET (in 5m)`, `22:24:36 CET (3h ago)`; `-` if it is not known."""
        if text is None:
            return "-"
        passed = self.since(text)
        span = short_span(abs(passed))
        far = f"{span} ago" if passed >= 0 else f"in {span}"
        return f"{self.near(text)} {self.zone_name} ({far})"


def clock_span(seconds: float) -> str:
    """`4:05`, `1:02:03`, `2-01:02:03`: exact, as long as it runs."""
    whole = int(seconds) if seconds > 0 else 0
    minutes, secs = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{secs:02}"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}:{minutes:02}:{secs:02}"
    return f"{hours // 24}-{hours % 24:02}:{minutes:02}:{secs:02}"


def short_span(seconds: float) -> str:
    """`45s`, `5m`, `3h20m`, `2d4h`: what matters of it."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m"
    if whole < 86_400:
        return _two_parts(whole // 3_600, "h", whole % 3_600 // 60, "m")
    return _two_parts(whole // 86_400, "d", whole % 86_400 // 3_600, "h")


def exact_span(seconds: int) -> str:
    """`90s` as `1m30s`: nothing is left out."""
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def hours(seconds: float) -> str:
    """GPU-seconds as GPU-hours: `0.25`."""
    return f"{seconds / 3_600:.2f}"


def back(now: datetime, text: str) -> datetime | None:
    """`today`, `yesterday`, or None for anything else."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match text.strip().lower():
        case "today":
            return midnight
        case "yesterday":
            return midnight - timedelta(days=1)
        case _:
            return None


def _two_parts(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
