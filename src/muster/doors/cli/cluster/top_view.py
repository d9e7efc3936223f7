"""What `muster top` shows, as lines of text: no terminal, no server."""

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from muster.api.jobs import JobDocument
from muster.api.site import NodeDocument, QueueDocument, StatusDocument
from muster.doors.cli.cluster.nodes import NODE_COLUMNS
from muster.doors.cli.cluster.queues import COLUMNS as QUEUE_COLUMNS
from muster.doors.cli.cluster.queues import queue_lines
from muster.doors.cli.cluster.status import counts
from muster.doors.cli.jobs.named import label_of
from muster.doors.cli.jobs.ps import job_columns
from muster.doors.cli.screen.screen import DIM, GREEN, YELLOW, Screen
from muster.doors.cli.screen.table import Column, lines
from muster.doors.cli.screen.text import number
from muster.doors.cli.screen.times import Moment
from muster.model.value import Value

T = TypeVar("T")

BAR_WIDTH = 24
REVERSED = 7
AROUND = 5
"""Lines that are no rows: two of head, one empty, the titles, the keys."""


class View(Enum):
    """What the rows are."""

    JOBS = "j"
    NODES = "n"
    QUEUES = "u"


class Board(Value):
    """Everything that a frame is made of. Only what the view shows needs to be there."""

    status: StatusDocument
    moment: Moment
    view: View = View.JOBS
    jobs: tuple[JobDocument, ...] = ()
    nodes: tuple[NodeDocument, ...] = ()
    queues: tuple[QueueDocument, ...] = ()


class Cursor(Value):
    """What the user chose. row: which of the rows, from 0; None where nobody can choose.

    words: rows without these are left out. asks: a question in place of the keys, if there is one.
    """

    row: int | None = None
    words: str = ""
    asks: str = ""


NOTHING_CHOSEN = Cursor()


def frame(board: Board, screen: Screen, cursor: Cursor = NOTHING_CHOSEN) -> list[str]:
    """The whole screen, no higher than it is."""
    head = [_summary(board, screen), _usage(board.status, screen), ""]
    rows = _rows(board, screen)
    room = max(screen.height - AROUND, 1)
    titles, body = rows[:1], rows[1:]
    chosen = -1 if cursor.row is None else min(cursor.row, len(body) - 1)
    start = min(max(chosen - room + 1, 0), max(len(body) - room, 0))
    shown = [
        screen.paint(line, REVERSED) if at == chosen else line
        for at, line in enumerate(body[start : start + room], start)
    ]
    last = cursor.asks or _keys(board, screen, cursor)
    return [*head, *titles, *shown, *[""] * (room - len(shown)), last]


def chosen_jobs(jobs: Sequence[JobDocument], words: str) -> tuple[JobDocument, ...]:
    """Jobs in which every word occurs: as name, user, queue, state, node or number."""
    wanted = words.lower().split()
    return tuple(job for job in jobs if all(word in _searched(job) for word in wanted))


def _searched(job: JobDocument) -> str:
    parts = (label_of(job), job.name, job.user, job.queue, job.state, *job.nodes)
    return " ".join(parts).lower()


def _summary(board: Board, screen: Screen) -> str:
    status = board.status
    clock = board.moment.now.strftime("%H:%M:%S")
    jobs = counts(status.jobs) or "no jobs"
    text = f"muster {status.version}  {clock}  nodes: {counts(status.nodes)}  jobs: {jobs}"
    return text if screen.width is None else text[: screen.width]


def _usage(status: StatusDocument, screen: Screen) -> str:
    part = status.gpus_used / status.gpus if status.gpus else 0
    full = round(part * BAR_WIDTH)
    bar = screen.paint("#" * full, GREEN if part < 1 else YELLOW) + "." * (BAR_WIDTH - full)
    mark = " (pretend)" if status.pretend else ""
    return f"GPUs [{bar}] {number(status.gpus_used)} of {status.gpus}{mark}, {part:.0%}"


def _rows(board: Board, screen: Screen) -> list[str]:
    match board.view:
        case View.JOBS:
            return lines(board.jobs, _narrow(job_columns(board.moment)), screen)
        case View.NODES:
            return lines(board.nodes, _narrow(NODE_COLUMNS), screen)
        case View.QUEUES:
            return lines(list(queue_lines(board.queues)), _narrow(QUEUE_COLUMNS), screen)


def _narrow(columns: Sequence[Column[T]]) -> list[Column[T]]:
    return [column for column in columns if not column.wide]


def _keys(board: Board, screen: Screen, cursor: Cursor) -> str:
    shown = "  ".join(_key(view, board.view) for view in View)
    acts = "  e explain  l logs  c cancel  / filter" if board.view is View.JOBS else ""
    words = f"  [{cursor.words}]" if cursor.words else ""
    return screen.paint(f"{shown}{acts}{words}  q quit", DIM)


def _key(view: View, now: View) -> str:
    name = view.name.lower()
    return f"[{view.value} {name}]" if view is now else f"{view.value} {name}"
