import signal
from pathlib import Path

import pytest

from local.asker import Asker
from local.here import Here, Wanted, is_gone
from muster.backends.base import Continue, Stop, Suspend
from muster.model.event import Event, JobEnded, JobStarted, JobSuspended, StepBegan, StepEnded
from muster.model.job import Cancelled, Exited, NodeFailed, Signaled
from muster.model.launch import Launch, Runs
from muster.model.resources import Resources
from muster.model.steps import Step
from muster.model.value import Duration, JobId, NodeId, UserName

WAITS = "while ! test -e go; do sleep 0.02; done"
HELD = Launch(runs=Runs.STEPS_ONLY)


def reported_steps(events: list[Event], kind: type[StepBegan | StepEnded]) -> list[Step]:
    return [event.step for event in events if isinstance(event, kind)]


def begun_step(here: Here, text: str, **wish: object) -> Asker:
    asker = Asker(here.folder())
    asker.wants(**wish)
    asker.hears("created")
    asker.launches("/bin/sh", "-c", text, cwd=here.work)
    asker.hears("started")
    return asker


def test_a_step_is_reported_with_what_it_may_use_and_how_it_ended(here: Here) -> None:
    here.shell(WAITS, Wanted(tasks=2))

    with begun_step(here, "exit 3") as asker:
        assert asker.hears("exited")["status"] == 3 << 8
        asker.hears("over")
    here.until(lambda: bool(reported_steps(here.heard, StepEnded)))

    (began,) = reported_steps(here.heard, StepBegan)
    (ended,) = reported_steps(here.heard, StepEnded)
    assert (began.job, began.attempt, began.number, began.name) == (1, 1, 0, "step")
    assert (began.tasks, began.nodes) == (1, (NodeId("n1"),))
    assert began.amount == Resources(cpu_milli=1_000)
    assert (ended.code, ended.signal, ended.began_at) == (3, 0, began.began_at)
    assert ended.ended_at is not None
    assert ended.used is not None
    (here.work / "go").touch()
    here.ends()


def test_what_happened_to_steps_is_reported_again_after_adoption(home: Path) -> None:
    first = Here(home)
    first.adopts()
    run = first.shell(WAITS)
    with begun_step(first, "exit 1") as asker:
        asker.hears("over")
    going = begun_step(first, "echo $$ > pid; sleep 600")
    first.until(lambda: len(reported_steps(first.heard, StepBegan)) == 2)
    first.until(lambda: len(reported_steps(first.heard, StepEnded)) == 1)
    first.backend.close()

    second = Here(home)
    second.adopts(run)
    second.until(lambda: len(reported_steps(second.heard, StepBegan)) == 2)
    pid = second.pid_in("pid")
    with going:
        going.says("signal", signal=int(signal.SIGTERM))
        going.hears("over")
    second.until(lambda: len(reported_steps(second.heard, StepEnded)) == 2)

    reported = reported_steps(second.heard, StepEnded)
    assert reported_steps(first.heard, StepEnded) == reported[:1]
    assert reported_steps(first.heard, StepBegan) == reported_steps(second.heard, StepBegan)
    assert (reported[1].number, reported[1].signal) == (1, signal.SIGTERM)
    assert is_gone(pid)
    second.leaves()


def test_steps_end_with_their_supervisor_and_their_ends_are_reported_first(here: Here) -> None:
    here.shell(WAITS)
    with begun_step(here, "echo $$ > pid; sleep 600") as asker:
        pid = here.pid_in("pid")
        here.kill_supervisor()

        assert here.ends().why == NodeFailed(node=NodeId("n1"))
        assert asker.is_hung_up()
    here.until(lambda: is_gone(pid))
    kinds = [type(event) for event in here.heard if isinstance(event, StepEnded | JobEnded)]
    assert kinds == [StepEnded, JobEnded]
    assert reported_steps(here.heard, StepEnded)[0].signal == signal.SIGKILL


def test_a_step_ends_with_its_client(here: Here) -> None:
    here.shell(WAITS)
    asker = begun_step(
        here, "(setsid sh -c 'echo $$ > deep; exec sleep 600' &) ; echo $$ > pid; wait; sleep 600"
    )
    pid, deep = here.pid_in("pid"), here.pid_in("deep")
    with asker:
        pass

    here.until(lambda: is_gone(pid))
    here.until(lambda: bool(reported_steps(here.heard, StepEnded)))
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)
    here.until(lambda: is_gone(deep))


def test_steps_that_go_on_when_the_command_is_over_are_ended(here: Here) -> None:
    here.shell(WAITS)
    with begun_step(
        here, "trap 'echo saved > saved; exit 0' TERM; touch go; while :; do sleep 0.02; done"
    ):
        assert here.ends().why == Exited(code=0)

    assert here.text("saved") == "saved\n"


def test_a_step_that_takes_too_long_is_ended(here: Here) -> None:
    here.shell(WAITS)
    with begun_step(here, "sleep 600", limit_ms=100) as asker:
        assert asker.hears("aborted")["why"] == "DUE TO TIME LIMIT"
        assert asker.hears("exited")["status"] == signal.SIGTERM


def test_steps_wait_until_there_is_room(here: Here) -> None:
    here.shell(WAITS)
    first = begun_step(here, "sleep 600")
    with Asker(here.folder()) as second:
        second.wants()
        second.hears("busy")
        with first:
            pass

        assert second.hears("created")["step"] == 1


def test_what_cannot_be_is_refused(here: Here) -> None:
    here.shell(WAITS)
    with Asker(here.folder()) as asker:
        asker.wants(tasks=1_000)

        assert asker.hears("refused")["text"] == "More processors requested than permitted"


@pytest.mark.parametrize("wish", [{"tasks": 0}, {"cpus_per_task": 0}, {"gpus": -1}, {"odd": 1}])
def test_who_makes_no_sense_is_hung_up_on_and_the_job_goes_on(
    here: Here, wish: dict[str, object]
) -> None:
    here.shell(WAITS)
    with Asker(here.folder()) as asker:
        asker.wants(**wish)
        assert asker.is_hung_up()

    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)


def test_nothing_begins_while_the_attempt_stands_still(here: Here) -> None:
    here.shell(WAITS)
    here.sees(JobStarted)
    here.backend.do(Suspend(job=JobId(1), attempt=1))
    here.sees(JobSuspended)
    with Asker(here.folder()) as asker:
        asker.wants()
        here.backend.do(Continue(job=JobId(1), attempt=1))
        asker.hears("created")


def test_a_held_attempt_ends_as_its_holder_says(here: Here) -> None:
    here.run(HELD)
    with Asker(here.folder()) as holder:
        holder.says("hold")
        assert holder.hears("held")["env"]["SLURM_JOB_ID"] == "1"
        with begun_step(here, "exit 0") as step:
            step.hears("over")
        holder.says("release", keep=False, code=0, signal=9)
        assert here.ends().why == Signaled(signal=9)


def test_a_held_attempt_is_cancelled_when_its_holder_is_gone(here: Here) -> None:
    run = here.run(HELD)
    with Asker(here.folder()) as holder:
        holder.says("hold")
        holder.hears("held")

    assert here.ends().why == Cancelled(by=run.job.spec.user)


def test_the_holder_hears_when_the_attempt_is_taken_away(here: Here) -> None:
    here.run(HELD)
    with Asker(here.folder()) as holder:
        holder.says("hold")
        holder.hears("held")
        why = Cancelled(by=UserName("ada"))
        here.backend.do(Stop(job=JobId(1), attempt=1, why=why, grace=Duration(5_000)))

        holder.hears("revoked")
    assert here.ends().why == why
