"""Times, spans and amounts as traces write them. Times without a zone are taken as UTC."""

from datetime import UTC, datetime

from muster.model.value import SECOND, Duration, Instant

_KIB = 1 / 1_024
_MIB_OF = {"K": _KIB, "M": 1.0, "G": 1_024.0, "T": 1_024.0**2, "P": 1_024.0**3}
_BYTES_OF = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NEVER = frozenset({"", "None", "Unknown", "N/A", "-1"})


def instant_s(seconds: str) -> Instant:
    """An instant given in seconds."""
    return Instant(round(float(seconds) * SECOND))


def span_s(seconds: str) -> Duration:
    """A span given in seconds; what is negative is nothing."""
    return Duration(max(0, round(float(seconds) * SECOND)))


def instant(text: str) -> Instant | None:
    """A date and time; None where the trace has none."""
    if text.strip() in _NEVER:
        return None
    found = datetime.fromisoformat(text.strip())
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    return Instant(round(zoned.timestamp() * SECOND))


def clock_span(text: str) -> Duration | None:
    """A span as `days-hours:minutes:seconds`, with as many parts as it needs."""
    days, has_days, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.replace(".", "", 1).isdecimal() for part in parts):
        return None
    if has_days:
        parts += ["0"] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + float(part)
    return Duration(round((int(days or 0) * 86_400 + seconds) * SECOND))


def memory_mib(text: str, *, bare: float = 1.0) -> int:
    """Memory as `64G`, `512Mi` or `1000M`; a bare number counts as so many MiB each."""
    stripped = text.strip().removesuffix("n").removesuffix("c")
    if stripped.endswith("i"):
        return round(float(stripped[:-2]) * _MIB_OF[stripped[-2]])
    if stripped[-1:].isalpha():
        return round(float(stripped[:-1]) * _MIB_OF[stripped[-1].upper()])
    return round(float(stripped or 0) * bare)


def kubernetes_mib(text: str) -> int:
    """Memory as Kubernetes writes it: `1Gi` is by 1,024, `1G` by 1,000, a bare number is bytes."""
    if text.endswith("i"):
        return memory_mib(text)
    unit = text[-1:] if text[-1:].isalpha() else ""
    count = float(text.removesuffix(unit) or 0)
    return round(count * _BYTES_OF.get(unit, 1) / 1_024**2)


def cpu_milli(text: str) -> int:
    """CPU as Kubernetes writes it: `500m`, or cores."""
    if text.endswith("m"):
        return int(text[:-1])
    return round(float(text or 0) * 1_000)
