from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.images import IMAGE, MODEST, ONLY_IN_THE_IMAGE, Podman, own_podman
from local.here import Here, Wanted, run_of
from muster.backends.base import Continue, Stop, Suspend
from muster.model.event import JobStarted, JobSuspended
from muster.model.job import Cancelled, Exited, LaunchFailed, NodeFailed
from muster.model.launch import Launch
from muster.model.value import Duration, JobId, NodeId, UserName, replace

pytestmark = pytest.mark.slow

CANCELLED = Cancelled(by=UserName("ann"))


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        yield found


@pytest.fixture
def inside(podman: Podman, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """This machine, with a podman that knows the image."""
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    here = Here(home)
    here.work.chmod(0o777)
    here.adopts()
    yield here
    here.leaves()


def in_image(text: str) -> Launch:
    return Launch(argv=("sh", "-c", text), image=IMAGE, stdout="out", env={"GREETING": "hello you"})


def names(podman: Podman) -> str:
    return podman.asks("ps", "--all", "--format", "{{.Names}}")


def test_a_job_runs_in_its_image_as_its_user(inside: Here, podman: Podman) -> None:
    line = f"cat {ONLY_IN_THE_IMAGE}; id -u; pwd; echo $GREETING $MUSTER_JOB_ID; touch made"

    inside.run(in_image(line), Wanted(user="daemon"))

    assert inside.ends().why == Exited(code=0)
    lines = inside.text("out").splitlines()
    assert lines == ["only the image has this", "1", str(inside.work), "hello you 1"]
    assert (inside.work / "made").owner() == "daemon"
    assert names(podman) == ""


def test_a_script_runs_in_its_image(inside: Here) -> None:
    launch = Launch(script="#!/bin/sh\necho $1; exit 4\n", argv=("one",), image=IMAGE, stdout="out")

    inside.run(launch, Wanted(user="daemon"))

    assert inside.ends().why == Exited(code=4)
    assert inside.text("out") == "one\n"


def test_a_container_that_ignores_sigterm_is_removed(inside: Here, podman: Podman) -> None:
    inside.run(in_image("trap 'echo heard' TERM; echo ready; while true; do sleep 0.05; done"))
    inside.until(lambda: inside.text("out") == "ready\n")

    inside.backend.do(Stop(job=JobId(1), attempt=1, why=CANCELLED, grace=Duration(1_000)))

    assert inside.ends().why == CANCELLED
    assert inside.text("out") == "ready\nheard\n"
    assert names(podman) == ""


def test_a_container_can_be_suspended(inside: Here) -> None:
    inside.run(in_image("while ! test -e go; do sleep 0.02; done"))
    inside.sees(JobStarted)
    inside.until(lambda: inside.text("out") == "")

    inside.backend.do(Suspend(job=JobId(1), attempt=1))
    inside.sees(JobSuspended)
    (inside.work / "go").touch()
    inside.backend.do(Continue(job=JobId(1), attempt=1))

    assert inside.ends().why == Exited(code=0)


def test_a_container_whose_supervisor_is_killed_is_removed(inside: Here, podman: Podman) -> None:
    inside.run(in_image("echo ready; while true; do sleep 0.05; done"))
    inside.until(lambda: inside.text("out") == "ready\n")

    inside.kill_supervisor()

    assert inside.ends().why == NodeFailed(node=NodeId("n1"))
    assert names(podman) == ""
    inside.until(lambda: inside.remnants() == [])


def test_without_a_tool_an_image_is_refused_or_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "bin").mkdir()
    monkeypatch.setenv("PATH", str(home / "bin"))
    here = Here(home)
    here.adopts()
    launch = replace(in_image("echo ran"), argv=("/bin/echo", "ran"), workdir=str(here.work))

    here.backend.do(run_of(launch, Wanted()))
    here.backend.do(replace(run_of(launch, Wanted(job=2)), images_on_host=True))

    why = here.ends().why
    assert isinstance(why, LaunchFailed)
    assert why.text.startswith("no podman, docker or apptainer on this machine; install one")
    assert here.ends(2).why == Exited(code=0)
    assert here.text("out") == "ran\n"
    here.leaves()
