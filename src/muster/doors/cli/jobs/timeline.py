"""What was measured of a job, what happened to it and what it wrote last, on one axis."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from muster.api.diagnosis import TimelineDocument
from muster.doors.cli.screen.screen import BOLD
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.surroundings import Call

STEPS = 24
"""As many as fit a screen with what happened meanwhile."""


class Step(NamedTuple):
    """One row: what was measured in one step."""

    at: datetime
    clock: str
    cause: str
    values: dict[str, int | None]


def timeline_lines(found: TimelineDocument, call: Call) -> Iterator[str]:
    """Rows of what was measured, with what happened between them, and the log's end."""
    screen, moment = call.screen, call.moment
    steps = _steps(found, call)
    rows = list(lines(steps, COLUMNS, screen)) if steps else []
    events = list(found.events)
    if rows:
        yield rows[0]
    else:
        yield "Nothing was measured of this attempt minute by minute."
    for step, row in zip(steps, rows[1:], strict=False):
        while events and datetime.fromisoformat(events[0].at) < step.at:
            yield f"{moment.near(events[0].at)}  {events.pop(0).text}"
        yield row
    for event in events:
        yield f"{moment.near(event.at)}  {event.text}"
    if found.ending is not None:
        yield ""
        yield screen.paint(f"It ended badly: {found.ending.text}.", BOLD)
    if found.log:
        yield ""
        yield screen.paint("The last that it wrote:", BOLD)
        yield from (f"  {line}" for line in found.log)


def _steps(found: TimelineDocument, call: Call) -> list[Step]:
    if found.start is None:
        return []
    begin = datetime.fromisoformat(found.start)
    return [
        Step(
            at=(at := begin + timedelta(seconds=number * found.step_seconds)),
            clock=call.moment.near(at.isoformat()),
            cause=cause,
            values={name: column[number] for name, column in found.values.items()},
        )
        for number, cause in enumerate(found.causes)
        if cause is not None
    ]


def _percent(name: str) -> "Column[Step]":
    def cell(step: Step) -> str:
        value = step.values.get(name)
        return "-" if value is None else f"{value}%"

    return Column(TITLES[name], cell, "right")


def _heat(step: Step) -> str:
    value = step.values.get("temperature")
    return "-" if value is None else f"{value}C"


TITLES = {
    "busy": "BUSY",
    "sm": "SM",
    "memory": "GPU MEM",
    "power": "POWER",
    "cpu": "CPU",
    "host_memory": "MEMORY",
    "io": "DISK",
}

COLUMNS: tuple[Column[Step], ...] = (
    Column("TIME", lambda step: step.clock),
    Column("CAUSE", lambda step: step.cause),
    *(_percent(name) for name in ("busy", "sm", "memory")),
    Column("HEAT", _heat, "right"),
    *(_percent(name) for name in ("power", "cpu", "host_memory", "io")),
)
