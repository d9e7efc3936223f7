"""Visits to the containers of a pod: commands, those who watch, connections; all as its person."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from containers.images import IMAGE, MODEST, Podman, own_podman
from local.here import Here, Wanted
from muster.backends.base import Stop
from muster.model.errors import UnknownError
from muster.model.event import PodSeen
from muster.model.job import Cancelled
from muster.model.launch import Launch
from muster.model.pod import Container, EmptyFolder, Mount, Phase, PodLaunch, Restart, Volume
from muster.model.running import STDERR, STDOUT, AttachTo, ConnectTo, RunInside, VisitStream
from muster.model.value import Duration, JobId, UserName

pytestmark = pytest.mark.slow

FOREVER = "trap 'exit 0' TERM; while true; do sleep 0.2; done"
GO = JobId(1), 1, 0
MANY = 3_000_000
PATIENCE_S = 60.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        yield found


@pytest.fixture
def inside(podman: Podman, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    here = Here(home)
    here.work.chmod(0o777)
    here.adopts()
    yield here
    here.leaves()


def runs(here: Here, text: str, *, stdin: bool = False, stdin_once: bool = False) -> None:
    """A pod of one container, which runs when this returns."""
    main = Container(
        name="main",
        image=IMAGE,
        entrypoint=("sh", "-c"),
        args=(text,),
        mounts=(Mount(volume="w", path="/w"),),
        stdin=stdin,
        stdin_once=stdin_once,
    )
    pod = PodLaunch(
        namespace="team",
        name="p",
        uid="u",
        containers=(main,),
        volumes=(Volume(name="w", source=EmptyFolder()),),
        restart=Restart.NEVER,
        grace_s=2,
        hostname="p",
    )
    here.run(Launch(argv=("x",), pod=pod), Wanted(user="daemon", memory_mib=512))
    here.until(lambda: _is_running(here))


def _is_running(here: Here) -> bool:
    seen = [each for each in here.heard if isinstance(each, PodSeen)]
    found = seen[-1].status.of("main") if seen else None
    return found is not None and found.phase is Phase.RUNNING


def ends(here: Here) -> None:
    why = Cancelled(by=UserName("ann"))
    here.backend.do(Stop(job=GO[0], attempt=GO[1], why=why, grace=Duration(2_000)))
    here.ends()


def command(text: str, *, stdin: bool = False, tty: bool = False) -> RunInside:
    return RunInside(container="main", argv=("sh", "-c", text), stdin=stdin, tty=tty)


async def all_of(stream: VisitStream) -> dict[int, bytes]:
    """What comes until there is no more."""
    found = {STDOUT: b"", STDERR: b""}
    while (came := await stream.read())[1]:
        found[came[0]] += came[1]
    return found


async def until_shown(stream: VisitStream, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        _, more = await stream.read()
        assert more, shown
        shown += more
    return shown


def played(scene: Coroutine[None, None, T]) -> T:
    """What a scene comes to, which may take long but not for ever."""

    async def bounded() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await scene

    return asyncio.run(bounded())


def visiting(here: Here, wanted: RunInside) -> VisitStream:
    return here.backend.visit(*GO, wanted)


def test_a_command_runs_in_the_container_as_its_person(inside: Here) -> None:
    runs(inside, FOREVER)

    with closing(visiting(inside, command("id -u; echo err >&2; exit 5"))) as stream:
        said = played(all_of(stream))

    assert said == {STDOUT: b"1\n", STDERR: b"err\n"}
    assert (stream.exit_code, stream.failure) == (5, None)
    ends(inside)


def test_a_command_is_in_the_jobs_control_group(inside: Here) -> None:
    runs(inside, FOREVER)

    with closing(visiting(inside, command("cat /proc/1/cgroup; echo; cat /proc/self/cgroup"))) as s:
        first, _, second = played(all_of(s))[STDOUT].partition(b"\n\n")

    assert first.strip()
    assert second.strip() == first.strip()
    ends(inside)


def test_what_is_sent_is_read_until_it_ends(inside: Here) -> None:
    runs(inside, FOREVER)

    async def play(stream: VisitStream) -> dict[int, bytes]:
        reading = asyncio.create_task(all_of(stream))
        await stream.write(b"x" * MANY)
        await stream.end_input()
        return await reading

    wanted = RunInside(container="main", argv=("cat",), stdin=True)
    with closing(visiting(inside, wanted)) as stream:
        said = played(play(stream))

    assert len(said[STDOUT]) == MANY
    assert stream.exit_code == 0
    ends(inside)


def test_a_terminal_has_a_size_and_echoes(inside: Here) -> None:
    runs(inside, FOREVER)

    async def play(stream: VisitStream) -> bytes:
        shown = await until_shown(stream, b"ready")
        await stream.write(b"hello\n")
        return shown + await until_shown(stream, b"got hello")

    wanted = command("test -t 0 && echo ready; read x; echo got $x", stdin=True, tty=True)
    with closing(visiting(inside, wanted)) as stream:
        shown = played(play(stream))

    assert b"hello\r\n" in shown
    ends(inside)


def test_no_such_program_is_a_failure_and_not_output(inside: Here) -> None:
    runs(inside, FOREVER)

    wanted = RunInside(container="main", argv=("/no/such",))
    with closing(visiting(inside, wanted)) as stream:
        said = played(all_of(stream))

    assert said == {STDOUT: b"", STDERR: b""}
    why = 'exec: "/no/such": stat /no/such: no such file or directory'
    assert why in (stream.failure or "")
    ends(inside)


def test_a_command_whose_visitor_leaves_is_told(inside: Here) -> None:
    runs(inside, FOREVER)
    told = "trap 'echo told > /w/told; exit 0' HUP; echo up; while true; do sleep 0.1; done"
    leaver = visiting(inside, command(told))
    played(until_shown(leaver, b"up"))

    leaver.close()

    wait = "while ! test -e /w/told; do sleep 0.1; done; cat /w/told"
    with closing(visiting(inside, command(wait))) as stream:
        assert played(all_of(stream))[STDOUT] == b"told\n"
    ends(inside)


def test_who_watches_sees_what_is_written_and_types(inside: Here) -> None:
    runs(inside, "echo before; read x; echo got $x; echo bad >&2; exit 3", stdin=True)

    async def play(stream: VisitStream) -> dict[int, bytes]:
        await stream.write(b"hello\n")
        return await all_of(stream)

    with closing(inside.backend.visit(*GO, AttachTo(container="main", stdin=True))) as stream:
        said = played(play(stream))

    assert said[STDOUT].endswith(b"got hello\n")
    assert said[STDERR] == b"bad\n"
    assert stream.exit_code == 3
    inside.ends()


def test_input_that_is_taken_once_ends_with_who_sent_it(inside: Here) -> None:
    runs(inside, "cat; echo done", stdin=True, stdin_once=True)

    async def play(stream: VisitStream) -> bytes:
        reading = asyncio.create_task(all_of(stream))
        await stream.write(b"x" * MANY)
        await stream.end_input()
        return (await reading)[STDOUT]

    with closing(inside.backend.visit(*GO, AttachTo(container="main", stdin=True))) as stream:
        said = played(play(stream))

    assert said == b"x" * MANY + b"done\n"
    inside.ends()


def test_a_port_of_the_pod_is_reached_and_a_closed_one_is_not(inside: Here) -> None:
    runs(inside, FOREVER)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_answers, args=(server,), daemon=True).start()

        async def play(stream: VisitStream) -> bytes:
            await stream.write(b"ping")
            await stream.end_input()
            return (await all_of(stream))[STDOUT]

        with closing(inside.backend.visit(*GO, ConnectTo(port=port))) as stream:
            assert played(play(stream)) == b"ping pong"
    with closing(inside.backend.visit(*GO, ConnectTo(port=port))) as refused:
        played(all_of(refused))
        assert refused.failure == "dial tcp4: connect: connection refused"
    ends(inside)


def _answers(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        heard = b""
        while more := connection.recv(100):
            heard += more
        connection.sendall(heard + b" pong")


def test_there_is_nobody_to_visit_where_nothing_runs(inside: Here) -> None:
    runs(inside, FOREVER)

    def visit(wanted: RunInside | AttachTo) -> Callable[[], object]:
        return lambda: inside.backend.visit(*GO, wanted)

    for wanted in (RunInside(container="other", argv=("id",)), AttachTo(container="other")):
        with pytest.raises(UnknownError, match="container other does not run"):
            visit(wanted)()
    ends(inside)
    with pytest.raises(UnknownError, match="the pod does not run"):
        visit(command("id"))()
