"""What comes for the visitors of a pod does not end who supervises it."""

import fcntl
import os
import socket
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hostile import visited
from hostile.test_steps import open_files
from local.here import Here
from muster.backends.local.attempt.spawner_client import reachable

LINES, TIMES, EACH = 8, 40, 200
HEAD, COUNT = struct.Struct("!I"), struct.Struct("i")


@pytest.fixture
def pod(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    visited.begin(here, monkeypatch)
    yield here
    visited.end(here)


def visitor(here: Here) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(10)
    with reachable(here.folder()) as short:
        made.connect(f"{short}/visits.sock")
    return made


def unread(visitor: socket.socket) -> int:
    """How much of what was sent was not taken yet."""
    (found,) = COUNT.unpack(fcntl.ioctl(visitor, termios.TIOCOUTQ, COUNT.pack(0)))
    return int(found)


def test_open_files_beside_messages_that_never_end_are_not_kept(pod: Here) -> None:
    """Once it has as many open as it may, a supervisor cannot even write down how the pod ends."""
    before = open_files(pod.supervisor())
    visitors = [visitor(pod) for _ in range(LINES)]
    with open(os.devnull, "rb") as null:
        for each in visitors:
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(each, [HEAD.pack(1 << 20)], [null.fileno()] * EACH)
                for _ in range(TIMES):
                    socket.send_fds(each, [b"x"], [null.fileno()] * EACH)

    pod.until(lambda: not any(map(unread, visitors)))
    assert open_files(pod.supervisor()) < before + 2 * EACH
    for each in visitors:
        each.close()


def test_unfinished_messages_do_not_fill_its_memory(pod: Here) -> None:
    """Each is as long as a message may be; all together are not kept."""
    almost = HEAD.pack(4 << 20) + b"x" * ((4 << 20) - 1)
    visitors = [visitor(pod) for _ in range(2 * LINES)]
    lost = 0
    for each in visitors:
        try:
            each.sendall(almost)
        except (BrokenPipeError, ConnectionResetError):
            lost += 1

    assert lost > 0
    for each in visitors:
        each.close()
