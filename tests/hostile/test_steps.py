"""Whatever a job sends to its supervisor's socket, the attempt goes on and ends as it should."""

import contextlib
import json
import os
import resource
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostile.sizes import memory_kib
from local.asker import HEAD, WISH, Asker
from local.here import Here, Wanted
from muster.backends.local.attempt.spawner_client import reachable
from muster.model.event import JobStarted, StepBegan
from muster.model.job import Exited
from people import STRANGER, only_root, python_for_all

WAITS = "while ! test -e go; do sleep 0.02; done"
MOST_GROWTH_KIB = 64 << 10
WANT = {"kind": "want", "wish": WISH, "name": "step", "command": "a step", "limit_ms": None}


class Knocker:
    """A process of the job that sends raw bytes."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        with reachable(folder) as short:
            self.socket.connect(f"{short}/steps.sock")

    def sends(self, text: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(HEAD.pack(len(text)) + text)

    def is_disconnected(self) -> bool:
        """Nothing more comes, perhaps after some answer."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            pass
        return True


@pytest.fixture
def running(here: Here) -> Here:
    here.shell(WAITS)
    here.sees(JobStarted)
    return here


Knock = Callable[[], Knocker]


@pytest.fixture
def knock(running: Here) -> Iterator[Knock]:
    """Connects to the socket, as often as it is called."""
    found: list[Knocker] = []

    def knock() -> Knocker:
        found.append(Knocker(running.folder()))
        return found[-1]

    yield knock
    for knocker in found:
        knocker.socket.close()


def goes_on(here: Here) -> None:
    """A step of a polite client works, and the job ends by itself."""
    with Asker(here.folder()) as asker:
        asker.wants()
        asker.hears("created")
        asker.launches("/bin/true", cwd=here.work)
        assert asker.hears("exited")["status"] == 0
        asker.hears("over")
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)


def wish(name: str, raw: str) -> bytes:
    """A wish for a step in which one value is this text."""
    return json.dumps(WANT | {"wish": WISH | {name: "@"}}).replace('"@"', raw).encode()


def want(name: str, raw: str) -> bytes:
    return json.dumps(WANT | {name: "@"}).replace('"@"', raw).encode()


MEANINGLESS = {
    "endless limit": want("limit_ms", "1e400"),
    "no number": want("limit_ms", "NaN"),
    "minus endless": want("limit_ms", "-Infinity"),
    "limit in words": want("limit_ms", '"soon"'),
    "true limit": want("limit_ms", "true"),
    "endless tasks": wish("tasks", "1e400"),
    "half tasks": wish("tasks", "1.5"),
    "very many digits": wish("tasks", "9" * 5_000),
    "tasks as a list": wish("tasks", "[]"),
    "nodes in lists": wish("on", "[[1]]"),
    "unknown wish": wish("more", "1"),
    "no wish": want("wish", "null"),
    "very many components": json.dumps(WANT | {"beside": [WANT] * 200}).encode(),
    "components by name": want("beside", '{"a": 1}'),
    "deep mappings": b'{"kind": "want", "wish": ' + b'{"a":' * 90_000,
    "deep lists": b"[" * 200_000,
    "kind as a list": b'{"kind": ["want"]}',
    "endless signal": b'{"kind": "signal", "signal": 1e400}',
    "endless code": b'{"kind": "release", "keep": false, "code": 1e400, "signal": 0}',
    "hold of another's": b'{"kind": "hold"}',
    "one word": b'"want"',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("text", MEANINGLESS.values(), ids=MEANINGLESS)
def test_a_message_without_meaning_ends_its_client_and_nothing_else(
    running: Here, text: bytes, knock: Knock
) -> None:
    knocker = knock()

    knocker.sends(text)

    assert knocker.is_disconnected()
    goes_on(running)


@pytest.mark.parametrize(
    ("place", "raw"),
    [
        ("umask", "1e400"),
        ("umask", "99999999999"),
        ("argvs", "[[]]"),
        ("argvs", "[]"),
        ("argvs", '[["a\\u0000b"]]'),
        ("streams", "[[0, 0, 9]]"),
        ("streams", "[[-1, 0, 0]]"),
        ("streams", "[[0]]"),
        ("streams", "[]"),
        ("env", '{"A=B": "c"}'),
        ("env", '{"A": 1}'),
        ("env", "[]"),
        ("cwd", "7"),
        ("bind", '{"kind": "map_cpu", "values": [], "verbose": false}'),
        ("bind", '{"kind": "mask_cpu", "values": [1e400], "verbose": false}'),
    ],
)
def test_a_step_that_cannot_be_started_so_is_over(
    running: Here, place: str, raw: str, knock: Knock
) -> None:
    knocker = knock()
    launch: dict[str, object] = {
        "kind": "launch",
        "argvs": [["/bin/true"]],
        "streams": [[0, 0, 0]],
        "env": {},
        "cwd": "/",
        "umask": 0o022,
        "label": False,
        "pty": False,
    }
    launch.pop(place, None)
    text = (json.dumps(launch)[:-1] + f', "{place}": {raw}}}').encode()

    knocker.sends(json.dumps(WANT).encode())
    with open(os.devnull, "rb") as null:
        socket.send_fds(knocker.socket, [HEAD.pack(len(text)) + text], [null.fileno()])

    assert knocker.is_disconnected()
    goes_on(running)


def test_a_client_cannot_ask_twice_or_start_twice(running: Here, knock: Knock) -> None:
    twice = knock()
    twice.sends(json.dumps(WANT).encode())
    twice.sends(json.dumps(WANT).encode())
    assert twice.is_disconnected()

    with Asker(running.folder()) as asker:
        asker.wants()
        asker.hears("created")
        asker.launches("/bin/sleep", "60", cwd=running.work)
        asker.hears("started")
        asker.launches("/bin/sleep", "60", cwd=running.work)
        assert asker.is_hung_up()

    goes_on(running)


def test_a_thousand_open_files_are_not_kept(running: Here, knock: Knock) -> None:
    knockers = [knock() for _ in range(8)]
    with open(os.devnull, "rb") as null:
        for knocker in knockers:
            for _ in range(16):
                try:
                    # A message that never ends, with files beside it.
                    socket.send_fds(knocker.socket, [HEAD.pack(1_000)], [null.fileno()] * 64)
                except OSError:
                    break

    running.until(
        lambda: open_files(running.supervisor()) < open_files_limit(running.supervisor()) // 2 + 64
    )
    for knocker in knockers:
        knocker.socket.close()
    goes_on(running)


def test_long_lines_do_not_fill_its_memory(running: Here, knock: Knock) -> None:
    before = memory_kib(running.supervisor())
    knockers = [knock() for _ in range(32)]
    for knocker in knockers:
        try:
            knocker.socket.sendall(HEAD.pack(4 << 20) + b"[" * (3 << 20))
        except OSError:
            continue

    peak = memory_kib(running.supervisor(), "VmHWM")
    for knocker in knockers:
        knocker.socket.close()

    assert peak - before < MOST_GROWTH_KIB
    goes_on(running)


@pytest.mark.parametrize("part", [b'{"":0},', b"[],", b'"ab",', b"1,"])
def test_a_message_of_many_parts_does_not_fill_its_memory(
    running: Here, part: bytes, knock: Knock
) -> None:
    before = memory_kib(running.supervisor())
    count = (4 << 20) // len(part) - 16
    knocker = knock()

    knocker.sends(b'{"kind": [' + part * count + b"0]}")

    assert knocker.is_disconnected()
    assert memory_kib(running.supervisor(), "VmHWM") - before < MOST_GROWTH_KIB + (64 << 10)
    goes_on(running)


def test_a_length_beyond_all_measure_is_refused_at_once(running: Here, knock: Knock) -> None:
    knocker = knock()

    knocker.socket.sendall(struct.pack("!I", 0xFFFFFFFF))

    assert knocker.is_disconnected()
    goes_on(running)


def test_very_many_silent_clients_leave_room_for_one_who_speaks(running: Here) -> None:
    silent: list[socket.socket] = []
    for _ in range(2_000):
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        silent.append(other)
        other.setblocking(False)
        try:
            with reachable(running.folder()) as short:
                other.connect(f"{short}/steps.sock")
        except BlockingIOError:
            break

    assert open_files(running.supervisor()) < min(600, open_files_limit(running.supervisor()))
    for other in silent:
        other.close()
    goes_on(running)


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_files_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def test_a_name_that_is_no_text_reaches_the_backend_as_text(running: Here) -> None:
    knocker = Knocker(running.folder())
    text = json.dumps(WANT | {"name": "a\ud800b", "command": "\udcff"}).encode()

    knocker.sends(text)
    running.until(lambda: any(isinstance(each, StepBegan) for each in running.heard))
    knocker.socket.close()

    (began,) = [each.step for each in running.heard if isinstance(each, StepBegan)]
    assert (began.name, began.command) == ("a?b", "?")
    goes_on(running)


KNOCKS = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@only_root
@pytest.mark.parametrize(("user", "complaint"), [("daemon", ""), (STRANGER, "PermissionError")])
def test_who_is_not_the_jobs_user_may_not_even_knock(here: Here, user: str, complaint: str) -> None:
    here.work.chmod(0o777)
    here.shell(WAITS, Wanted(user="daemon"))
    here.sees(JobStarted)

    knocked = subprocess.run(
        [python_for_all(), "-c", KNOCKS, str(here.folder() / "steps.sock")],
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )

    assert complaint in knocked.stderr
    assert bool(knocked.returncode) is bool(complaint)
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)
