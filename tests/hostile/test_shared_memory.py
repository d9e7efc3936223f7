"""Shared memory is of one job: its processes, tasks and containers share it, and nobody else."""

import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from containers.images import IMAGE, MODEST, Podman, own_podman
from local.here import Here, Plain, Wanted
from muster.backends.local.hardware.mps import PIPE_VARIABLE
from muster.model.event import JobStarted
from muster.model.job import Exited
from muster.model.launch import Launch
from muster.model.placement import Placement
from muster.model.pod import Container, EmptyFolder, Mount, PodLaunch, Restart, Volume
from muster.model.site import SHARED_TMP, Confinement
from muster.model.value import replace

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root confines jobs of others")
in_containers = pytest.mark.slow

BY_DAEMON = Wanted(user="daemon", confinement=Confinement())
BY_NOBODY = Wanted(user="nobody", confinement=Confinement(), job=2)
NAME = f"muster-shared-{os.getpid()}"
WAITS = "while ! test -e go; do sleep 0.02; done"
KEEPS = f"echo x > /dev/shm/{NAME}; touch there; {WAITS}"
SIZE = 1_000_000 + os.getpid()
"""By which a segment is known that has no name."""


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        yield found


@pytest.fixture
def inside(podman: Podman, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    yield from opened(home, Plain())


@pytest.fixture
def bare(home: Path) -> Iterator[Here]:
    yield from opened(home, Plain())


def opened(home: Path, machine: Plain) -> Iterator[Here]:
    here = Here(home, machine)
    here.work.chmod(0o777)
    here.adopts()
    yield here
    here.leaves()


def in_image(text: str) -> Launch:
    return Launch(argv=("sh", "-c", text), image=IMAGE, stdout="out-%j-%t")


@in_containers
def test_what_a_container_keeps_in_shared_memory_is_seen_by_no_other_job(inside: Here) -> None:
    inside.run(in_image(KEEPS), BY_DAEMON)
    inside.until((inside.work / "there").exists)

    inside.run(in_image("ls /dev/shm"), BY_NOBODY)
    inside.shell(f"cat /dev/shm/{NAME}", replace(BY_NOBODY, job=3))

    assert inside.ends(2).why == Exited(code=0)
    assert inside.text("out-2-0") == ""
    assert inside.ends(3).why == Exited(code=1)
    assert NAME not in os.listdir("/dev/shm")
    (inside.work / "go").touch()
    assert inside.ends(1).why == Exited(code=0)


@in_containers
def test_a_container_sees_nothing_of_the_machines_shared_memory(inside: Here) -> None:
    ours = Path("/dev/shm", NAME)
    ours.write_text("of somebody else")
    try:
        inside.run(in_image("ls /dev/shm; test -w /dev/shm"), BY_DAEMON)

        assert inside.ends().why == Exited(code=0)
        assert inside.text("out-1-0") == ""
    finally:
        ours.unlink()


@in_containers
def test_the_tasks_of_a_job_share_their_memory_across_containers(inside: Here) -> None:
    """Ranks on one node exchange what they compute there."""
    text = (
        "echo $MUSTER_RANK > /dev/shm/rank-$MUSTER_RANK; readlink /proc/self/ns/ipc; "
        "while ! test -e /dev/shm/rank-0 -a -e /dev/shm/rank-1; do sleep 0.02; done"
    )

    inside.run(in_image(text), replace(BY_DAEMON, tasks=2))

    assert inside.ends().why == Exited(code=0)
    queues = {inside.text(f"out-1-{rank}") for rank in range(2)}
    assert len(queues) == 1
    assert queues != {f"{os.readlink('/proc/self/ns/ipc')}\n"}


@in_containers
def test_a_container_has_as_much_shared_memory_as_a_job_without_one(inside: Here) -> None:
    mounted = "while read a b c d e; do test $b = /dev/shm && echo $c $d; done < /proc/mounts; true"

    inside.run(in_image(mounted), BY_DAEMON)
    bare = Launch(argv=("sh", "-c", mounted), stdout="out-%j-%t")
    inside.run(bare, replace(BY_DAEMON, job=2))

    assert inside.ends(1).why == inside.ends(2).why == Exited(code=0)
    (in_container,) = inside.text("out-1-0").splitlines()
    assert in_container.startswith("tmpfs rw,nosuid,nodev")
    assert "size=" not in in_container
    assert in_container == inside.text("out-2-0").splitlines()[-1]


@in_containers
def test_a_site_can_leave_shared_memory_shared(inside: Here) -> None:
    shared = replace(BY_DAEMON, confinement=SHARED_TMP)

    inside.run(in_image(f"touch /dev/shm/{NAME}; readlink /proc/self/ns/ipc"), shared)

    assert inside.ends().why == Exited(code=0)
    Path("/dev/shm", NAME).unlink()
    assert inside.text("out-1-0").strip() == os.readlink("/proc/self/ns/ipc")


def a_pod(*texts: str, mounts: tuple[Mount, ...] = ()) -> Launch:
    containers = [
        Container(
            name=f"c{number}", image=IMAGE, entrypoint=("sh", "-c"), args=(text,), mounts=mounts
        )
        for number, text in enumerate(texts)
    ]
    pod = PodLaunch(
        namespace="team",
        name="p",
        uid="u",
        containers=tuple(containers),
        volumes=(Volume(name="shm", source=EmptyFolder(in_memory=True)),),
        restart=Restart.NEVER,
        grace_s=2,
        hostname="p",
    )
    return Launch(argv=("x",), pod=pod)


@in_containers
def test_the_containers_of_a_pod_share_their_memory_and_another_pod_does_not(inside: Here) -> None:
    one, other = f"/dev/shm/{NAME}-1", f"/dev/shm/{NAME}-2"
    first = f"echo x > {one}; while ! test -e {other}; do sleep 0.02; done"
    second = f"while ! test -e {one}; do sleep 0.02; done; echo x > {other}"
    waits = "while ! test -e /dev/shm/end; do sleep 0.02; done"
    inside.run(a_pod(first, f"{second}; {waits}"), BY_DAEMON)
    inside.sees(JobStarted)

    inside.run(a_pod("for each in /dev/shm/*; do test -e $each && exit 7; done; exit 0"), BY_NOBODY)

    assert inside.ends(2).why == Exited(code=0)
    assert not os.path.exists(one)
    assert not os.path.exists(other)


@in_containers
@pytest.mark.parametrize("path", ["/dev/shm", "/dev//shm/"])
def test_a_pod_may_put_a_volume_in_the_place_of_its_shared_memory(inside: Here, path: str) -> None:
    mount = Mount(volume="shm", path=path)

    inside.run(a_pod("echo x > /dev/shm/x", mounts=(mount,)), BY_DAEMON)

    assert inside.ends().why == Exited(code=0)


def test_what_a_job_shares_in_memory_is_no_other_jobs_and_ends_with_it(bare: Here) -> None:
    """Segments of System V have no file, and would stay for as long as the machine is up."""
    text = f"readlink /proc/self/ns/ipc > mine; ipcmk -M {SIZE}; cat /proc/sysvipc/shm > seen"

    bare.shell(text, BY_DAEMON)

    assert bare.ends().why == Exited(code=0)
    assert bare.text("mine").strip() != os.readlink("/proc/self/ns/ipc")
    assert str(SIZE) in bare.text("seen").split()
    assert str(SIZE) not in Path("/proc/sysvipc/shm").read_text().split()


def test_messages_that_a_job_queues_are_seen_by_no_other(bare: Here) -> None:
    opens = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.mq_open(b'/{NAME}', os.O_CREAT | os.O_RDWR, 0o666, None) >= 0\n"
    )

    bare.python(opens, BY_DAEMON)

    assert bare.ends().why == Exited(code=0)
    assert ctypes.CDLL(None).mq_open(f"/{NAME}".encode(), os.O_RDONLY) < 0


class OnMps(Plain):
    """A machine on which tasks share a GPU, by a daemon that has its pipes in a folder."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self._pipe = pipe

    def sharing(self, placement: Placement) -> Mapping[str, str]:
        del placement
        return {PIPE_VARIABLE: str(self._pipe)}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    made = tmp_path / "pipe"
    made.mkdir()
    (made / "control").touch()
    return made


def test_who_shares_a_gpu_by_mps_sees_the_shared_memory_of_its_daemon(
    home: Path, pipe: Path
) -> None:
    """The driver's daemon and its clients meet in /dev/shm; all else stays the job's own."""
    ours = Path("/dev/shm", NAME)
    ours.touch()
    name = f"muster-mine-{os.getpid()}"
    here = next(machine := opened(home, OnMps(pipe)))
    try:
        here.shell(f"test -e /dev/shm/{NAME} && touch /tmp/{name}", BY_DAEMON)

        assert here.ends().why == Exited(code=0)
        assert not Path("/tmp", name).exists()
    finally:
        ours.unlink()
        next(machine, None)


@in_containers
def test_a_container_on_mps_reaches_the_daemon(
    podman: Podman, home: Path, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    ours = Path("/dev/shm", NAME)
    ours.touch()
    here = next(machine := opened(home, OnMps(pipe)))
    finds = f"test -e /dev/shm/{NAME} && test -e ${PIPE_VARIABLE}/control"
    try:
        here.run(in_image(finds), BY_DAEMON)
        here.run(a_pod(finds), BY_NOBODY)

        assert here.ends(1).why == here.ends(2).why == Exited(code=0)
    finally:
        ours.unlink()
        next(machine, None)
