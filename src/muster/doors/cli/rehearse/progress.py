"""A line on the terminal that says how far a simulation is; nothing where nobody looks."""

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from muster.doors.cli.screen.screen import is_terminal

if TYPE_CHECKING:
    from muster.simulator.rehearsal import Progress

EVERY_S = 0.1
WIDTH = 24
CLEAR = "\r\x1b[K"


class Bar:
    """Use it in a `with`: the line is gone afterwards."""

    def __init__(self, environ: Mapping[str, str], label: str = "") -> None:
        self._shown = is_terminal(sys.stderr) and environ.get("TERM") != "dumb"
        self._label = f"{label}  " if label else ""
        self._began = time.monotonic()
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._last:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def watch(self, progress: "Progress") -> None:
        """So far it is."""
        now = time.monotonic()
        if not self._shown or now - self._last < EVERY_S:
            return
        self._last = now
        sys.stderr.write(CLEAR + self._label + bar_text(progress, now - self._began))
        sys.stderr.flush()


def bar_text(progress: "Progress", took_s: float) -> str:
    """`########........  2,041 of 8,152 jobs  day 12  1,340 jobs/s`."""
    part = progress.ended / progress.jobs if progress.jobs else 0
    full = round(WIDTH * part)
    rate = round(progress.ended / took_s) if took_s else 0
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=progress.now)
    # Traces that count from zero have no date worth showing.
    day = f"day {progress.now // 86_400_000}" if when.year == 1970 else f"{when:%Y-%m-%d}"
    return (
        f"{'#' * full}{'.' * (WIDTH - full)}  {progress.ended:,} of {progress.jobs:,} jobs  "
        f"{day}  {rate:,} jobs/s"
    )
