"""A job's terminal on ours: real pseudo-terminals at both ends of a real websocket."""

import os
import pty
import select
import signal
import termios
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from websockets.sync.client import unix_connect
from websockets.sync.server import ServerConnection, unix_serve

from muster.doors.cli.screen.terminal import Left, sit_at, size_message

PATIENCE_S = 10


@dataclass
class Job:
    """The other end: echoes in capitals, ends at `exit`, breaks at `break`."""

    heard: list[str | bytes] = field(default_factory=list[str | bytes])
    is_short: bool = False

    def talk(self, connection: ServerConnection) -> None:
        connection.send(b"hello")
        if self.is_short:
            return
        for message in connection:
            self.heard.append(message)
            if message == b"exit\r":
                return
            if message == b"break\r":
                connection.socket.close()
                return
            if isinstance(message, bytes):
                connection.send(message.upper())


@dataclass
class Person:
    """Somebody at a pseudo-terminal."""

    master: int
    seen: bytes = b""

    def types(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def sees(self, text: bytes) -> None:
        """Waits until it is on the screen."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} is not in {self.seen!r}"
            self.seen += os.read(self.master, 4_096)


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
def path(job: Job, tmp_path: Path) -> Iterator[str]:
    place = str(tmp_path / "s")
    with unix_serve(job.talk, place) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield place
        server.shutdown()
        thread.join()


@contextmanager
def seated(path: str, acts: Callable[[Person], None], *, is_over: bool = False) -> Generator[Left]:
    """Sit at the job in this thread, while somebody acts in another.

    is_over: the job has ended before anybody sat down.
    """
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    person = threading.Thread(target=acts, args=(Person(master),))
    try:
        with unix_connect(path, "ws://localhost/", proxy=None) as connection:
            if is_over:
                connection.recv_events_thread.join(PATIENCE_S)
            person.start()
            yield sit_at(connection, slave, slave)
        person.join(PATIENCE_S)
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def test_keys_go_there_and_what_is_written_comes_here(path: str, job: Job) -> None:
    def acts(person: Person) -> None:
        person.sees(b"hello")
        person.types(b"ab\x03")
        person.sees(b"AB\x03")
        person.types(b"exit\r")

    with seated(path, acts) as left:
        assert left is Left.OVER

    assert job.heard[0] == size_message(24, 80)


def test_what_a_job_wrote_that_was_over_at_once_is_seen(path: str, job: Job) -> None:
    job.is_short = True

    with seated(path, lambda person: person.sees(b"hello"), is_over=True) as left:
        assert left is Left.OVER


def test_ctrl_p_ctrl_q_leaves_the_job_running(path: str, job: Job) -> None:
    def acts(person: Person) -> None:
        person.sees(b"hello")
        person.types(b"\x10\x11")

    with seated(path, acts) as left:
        assert left is Left.DETACHED

    assert b"\x10\x11" not in job.heard


def test_a_broken_connection_is_told_apart_from_an_end(path: str) -> None:
    def acts(person: Person) -> None:
        person.sees(b"hello")
        person.types(b"break\r")

    with seated(path, acts) as left:
        assert left is Left.LOST


def test_the_job_learns_when_the_window_changes(path: str, job: Job) -> None:
    def acts(person: Person) -> None:
        person.sees(b"hello")
        termios.tcsetwinsize(person.master, (50, 132))
        signal.raise_signal(signal.SIGWINCH)
        person.types(b"x")
        person.sees(b"X")
        person.types(b"exit\r")

    with seated(path, acts) as left:
        assert left is Left.OVER

    assert size_message(50, 132) in job.heard
