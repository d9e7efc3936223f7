"""Spans of time as Prometheus writes them: `5m`, `1h30m`, `250ms`."""

import re

_UNITS_MS = {
    "y": 31_536_000_000,
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}

DURATION = re.compile(
    r"(?=\d)(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?"
)
"""Every unit once at most, the largest first."""


def milliseconds(text: str) -> int | None:
    """How long that is; None where the text is no duration."""
    found = DURATION.fullmatch(text)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS_MS.values(), strict=True)
    return sum(int(count) * unit for count, unit in parts if count)


def duration_text(span_ms: int) -> str:
    """`90000` as `1m30s`."""
    if not span_ms:
        return "0s"
    said, left = "", span_ms
    for unit, size in _UNITS_MS.items():
        count, left = divmod(left, size)
        said += f"{count}{unit}" if count else ""
    return said
