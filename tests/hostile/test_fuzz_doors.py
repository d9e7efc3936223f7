"""Very many senseless requests to the server, and answers to the compiled client of Slurm's
commands: nothing ends, nothing hangs, nothing grows.

HOSTILE_MESSAGES says how many of each; `make test-long` sends 100,000.
"""

import contextlib
import json
import os
import random
import runpy
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import cast

import pytest

from doors.rest.running import Daemon, running
from hostile import fuzz
from hostile.people import OTHER, ROOT
from hostile.sizes import memory_kib
from muster.app.parts import Muster, clock
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import Call as SlurmCall
from muster.doors.slurm.call import Door, Script
from muster.doors.slurm.client import compiling
from muster.doors.slurm.client.compiling import (
    CommandSettings,
    NotCompiledError,
    compiled,
    compiler,
    with_settings,
)

THIN = Path(compiling.__file__).parent / "thin" / "muster_thin.py"
COUNT = int(os.environ.get("HOSTILE_MESSAGES", "2000"))
MOST_GROWTH_KIB = 96 << 10
MOST_CLIENT_KIB = 64 << 10
PATIENCE_S = 20

PATHS = (
    "/v1/jobs", "/v1/jobs/1", "/v1/jobs/lines", "/v1/jobs/actions", "/v1/jobs/1/explanation",
    "/v1/jobs/1/log", "/v1/events", "/v1/site", "/v1/quotas", "/v1/rehearsals", "/v1/tokens",
    "/v1/audit", "/v1/nodes/pretend1", "/v1/queues/default", "/v1/me", "/healthz",
    "/v1/slurm/squeue", "/v1/slurm/sacct", "/v1/slurm/scontrol", "/v1/slurm/sbatch",
    "/v1/slurm/sinfo", "/v1/slurm/nosuch", "/v1/nowhere", "/%00", "/" + "a" * 3_000,
)  # fmt: skip
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW")
CALL = {
    "form": 1,
    "argv": ["-o", "%i %j", "-j", "1"],
    "cwd": "/",
    "env": {"TZ": "UTC"},
    "umask": 18,
}
SUBMIT = {
    "command": ["true"],
    "name": "x",
    "groups": [{"gpus": 1, "cpus": 1, "tasks": 1}],
    "env": {"A": "b"},
    "labels": {"a": "b"},
    "held": True,
    "time": "1h",
    "array": "1-3",
}
POLITE = (CALL, SUBMIT, {"ids": [1], "action": "hold"}, {"text": "queues: {default: {}}"})
QUERIES = ("", "?limit=10", "?user=a&state=pending", "?after=-1", "?limit=9e9", "?x=%ff", "?id=1,2")


def requests(chance: random.Random) -> Iterator[bytes]:
    """Requests that are nearly right, and bytes that are not."""
    while True:
        kind = chance.random()
        if kind < 0.1:
            yield chance.randbytes(chance.randrange(1, 400))
            continue
        document = json.loads(json.dumps(chance.choice(POLITE)))
        for _ in range(chance.randrange(3)):
            fuzz.change(document, chance)
        body = json.dumps(document).replace('"@"', chance.choice(fuzz.RAW)).encode()
        if chance.random() < 0.2 and body:
            body = fuzz.damaged(body, chance)
        length = len(body) if chance.random() < 0.9 else chance.choice((-1, 0, 10**20, 7))
        head = (
            f"{chance.choice(METHODS)} {chance.choice(PATHS)}{chance.choice(QUERIES)} HTTP/1.1\r\n"
            f"host: x\r\ncontent-length: {length}\r\n"
        )
        if chance.random() < 0.2:
            head += chance.choice(
                (
                    "transfer-encoding: chunked\r\n",
                    "authorization: Bearer mst_x_y\r\n",
                    "upgrade: websocket\r\nconnection: upgrade\r\n",
                    "expect: 100-continue\r\n",
                    "x-muster-door: \x1b[2J\r\n",
                    "last-event-id: 9e99\r\n",
                )
            )
        message = f"{head}\r\n".encode("latin-1") + body
        yield fuzz.damaged(message, chance) if kind > 0.85 else message


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def test_the_server_outlives_senseless_requests(daemon: Daemon) -> None:
    pid = int((daemon.home / "daemon.lock").read_text())
    chance = random.Random(13)  # noqa: S311 -- the same ones on every run
    for message in islice(requests(chance), COUNT // 10):
        send(daemon.socket, message)
    before = memory_kib(pid)

    for message in islice(requests(chance), COUNT):
        send(daemon.socket, message)

    with daemon.client() as client:
        assert client.me().user
        client.cancel([job.id for job in client.all_jobs()])
    assert memory_kib(pid) - before < MOST_GROWTH_KIB
    assert "bug " not in daemon.log(), daemon.log()[-3_000:]


def send(path: Path, message: bytes) -> None:
    """Send it, take what comes at once, and hang up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.connect(str(path))
        try:
            made.sendall(message)
            made.shutdown(socket.SHUT_WR)
            if select.select([made], [], [], 0.02)[0]:
                made.recv(65_536)
        except (BrokenPipeError, ConnectionResetError):
            return


def answers(chance: random.Random) -> Iterator[bytes]:
    """Answers of a server that is nearly right, and of one that is not."""
    while True:
        out, err = chance.randbytes(chance.randrange(60)), chance.randbytes(chance.randrange(20))
        sizes = [len(err), len(out), 0]
        if chance.random() < 0.5:
            sizes[chance.randrange(3)] = chance.choice((-1, 1, 1 << 31, 1 << 63, 10**30))
        code = chance.choice(("0", "1", "-5", "999999999999", "x", ""))
        body = f"{code} {sizes[0]} {sizes[1]} {sizes[2]}\n".encode() + err + out
        length = len(body) if chance.random() < 0.7 else chance.choice((-1, 0, 1 << 62, 10**25))
        status = chance.choice(("200 OK", "200 OK", "500 No", "99999 x", "", "204 x"))
        message = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n".encode() + body
        kind = chance.random()
        if kind < 0.1:
            message = chance.randbytes(chance.randrange(300))
        elif kind < 0.5:
            message = fuzz.damaged(message, chance)
        yield message


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, which here gives up where it would otherwise go on in Python."""
    try:
        program = compiled(compiler())
    except NotCompiledError as error:
        pytest.skip(str(error))
    known = CommandSettings(command="squeue", home="", python="/bin/true", code="", wanted=())
    made = tmp_path_factory.mktemp("client") / "squeue"
    made.write_bytes(with_settings(program, known))
    made.chmod(0o700)
    return made


def test_the_compiled_client_outlives_senseless_answers(client: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    chance = random.Random(13)  # noqa: S311 -- the same ones on every run
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(PATIENCE_S)
        # A new process is at first as large as the one that made it.
        most = memory_kib(os.getpid(), "VmHWM") + MOST_CLIENT_KIB
        for message in islice(answers(chance), COUNT):
            status, most_kib = asked_once(client, listening, path, message)
            assert os.WIFEXITED(status), f"status {status} after {message!r}"
            assert most_kib < most


def asked_once(
    client: Path, listening: socket.socket, path: Path, message: bytes
) -> tuple[int, int]:
    """How a command ended that was answered so, and how large it was."""
    nowhere = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in range(3)]
    child = os.posix_spawn(
        client, [str(client)], {"MUSTER_URL": f"unix:{path}"}, file_actions=nowhere
    )
    connection, _ = listening.accept()
    with connection:
        connection.recv(65_536)
        # It may have had enough of the answer.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(message)
    _, status, used = os.wait4(child, 0)
    return status, used.ru_maxrss


def test_the_thin_client_outlives_senseless_answers(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_URL", "unix:/nowhere")
    use = cast("Callable[..., object]", runpy.run_path(str(THIN))["use"])
    chance = random.Random(13)  # noqa: S311 -- the same ones on every run
    page = b"<html>502 Bad Gateway</html>"
    proxy = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 28\r\n\r\n" + page
    wrong: list[str] = []
    for message in chain((proxy,), islice(answers(chance), COUNT)):
        handed = os.memfd_create("answer")
        os.write(handed, message)
        os.lseek(handed, 0, os.SEEK_SET)
        try:
            code = use("squeue", [], None, handed)
        except Exception as error:  # noqa: BLE001 -- each is one to be mended
            wrong.append(f"{message!r}: {type(error).__name__}: {error}"[:200])
            continue
        assert isinstance(code, int)
        assert "Traceback" not in capfd.readouterr().err

    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])


OPTIONS: dict[str, Sequence[str]] = {
    "squeue": "-o -O -j -u -A -p -t -w -S --states --name --qos --json --yaml -i -l -r -h".split(),
    "sacct": "-o --format -j -u -A -S -E -s -N -n -P -p -X --json --units --name -q -r".split(),
    "scontrol": (
        "show job node partition hold release update jobid= nodename= requeue suspend name= "
        "timelimit= priority= comment= write batch_script token username= lifespan= -o -d"
    ).split(),
    "sbatch": (
        "--array --begin --deadline --mem --mem-per-cpu --gpus --gres --time -n -N -c -d -p -A "
        "--qos --export --signal --nice --priority --mail-type --comment --wrap --parsable"
    ).split(),
    "sinfo": "-o -O -N -n -p -t -l -R -s -e --json -S -h".split(),
    "scancel": "-u -A -p -t -n -s --signal -f -b -q -v --me".split(),
    "sprio": "-o -j -u -l -w -n -p -S".split(),
    "sshare": "-A -u -a -l -o -P -p -n -U -m".split(),
    "sacctmgr": (
        "show list add delete modify user account qos assoc where set name= fairshare= format= "
        "tran cluster -n -P -i"
    ).split(),
}
VALUES = (
    "", "1", "0", "-1", "1-3", "1-3%2", "[1-1000000]", "%", "%999999999i", "%.10i %j", "now+1hour",
    "now-99999999999days", "9999-99-99T99:99:99", "1-00:00:00", "infinite", "10G", "1e400", "٣",
    "\x1b[2J", "\0", "\ud800", "a,b,,c", ",", "=", "a=b=c", "afterok:1:2?afterany:x", "gpu:a100:1",
    "JobID%50,State", "n[1-3,5]", "n[[[[", "all", "A" * 3_000, "../../etc/passwd", "USR1@60",
    "B:TERM@99999999999", "root", "8" * 400,
)  # fmt: skip
MOST_S = 10.0


def command_lines(chance: random.Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Words that each of Slurm's commands knows, with values that it may not."""
    while True:
        command = chance.choice(sorted(OPTIONS))
        words: list[str] = []
        for _ in range(chance.randrange(1, 7)):
            option, value = chance.choice(OPTIONS[command]), chance.choice(VALUES)
            is_joined = option.startswith("--") and chance.random() < 0.5
            joined = f"{option}={value}" if is_joined else f"{option}{value}"
            words += chance.choice(((option, value), (joined,), (option,), (value,)))
        yield command, tuple(words)


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_words_that_are_no_text_are_refused(muster: Muster, command: str) -> None:
    door = Door(service=muster.service, caller=OTHER, now=clock())

    reply = answered(command, SlurmCall(form=1, argv=("--comment=\ud800",), cwd="/"), door)

    assert (reply.code, reply.err) == (1, f"{command}: error: the call cannot be read\n")


def test_no_command_line_of_slurm_is_a_bug(muster: Muster) -> None:
    chance = random.Random(17)  # noqa: S311 -- the same ones on every run
    wrong: list[str] = []
    for command, words in islice(command_lines(chance), COUNT):
        door = Door(service=muster.service, caller=OTHER, now=clock())
        script = Script(text="#!/bin/sh\ntrue\n", name="x.sh")
        began = time.monotonic()
        try:
            answered(command, SlurmCall(form=1, argv=words, cwd="/", script=script), door)
        except Exception as error:  # noqa: BLE001 -- each is one to be mended
            wrong.append(f"{command} {words!r}: {type(error).__name__}: {error}"[:300])
            continue
        if time.monotonic() - began > MOST_S:
            wrong.append(f"{command} {words!r}: it took too long")

    muster.service.cancel(ROOT, tuple(muster.journal.record.jobs)).result()
    assert not wrong, "\n".join(wrong[:40])
