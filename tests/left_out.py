"""What a run of the tests left out, because what they need is not on this machine."""

from collections import Counter
from collections.abc import Iterable

import pytest

_MARK = "there is no real "
"""So begin the reasons that everybody shall see who reads the end of a run."""


def left_out(reports: Iterable[object]) -> list[str]:
    """A line for each such reason, with how many tests it kept from running."""
    counts: Counter[str] = Counter(why for each in reports if (why := _reason(each)))
    return [f"NOT TESTED, {count} tests: {why}" for why, count in sorted(counts.items())]


def _reason(report: object) -> str:
    said = report.longrepr if isinstance(report, pytest.TestReport) else None
    why = str(said[2]).removeprefix("Skipped: ") if isinstance(said, tuple) else ""
    return why if why.startswith(_MARK) else ""
