"""Gangs of pods on this machine: each task is a pod with containers and files of its own."""

import asyncio
from contextlib import closing

import pytest

from local.here import Here, Wanted, run_of
from muster.backends.base import OutputQuery, Signal, Stop
from muster.model.event import PodSeen
from muster.model.job import Cancelled, Exited
from muster.model.launch import Launch
from muster.model.pod import Container, Phase, PodGang, PodLaunch, PodStatus, Restart
from muster.model.running import STDOUT, RunInside
from muster.model.value import Duration, JobId, UserName, replace

SIGTERM = 15
TWO = Wanted(tasks=2)


pytestmark = pytest.mark.slow


@pytest.fixture
def bare(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """This machine without a container tool: pods run without their images."""
    nowhere = here.home / "empty"
    nowhere.mkdir()
    monkeypatch.setenv("PATH", str(nowhere))
    return here


def starts(here: Here, launch: Launch) -> None:
    here.backend.do(replace(run_of(launch, TWO), images_on_host=True))


def a_pod(rank: int, text: str) -> PodLaunch:
    main = Container(name="main", image="any:1", entrypoint=("/bin/sh", "-c"), args=(text,))
    return PodLaunch(
        namespace="team",
        name=f"p-{rank}",
        uid=f"u-{rank}",
        containers=(main,),
        restart=Restart.NEVER,
        grace_s=2,
        hostname=f"p-{rank}",
    )


def a_gang(*texts: str, leader: int | None = None) -> Launch:
    pods = tuple(a_pod(rank, text) for rank, text in enumerate(texts))
    return Launch(argv=("x",), pod=pods[0], gang=PodGang(pods=pods, leader=leader))


def statuses(here: Here) -> dict[int, PodStatus]:
    return {each.task: each.status for each in here.heard if isinstance(each, PodSeen)}


def written(here: Here, launch: Launch, task: int) -> bytes:
    run = run_of(launch, TWO)
    query = OutputQuery(
        job=run.job, launch=launch, attempt=1, nodes=(), task=task, container="main"
    )
    return here.backend.output(query).content


def is_over(here: Here, task: int) -> bool:
    return task in statuses(here) and statuses(here)[task].over


def test_each_task_is_a_pod_with_its_own_log_and_status(bare: Here) -> None:
    launch = a_gang("echo I am $HOSTNAME", "echo I am $HOSTNAME; exit 3")

    starts(bare, launch)

    assert bare.ends().why == Exited(code=3)
    assert b"I am p-0" in written(bare, launch, 0)
    assert b"I am p-1" in written(bare, launch, 1)
    ends = {task: seen.containers[0].ended for task, seen in statuses(bare).items()}
    assert {task: end.code for task, end in ends.items() if end is not None} == {0: 0, 1: 3}
    assert all(seen.over for seen in statuses(bare).values())


def test_a_gang_with_a_leader_ends_as_its_leader_does(bare: Here) -> None:
    starts(bare, a_gang("exit 0", "exit 3", leader=0))

    assert bare.ends().why == Exited(code=0)


def all_run(here: Here) -> None:
    runs = Phase.RUNNING
    here.until(lambda: len(statuses(here)) == 2)
    here.until(lambda: all(each.containers[0].phase is runs for each in statuses(here).values()))


def test_every_pod_of_a_gang_can_be_entered(bare: Here) -> None:
    starts(bare, a_gang("/bin/sleep 100", "/bin/sleep 100"))
    all_run(bare)
    asked = RunInside(container="main", argv=("/bin/sh", "-c", "echo $HOSTNAME"))

    said: list[tuple[int, bytes]] = []
    for task in (0, 1):
        with closing(bare.backend.visit(JobId(1), 1, task, asked)) as stream:
            said.append(asyncio.run(stream.read()))

    assert said == [(STDOUT, b"p-0\n"), (STDOUT, b"p-1\n")]
    why = Cancelled(by=UserName("ann"))
    bare.backend.do(Stop(job=JobId(1), attempt=1, why=why, grace=Duration(1_000)))
    assert bare.ends().why == why


def test_one_pod_of_a_gang_can_be_ended_and_the_others_go_on(bare: Here) -> None:
    starts(bare, a_gang("/bin/sleep 100", "/bin/sleep 100"))
    all_run(bare)

    bare.backend.do(Signal(job=JobId(1), attempt=1, signal=SIGTERM, task=1))

    bare.until(lambda: is_over(bare, 1))
    assert not is_over(bare, 0)
    why = Cancelled(by=UserName("ann"))
    bare.backend.do(Stop(job=JobId(1), attempt=1, why=why, grace=Duration(1_000)))
    assert bare.ends().why == why
