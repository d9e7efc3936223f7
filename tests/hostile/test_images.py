"""Root's container tool runs images of registries in folders that the user opened."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from containers.images import IMAGE, MODEST, Podman, own_podman
from hostile.test_devices import Walled
from local.here import Here, Wanted
from muster.backends.local.attempt import spool
from muster.backends.local.attempt.process import Invocation, Streams, begin
from muster.backends.local.isolation.container import is_reference
from muster.backends.local.isolation.images import Images
from muster.backends.local.isolation.users import LaunchError, local_user
from muster.model.job import Exited, LaunchFailed, OutOfMemory
from muster.model.launch import Launch
from muster.model.site import Confinement


@pytest.mark.parametrize(
    "image",
    [
        "busybox",
        "nvcr.io/nvidia/pytorch:24.05-py3",
        "docker://python:3.12-slim",
        "nvcr.io#nvidia/pytorch:24.05-py3",
        "localhost:5000/team/image@sha256:" + "a" * 64,
        "local/muster-test:1",
    ],
)
def test_a_name_in_a_registry_is_a_reference(image: str) -> None:
    assert is_reference(image)


@pytest.mark.parametrize(
    "image",
    [
        "docker-archive:/home/ann/secret.tar",
        "docker-archive:secret.tar",
        "oci-archive:secret.tar",
        "oci:/root/image",
        "dir:/root/image",
        "dir:image",
        "containers-storage:secret",
        "docker-daemon:secret:latest",
        "docker://docker-archive:secret.tar",
        "docker://dir:/root",
        "ostree:secret",
        "sif:/root/x.sif",
        "/root/image.tar",
        "./image",
        "../image",
        "--privileged",
        "a b",
        "",
        "image:tag:tag",
        "x#dir:/root",
    ],
)
def test_a_file_or_folder_of_this_machine_is_none(image: str) -> None:
    assert not is_reference(image)


pytest_root = pytest.mark.skipif(os.getuid() != 0, reason="only root runs the tool for others")


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


@pytest_root
@pytest.mark.slow
def test_an_archive_is_refused_before_root_reads_it(inside: Here) -> None:
    launch = Launch(argv=("true",), image="docker-archive:/root/secret.tar")

    inside.run(launch, Wanted(user="daemon"))

    why = inside.ends().why
    assert isinstance(why, LaunchFailed)
    assert "is not the name of an image in a registry" in why.text


@pytest_root
@pytest.mark.slow
def test_what_is_mounted_is_what_the_user_could_open(
    inside: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user swaps the folder for a link to root's after it was looked at."""
    secret = inside.home / "secret"
    secret.mkdir(mode=0o700)
    (secret / "key").write_text("secret", encoding="utf-8")
    folder = inside.home / "folder"
    folder.mkdir(mode=0o777)
    user = local_user("daemon")
    monkeypatch.chdir(inside.home)
    images = Images(launched(), user, str(folder))
    inner = images.wrapped(("sh", "-c", "echo *"), 0, {})

    folder.rename(inside.home / "elsewhere")
    folder.symlink_to(secret)
    way = Invocation(
        argv=inner.argv,
        user=user,
        group=None,
        folder="/",
        umask=None,
        cpus=(),
        as_root=True,
        binds=inner.binds,
    )

    with pytest.raises(LaunchError, match=r"cannot enter .*folder: Permission denied"):
        begin(way, inner.env, Streams(stdin=None, stdout="out", stderr=None))


def launched() -> spool.LaunchFile:
    """As much of a launch as an image needs."""
    found: dict[str, object] = {
        "image": IMAGE,
        "script": None,
        "tasks": [{"gpus": []}],
        "memory_mib": 0,
        "cpu_milli": 0,
        "terminal": None,
        "mps": None,
        "processes": 0,
        "marker": f"swap.{os.getpid()}",
    }
    return cast("spool.LaunchFile", found)


@pytest_root
@pytest.mark.slow
def test_a_job_in_an_image_still_has_its_folder(inside: Here) -> None:
    launch = Launch(argv=("sh", "-c", "pwd; touch made"), image=IMAGE, stdout="out")

    inside.run(launch, Wanted(user="daemon"))

    assert inside.ends().why == Exited(code=0)
    assert inside.text("out") == f"{inside.work}\n"
    assert (inside.work / "made").owner() == "daemon"


@pytest_root
@pytest.mark.slow
def test_a_fork_bomb_in_an_image_ends_at_the_limit_of_its_job(inside: Here) -> None:
    bomb = "n=0; while test $n -lt 200; do sleep 60 & n=$((n + 1)); done"
    confined = Confinement(processes=40)

    inside.run(
        Launch(argv=("sh", "-c", bomb), image=IMAGE, stdout="out", stderr="err"),
        Wanted(user="daemon", confinement=confined),
    )

    assert inside.ends().why != Exited(code=0)
    assert "fork" in inside.text("err")


@pytest_root
@pytest.mark.slow
def test_each_task_in_an_image_has_its_own_part_of_the_memory(inside: Here) -> None:
    """The second task may not use what the first one leaves."""
    hungry = "test $MUSTER_RANK = 0 || { a=x; while true; do a=$a$a; done; }"
    shows = "cat /proc/self/cgroup > group-$MUSTER_RANK"

    inside.run(
        Launch(argv=("sh", "-c", f"{shows}; {hungry}"), image=IMAGE),
        Wanted(user="daemon", tasks=2, memory_mib=64),
    )

    assert isinstance(inside.ends().why, OutOfMemory)
    for rank in range(2):
        assert f"/1.1/task-{rank}/" in inside.text(f"group-{rank}")


@pytest_root
@pytest.mark.slow
def test_a_job_in_an_image_runs_behind_the_wall_of_devices(
    podman: Podman, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container's group is within the job's, and is allowed no more than that."""
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    here = Here(home, Walled())
    here.work.chmod(0o777)
    here.adopts()
    try:
        launch = Launch(argv=("sh", "-c", "cat /proc/self/cgroup"), image=IMAGE, stdout="out")
        here.run(launch, Wanted(user="daemon", memory_mib=64, confinement=Confinement()))

        assert here.ends().why == Exited(code=0)
        lines = here.text("out").splitlines()
        kept = [line for line in lines if ":devices:" in line or line.startswith("0::")]
        assert kept
        assert any("/1.1" in line for line in kept)
    finally:
        here.leaves()


@pytest_root
@pytest.mark.slow
def test_a_job_in_an_image_leaves_no_group_behind(inside: Here) -> None:
    before = groups()

    inside.run(
        Launch(argv=("true",), image=IMAGE),
        Wanted(user="daemon", tasks=2, memory_mib=64, confinement=Confinement()),
    )

    assert inside.ends().why == Exited(code=0)
    inside.until_gone(lambda: not [each for each in groups() - before if "1.1" in each.name])


def groups() -> set[Path]:
    return {Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup")}
