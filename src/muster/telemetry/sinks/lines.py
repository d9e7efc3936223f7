"""One line that is sent to whoever gathers logs (pure)."""

import re
from enum import StrEnum

from muster.model.value import Value

LONGEST = 65_536
"""So many characters of a line are sent; the rest of it is cut off."""


class LineKind(StrEnum):
    """Whose line it is."""

    CONTROLLER = "controller"
    JOB = "job"


class Line(Value, gc=False):
    """What was written, when, and by whom.

    level, cluster, queue: few values, by which lines are found. fields: whatever else is known.
    """

    at_ns: int
    text: str
    kind: LineKind
    level: str = ""
    cluster: str = ""
    queue: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """About so many bytes in memory and on the wire."""
        return len(self.text) + 200


_SECRETS = (
    (re.compile(r"(mst_[0-9a-f]{8}_)[A-Za-z0-9_-]{20,}"), r"\1..."),
    (
        re.compile(r"(?i)(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)[^\s\"']+"),
        r"\1...",
    ),
)
"""Tokens of Muster, and headers that carry any."""


def cleaned(text: str) -> str:
    """What may leave this machine of a line: no tokens, and not too much of it."""
    text = whole(text[:LONGEST])
    # Most lines have none: looking for a word is much quicker than two patterns.
    if "mst_" in text or "uthorization" in text or "UTHORIZATION" in text:
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
    return text


def whole(text: str) -> str:
    """Text that all can read: what is no whole Unicode would spoil what it is sent in."""
    return text if text.isprintable() else text.encode("utf-8", "replace").decode("utf-8")
