"""`muster top`: watch the cluster. Events say when to look again, a clock how often at most."""

import os
import re
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from muster.api.jobs import JobDocument
from muster.api.pages import JobFilter
from muster.doors.cli.cluster.top_view import Board, Cursor, View, chosen_jobs, frame
from muster.doors.cli.jobs.explain import explained
from muster.doors.cli.jobs.named import label_of
from muster.doors.cli.options import colour_option, example
from muster.doors.cli.screen.printing import say_lines
from muster.doors.cli.screen.screen import Screen, is_terminal, terminal_size
from muster.doors.cli.screen.terminal import write_all
from muster.doors.cli.screen.text import clean_lines
from muster.doors.cli.surroundings import Call
from muster.model.errors import MusterError
from muster.model.value import replace

if TYPE_CHECKING:
    from muster.client.calls import Client

QUICKEST_S, SLOWEST_S = 0.5, 5.0
MOST_JOBS = 500
BEGUN = ("starting", "running", "suspended", "stopping")
WAITING = ("pending", "held")

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
UP_KEYS, DOWN_KEYS = (b"\x1b[A", b"k"), (b"\x1b[B", b" ")
ENTER_KEYS, ERASE_KEYS, ESCAPE = (b"\r", b"\n"), (b"\x7f", b"\x08"), b"\x1b"
KEY = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
LAST_LINES = 200
PAGE_KEYS = {b"\x1b[5~": -1, b"\x1b[6~": 1}


@click.command(epilog=example("muster top", "muster top --once"))
@click.option("--once", is_flag=True, help="Print it once and end.")
@colour_option
@click.pass_obj
def top(call: Call, *, once: bool) -> int:
    """Watch the cluster: jobs, nodes or queues, drawn anew when something happens.

    Keys: j jobs, n nodes, u queues, up and down to choose a job, e to explain it, l for the last of
    what it wrote, c to cancel it, / to show only jobs with some words, q to quit.
    """
    if once or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        screen = replace(call.screen, height=MOST_JOBS)
        lines = frame(_board(call, View.JOBS), screen)
        say_lines([line for line in lines[:-1] if line])
        return 0
    with _woken(call) as woken, _drawing(sys.stdin.fileno()):
        _Watch(call, woken).run()
    return 0


class _Watch:
    """The view, the job that is chosen, and the words that jobs must have."""

    def __init__(self, call: Call, woken: int) -> None:
        self._call = call
        self._woken = woken
        self._keyboard = sys.stdin.fileno()
        self._view = View.JOBS
        self._row = 0
        self._words = ""
        self._asks = ""
        self._answer: Callable[[bytes], None] | None = None
        self._jobs: tuple[JobDocument, ...] = ()
        self._page: list[str] = []
        self._wants_to_leave = False

    def run(self) -> None:
        """Until the user leaves."""
        while not self._wants_to_leave:
            drawn_at = time.monotonic()
            self._draw()
            self._wait(drawn_at)

    def _draw(self) -> None:
        size = terminal_size(sys.stdout.fileno())
        colour = self._call.screen.colour
        screen = Screen(width=size.columns, height=size.lines, colour=colour)
        drawn = self._page_on(screen) if self._page else self._frame(screen)
        text = "\x1b[H" + "\x1b[K\r\n".join(drawn) + "\x1b[K\x1b[J"
        write_all(sys.stdout.fileno(), text.encode())

    def _frame(self, screen: Screen) -> list[str]:
        board = _board(self._call, self._view)
        self._jobs = chosen_jobs(board.jobs, self._words)
        self._row = min(self._row, max(len(self._jobs) - 1, 0)) if self._jobs else self._row
        cursor = Cursor(row=self._row, words=self._words, asks=self._asks)
        return frame(replace(board, jobs=self._jobs), screen, cursor)

    def _page_on(self, screen: Screen) -> list[str]:
        """The end of a long text, and how to leave it."""
        room = max(screen.height - 1, 1)
        return [*(line[: screen.width] for line in self._page[-room:]), "any key: back"]

    def _wait(self, drawn_at: float) -> None:
        """Until there is reason to draw: a key, something that happened, or a long time."""
        until = drawn_at + SLOWEST_S
        watched = [self._keyboard, self._woken]
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select(watched, [], [], left)
            if self._keyboard in ready:
                # Several keys may have been pressed since; none of them may be lost.
                for key in KEY.findall(os.read(self._keyboard, 64)) or [b""]:
                    self._press(key)
                return
            if self._woken in ready:
                os.read(self._woken, 65_536)
                until = min(until, drawn_at + QUICKEST_S)

    def _press(self, key: bytes) -> None:
        page = max(terminal_size(sys.stdout.fileno()).lines - 6, 1)
        acts = {b"e": self._explain, b"l": self._log, b"c": self._ask_to_cancel}
        if self._page:
            self._page = []
        elif self._answer is not None:
            self._answer(key)
        elif key in {b"q", b"Q", b""}:
            self._wants_to_leave = True
        elif key in {view.value.encode() for view in View}:
            self._view, self._row = View(key.decode()), 0
        elif key in UP_KEYS:
            self._row = max(self._row - 1, 0)
        elif key in DOWN_KEYS:
            self._row += 1
        elif key in PAGE_KEYS:
            self._row = max(self._row + PAGE_KEYS[key] * page, 0)
        elif self._view is View.JOBS and key == b"/":
            self._ask(f"show jobs with: {self._words}", self._filter)
        elif self._view is View.JOBS and key in acts and self._row < len(self._jobs):
            acts[key](self._jobs[self._row])

    def _ask(self, text: str, answer: "Callable[[bytes], None]") -> None:
        self._asks, self._answer = text, answer

    def _filter(self, key: bytes) -> None:
        """The words as they are typed; Enter is enough, Escape takes them away."""
        if key in ENTER_KEYS or key == ESCAPE:
            self._words = "" if key == ESCAPE else self._words
            self._asks, self._answer = "", None
            return
        typed = key.decode(errors="ignore")
        self._words = self._words[:-1] if key in ERASE_KEYS else self._words + typed
        self._asks = f"show jobs with: {self._words}"

    def _ask_to_cancel(self, job: JobDocument) -> None:
        def cancelled() -> list[str]:
            return list(self._call.client.cancel([job.id]).failed.values())

        def answer(key: bytes) -> None:
            self._asks, self._answer = "", None
            if key in {b"y", b"Y"}:
                self._tried(cancelled)

        self._ask(f"cancel job {label_of(job)} ({job.name})? y/n", answer)

    def _explain(self, job: JobDocument) -> None:
        self._tried(lambda: explained(self._call, job.id))

    def _log(self, job: JobDocument) -> None:
        def last() -> list[str]:
            with closing(self._call.client.log(job.id, tail=LAST_LINES)) as parts:
                written = b"".join(parts).decode(errors="replace")
            return clean_lines(written).splitlines() or ["It has written nothing."]

        self._tried(last)

    def _tried(self, ask: "Callable[[], list[str]]") -> None:
        """What is said on a page of its own; a refusal is said there as well."""
        try:
            self._page = ask()
        except MusterError as error:
            self._page = [clean_lines(str(error))]


def _board(call: Call, view: View) -> Board:
    """Only what the view shows is asked for."""
    board = Board(status=call.client.status(), moment=call.moment, view=view)
    match view:
        case View.JOBS:
            begun = call.client.jobs(JobFilter(states=BEGUN, limit=MOST_JOBS)).jobs
            waiting = call.client.jobs(JobFilter(states=WAITING, limit=MOST_JOBS)).jobs
            return replace(board, jobs=(*begun, *waiting))
        case View.NODES:
            return replace(board, nodes=tuple(call.client.nodes()))
        case View.QUEUES:
            paths = sorted(call.client.queues(), key=lambda queue: queue.path.split("/"))
            return replace(board, queues=tuple(paths))


@contextmanager
def _woken(call: Call) -> Generator[int]:
    """A pipe with a byte in it whenever something happened."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    # With a client of its own: a client serves one thread. It ends with the process.
    thread = threading.Thread(target=_listen, args=(call.around.connect(), wake), daemon=True)
    thread.start()
    try:
        yield woken
    finally:
        os.close(woken)


def _listen(client: "Client", wake: int) -> None:
    try:
        with closing(client), closing(client.events()) as happening:
            for _ in happening:
                _wake(wake)
    except (MusterError, OSError):
        # Nobody listens any more, or nobody speaks: the clock still draws, and then tells.
        return


def _wake(wake: int) -> None:
    try:
        os.write(wake, b".")
    except BlockingIOError:
        return  # it is full, so whoever reads it will be woken


@contextmanager
def _drawing(keyboard: int) -> Generator[None]:
    """The terminal's other screen, without echo; as it was, afterwards."""
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    write_all(sys.stdout.fileno(), ENTER.encode())
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        write_all(sys.stdout.fileno(), LEAVE.encode())
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
