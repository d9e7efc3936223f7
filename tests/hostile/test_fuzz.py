"""Very many senseless messages to every socket that root reads here: nothing ends, nothing grows.

HOSTILE_MESSAGES says how many for each socket; `make test-long` sends 100,000.
"""

import contextlib
import json
import os
import random
import select
import socket
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from hostile import fuzz, visited
from hostile.sizes import memory_kib
from local.asker import Asker
from local.here import Here
from muster.backends.local.attempt import processes, spawner
from muster.backends.local.attempt.spawner_client import reachable
from muster.model.event import JobStarted
from muster.model.job import Exited
from muster.model.launch import Launch, Terminal

COUNT = int(os.environ.get("HOSTILE_MESSAGES", "2000"))
MOST_GROWTH_KIB = 48 << 10
WAITS = "while ! test -e go; do sleep 0.02; done"
LOST = (BrokenPipeError, ConnectionResetError, ConnectionRefusedError, TimeoutError)


class Sender:
    """Sends over one connection after the other: the other end hangs up often."""

    def __init__(self, folder: Path, name: str, kind: socket.SocketKind) -> None:
        self._folder, self._name, self._kind = folder, name, kind
        self._socket: socket.socket | None = None

    def send(self, message: bytes, files: tuple[int, ...] = ()) -> None:
        try:
            if self._socket is None:
                self._socket = self._connected()
            socket.send_fds(self._socket, [message], files)
            # What it answers is taken away, so that it can go on answering.
            if select.select([self._socket], [], [], 0)[0] and not self._socket.recv(65_536):
                self.close()
        except LOST:
            self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, self._kind)
        made.settimeout(10)
        try:
            with reachable(self._folder) as short:
                made.connect(f"{short}/{self._name}")
        except OSError:
            made.close()
            raise
        return made


def sent_all(messages: Iterator[bytes], send: Callable[[bytes], object]) -> None:
    for message in islice(messages, COUNT):
        send(message)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(7)  # noqa: S311 -- the same messages on every run


def test_a_supervisor_survives_what_comes_to_its_step_socket(
    here: Here, chance: random.Random
) -> None:
    here.shell(WAITS)
    here.sees(JobStarted)
    before = memory_kib(here.supervisor())
    sender = Sender(here.folder(), "steps.sock", socket.SOCK_STREAM)

    with open(os.devnull, "rb+") as null:

        def send(text: bytes) -> None:
            files = (null.fileno(),) * chance.randrange(4)
            sender.send(fuzz.framed(text, chance), files)

        sent_all(fuzz.documents(chance), send)
    sender.close()

    assert memory_kib(here.supervisor(), "VmHWM") - before < MOST_GROWTH_KIB
    with Asker(here.folder()) as asker:
        asker.wants()
        asker.hears("created")
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)


def test_a_supervisor_survives_what_comes_to_the_visitors_of_its_pod(
    here: Here, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited.begin(here, monkeypatch)
    before = memory_kib(here.supervisor())
    sender = Sender(here.folder(), "visits.sock", socket.SOCK_STREAM)

    with open(os.devnull, "rb+") as null:

        def send(text: bytes) -> None:
            files = (null.fileno(),) * chance.randrange(4)
            sender.send(fuzz.framed(text, chance), files)

        for each in fuzz.VISITS:
            text = json.dumps(each).encode()
            sender.send(len(text).to_bytes(4, "big") + text, (null.fileno(),) * 3)
            sender.close()
        sent_all(fuzz.documents(chance, fuzz.VISITS), send)
    sender.close()

    assert memory_kib(here.supervisor(), "VmHWM") - before < MOST_GROWTH_KIB
    visited.end(here)


def test_a_supervisor_survives_what_comes_to_its_terminal(
    here: Here, chance: random.Random
) -> None:
    # Raw, so that what is typed by chance is no Ctrl-C.
    text = f"stty raw -echo; touch there; cat > /dev/null & {WAITS}; kill $!"
    here.run(Launch(argv=("sh", "-c", text), terminal=Terminal()))
    here.until((here.work / "there").exists)
    before = memory_kib(here.supervisor())
    sender = Sender(here.folder(), "terminal.sock", socket.SOCK_STREAM)

    sent_all(fuzz.frames(chance), sender.send)
    sender.close()

    assert memory_kib(here.supervisor(), "VmHWM") - before < MOST_GROWTH_KIB
    (here.work / "go").touch()
    here.ends()


def test_a_terminal_keeps_no_more_than_a_job_reads(here: Here) -> None:
    here.run(Launch(argv=("sh", "-c", f"stty raw -echo; {WAITS}"), terminal=Terminal()))
    here.sees(JobStarted)
    before = memory_kib(here.supervisor())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as viewer:
        with reachable(here.folder()) as short:
            viewer.connect(f"{short}/terminal.sock")
        viewer.settimeout(1)
        typed = b"D" + (1 << 16).to_bytes(4, "big") + b"x" * (1 << 16)
        with contextlib.suppress(TimeoutError):
            for _ in range(2_000):
                viewer.sendall(typed)

        assert memory_kib(here.supervisor(), "VmHWM") - before < 8 << 10
    (here.work / "go").touch()
    here.ends()


def test_the_spawner_survives_what_comes_to_its_socket(here: Here, chance: random.Random) -> None:
    here.shell("true")
    here.ends()
    pid = here.spawner()
    before = memory_kib(pid)
    sender = Sender(here.home / "spool", "spawner.sock", socket.SOCK_SEQPACKET)

    heads = (b"", b"run ", b"run", b"RUN ", b"rest ", b"stop ", b"\0")
    never = (spawner.REST, spawner.STOP)
    sent_all(fuzz.words(chance, heads, never), sender.send)
    sender.close()

    assert processes.is_alive(pid)
    assert memory_kib(pid, "VmHWM") - before < MOST_GROWTH_KIB
    here.shell("true")
    assert here.ends().why == Exited(code=0)


def test_the_backend_survives_what_comes_to_the_socket_for_news(
    here: Here, chance: random.Random
) -> None:
    before = memory_kib(os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(10)
        with reachable(here.home / "spool") as short:
            sender.connect(f"{short}/notify.sock")
            sent_all(fuzz.words(chance, (b"", b"1.1", b"\xff"), ()), sender.send)

    assert memory_kib(os.getpid()) - before < MOST_GROWTH_KIB
    here.shell("true")
    assert here.ends().why == Exited(code=0)
