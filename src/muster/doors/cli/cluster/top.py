"""`muster top`: watch the cluster. Events say when to look again, a clock how often at most."""

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from muster.api.pages import JobFilter
from muster.doors.cli.cluster.top_view import Board, View, frame
from muster.doors.cli.options import colour_option, example
from muster.doors.cli.screen.printing import say_lines
from muster.doors.cli.screen.screen import Screen, is_terminal, terminal_size
from muster.doors.cli.screen.terminal import write_all
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
PAGE_KEYS = {b"\x1b[5~": -1, b"\x1b[6~": 1}


@click.command(epilog=example("muster top", "muster top --once"))
@click.option("--once", is_flag=True, help="Print it once and end.")
@colour_option
@click.pass_obj
def top(call: Call, *, once: bool) -> int:
    """Watch the cluster: jobs, nodes or queues, drawn anew when something happens.

    Keys: j jobs, n nodes, u queues, up and down to scroll, q to quit.
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
    """The view, how far it is scrolled, and when it was last drawn."""

    def __init__(self, call: Call, woken: int) -> None:
        self._call = call
        self._woken = woken
        self._keyboard = sys.stdin.fileno()
        self._view = View.JOBS
        self._skipped = 0
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
        drawn = frame(_board(self._call, self._view), screen, skipped=self._skipped)
        text = "\x1b[H" + "\x1b[K\r\n".join(drawn) + "\x1b[K\x1b[J"
        write_all(sys.stdout.fileno(), text.encode())

    def _wait(self, drawn_at: float) -> None:
        """Until there is reason to draw: a key, something that happened, or a long time."""
        until = drawn_at + SLOWEST_S
        watched = [self._keyboard, self._woken]
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select(watched, [], [], left)
            if self._keyboard in ready:
                self._press(os.read(self._keyboard, 64))
                return
            if self._woken in ready:
                os.read(self._woken, 65_536)
                until = min(until, drawn_at + QUICKEST_S)

    def _press(self, key: bytes) -> None:
        page = max(terminal_size(sys.stdout.fileno()).lines - 6, 1)
        if key in {b"q", b"Q", b""}:
            self._wants_to_leave = True
        elif key in {view.value.encode() for view in View}:
            self._view, self._skipped = View(key.decode()), 0
        elif key in UP_KEYS:
            self._skipped = max(self._skipped - 1, 0)
        elif key in DOWN_KEYS:
            self._skipped += 1
        elif key in PAGE_KEYS:
            self._skipped = max(self._skipped + PAGE_KEYS[key] * page, 0)


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
