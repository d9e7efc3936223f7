import os
import signal
from pathlib import Path

import pytest

from local.here import Here, Wanted, is_gone, now
from muster.backends.base import Continue, Limit, Signal, Stop, Suspend
from muster.model.event import JobCheckpointed, JobStarted, JobSuspended
from muster.model.job import (
    Cancelled,
    Exited,
    OutOfMemory,
    Preempted,
    Signaled,
    TimedOut,
)
from muster.model.launch import Checkpointing, Launch, Warn
from muster.model.value import Duration, Instant, JobId, NodeId, UserName

CANCELLED = Cancelled(by=UserName("ann"))
PREEMPTED = Preempted(by=JobId(2))
STUBBORN = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done"
LISTENS = """
import signal, time
def heard(number, frame):
    print(signal.Signals(number).name, flush=True)
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(number, heard)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
SAVES = """
import os, signal, time
def save(number, frame):
    with open("model.pt.tmp", "w") as file:
        file.write("weights")
    os.rename("model.pt.tmp", "model.pt")
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def python(text: str, **more: object) -> Launch:
    return Launch(argv=("python3", "-c", text), stdout="out", **more)  # type: ignore[arg-type]


def stop(
    grace_ms: int, *, why: Cancelled | Preempted = CANCELLED, checkpoint: bool = False
) -> Stop:
    return Stop(job=JobId(1), attempt=1, why=why, grace=Duration(grace_ms), checkpoint=checkpoint)


def test_a_cancelled_job_ends_for_that_reason(here: Here) -> None:
    here.shell("sleep 600")
    here.sees(JobStarted)

    here.backend.do(stop(10_000))

    assert here.ends().why == CANCELLED


def test_a_stop_that_comes_before_the_supervisor_is_up_is_obeyed(here: Here) -> None:
    here.shell("sleep 600")

    here.backend.do(stop(10_000))

    assert here.ends().why == CANCELLED


def test_a_stop_of_an_attempt_that_was_never_begun_ends_it(here: Here) -> None:
    here.backend.do(stop(10_000))

    assert here.ends().why == CANCELLED


def test_after_such_a_stop_a_late_run_begins_nothing(here: Here) -> None:
    here.backend.do(stop(10_000))
    here.ends()

    here.shell("echo ran > ran")
    here.shell("true", Wanted(job=2))

    here.ends(2)
    assert not here.text("ran")
    assert not (here.folder() / "begun.json").exists()


def test_who_ignores_sigterm_is_killed_after_the_grace(here: Here) -> None:
    here.shell(STUBBORN)
    pid = here.pid_in("pid")
    before = now()

    here.backend.do(stop(500))

    ended = here.ends()
    assert ended.why == CANCELLED
    assert ended.at - before >= 500
    assert is_gone(pid)


def test_a_second_stop_can_only_make_it_sooner(here: Here) -> None:
    here.shell(STUBBORN)
    here.pid_in("pid")

    here.backend.do(stop(600_000))
    here.backend.do(stop(100))

    assert here.ends().why == CANCELLED


def test_a_job_that_ended_by_itself_keeps_its_own_end(here: Here) -> None:
    here.shell("exit 4")
    here.until((here.folder() / "end.json").exists)

    here.backend.do(stop(1_000))

    assert here.ends().why == Exited(code=4)


def test_daemons_in_sessions_of_their_own_end_with_the_job(here: Here) -> None:
    here.shell("setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; exec sleep 600' & sleep 600")
    daemon = here.pid_in("pid")

    here.backend.do(stop(200))

    here.ends()
    assert is_gone(daemon)


def test_what_a_finished_job_left_running_ends_with_it(here: Here) -> None:
    here.shell("(setsid sh -c 'echo $$ > pid; exec sleep 600' &) ; while ! test -s pid; do :; done")

    assert here.ends().why == Exited(code=0)
    assert is_gone(here.pid_in("pid"))


def test_the_time_limit_warns_then_asks_then_kills(here: Here) -> None:
    warn = Warn(signal=signal.SIGUSR1, lead=Duration(1_000))
    here.run(python(LISTENS, warn=warn), Wanted(limit_ms=600_000))
    here.until(lambda: here.text("out") == "ready\n")
    here.backend.do(Limit(job=JobId(1), attempt=1, ends_at=Instant(now() + 1_300)))
    here.until(lambda: here.text("out") == "ready\nSIGUSR1\n")
    here.until(lambda: here.text("out") == "ready\nSIGUSR1\nSIGTERM\n")

    here.backend.do(stop(100))

    why = here.ends().why
    assert isinstance(why, TimedOut)


def test_a_job_that_heeds_sigterm_at_its_limit_has_timed_out(here: Here) -> None:
    here.shell("sleep 600", Wanted(limit_ms=300))

    ended = here.ends()

    assert ended.why == TimedOut(limit=Duration(300))
    assert ended.at - here.sees(JobStarted).at >= 300


def test_a_limit_that_is_lifted_ends_nothing(here: Here) -> None:
    here.shell("while ! test -e go; do sleep 0.02; done", Wanted(limit_ms=400))
    here.backend.do(Limit(job=JobId(1), attempt=1, ends_at=None))
    started = here.sees(JobStarted).at
    here.until(lambda: now() > started + 700)

    (here.work / "go").touch()

    assert here.ends().why == Exited(code=0)


def test_a_warning_does_not_end_who_does_not_listen(here: Here) -> None:
    warn = Warn(signal=signal.SIGUSR1, lead=Duration(60_000))
    launch = Launch(argv=("sh", "-c", "echo $$ > pid; sleep 0.3"), warn=warn)

    here.run(launch, Wanted(limit_ms=30_000))

    assert here.ends().why == Exited(code=0)


def test_a_signal_reaches_the_listener_and_spares_its_shell(here: Here) -> None:
    (here.work / "listens.py").write_text(LISTENS)
    here.run(Launch(argv=("sh", "-c", "python3 listens.py; true"), stdout="out"))
    here.until(lambda: here.text("out") == "ready\n")

    here.backend.do(Signal(job=JobId(1), attempt=1, signal=signal.SIGUSR2))

    here.until(lambda: here.text("out") == "ready\nSIGUSR2\n")
    here.backend.do(stop(0))
    assert here.ends().why == CANCELLED


def test_a_signal_for_the_shell_alone_goes_to_the_first_process(here: Here) -> None:
    here.shell("trap 'exit 7' USR1; touch ready; while :; do sleep 0.05; done", Wanted(tasks=1))
    here.until((here.work / "ready").exists)

    here.backend.do(Signal(job=JobId(1), attempt=1, signal=signal.SIGUSR1, shell_only=True))

    assert here.ends().why == Exited(code=7)


def test_a_signal_that_ends_the_job_is_its_end(here: Here) -> None:
    here.shell("exec sleep 600")
    here.sees(JobStarted)

    here.backend.do(Signal(job=JobId(1), attempt=1, signal=signal.SIGKILL))

    assert here.ends().why == Signaled(signal=9)


def test_a_suspended_job_stands_still_and_goes_on(here: Here) -> None:
    here.shell("i=0; while ! test -e go; do i=$((i+1)); echo $i > count; done; echo over > over")
    here.until(lambda: here.text("count") != "")

    here.backend.do(Suspend(job=JobId(1), attempt=1))
    suspended = here.sees(JobSuspended)
    before = here.text("count")
    (here.work / "go").touch()
    here.until(lambda: now() > suspended.at + 300)

    assert here.text("count") == before
    assert not here.text("over")
    here.backend.do(Continue(job=JobId(1), attempt=1))
    assert here.ends().why == Exited(code=0)


def test_standing_still_does_not_use_up_the_time_limit(here: Here) -> None:
    here.shell("sleep 0.2; while ! test -e go; do sleep 0.02; done", Wanted(limit_ms=1_500))
    here.sees(JobStarted)
    here.backend.do(Suspend(job=JobId(1), attempt=1))
    suspended = here.sees(JobSuspended)
    here.until(lambda: now() > suspended.at + 1_800)
    (here.work / "go").touch()

    here.backend.do(Continue(job=JobId(1), attempt=1))

    assert here.ends().why == Exited(code=0)


def test_a_suspended_job_can_be_stopped(here: Here) -> None:
    here.shell("trap 'echo heard > heard; exit 0' TERM; touch ready; while :; do sleep 0.05; done")
    here.until((here.work / "ready").exists)
    here.backend.do(Suspend(job=JobId(1), attempt=1))
    here.sees(JobSuspended)

    here.backend.do(stop(10_000))

    assert here.ends().why == CANCELLED
    assert here.text("heard") == "heard\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root has cgroups to limit memory with")
def test_too_much_memory_is_out_of_memory(here: Here) -> None:
    here.python("x = bytearray(200 << 20)", Wanted(memory_mib=64))

    ended = here.ends()

    assert ended.why == OutOfMemory(node=NodeId("n1"))
    assert ended.used is not None
    assert 0 < ended.used.max_memory_mib <= 64


def test_a_checkpoint_counts_when_it_is_finished(here: Here) -> None:
    line = "echo half > model.tmp; touch ready; while ! test -e go; do sleep 0.02; done"
    launch = Launch(
        argv=("sh", "-c", f"{line}; mv model.tmp model.pt; sleep 600"),
        checkpoint=Checkpointing(path="model.*"),
    )
    here.run(launch)
    here.until((here.work / "ready").exists)
    assert here.sees(JobStarted)
    assert not (here.folder() / "checkpoint.json").exists()

    (here.work / "go").touch()

    assert here.sees(JobCheckpointed).path == str(here.work / "model.pt")


def test_a_checkpoint_that_is_still_being_written_does_not_count(here: Here) -> None:
    line = "echo old > a.pt; while ! test -e go; do echo more >> b.pt; sleep 0.02; done"
    launch = Launch(argv=("sh", "-c", f"{line}; sleep 600"), checkpoint=Checkpointing(path="*.pt"))

    here.run(launch)

    assert here.sees(JobCheckpointed).path == str(here.work / "a.pt")
    (here.work / "go").touch()
    assert here.sees(JobCheckpointed, again=True).path == str(here.work / "b.pt")


def test_a_checkpoint_from_before_the_attempt_does_not_count(here: Here) -> None:
    (here.work / "model.pt").write_text("old")
    os.utime(here.work / "model.pt", (1_000_000, 1_000_000))

    here.run(Launch(argv=("true",), checkpoint=Checkpointing(path="model.pt")))

    here.ends()
    assert not [event for event in here.heard if isinstance(event, JobCheckpointed)]


def test_a_checkpoint_written_last_of_all_is_seen(here: Here) -> None:
    launch = Launch(
        argv=("sh", "-c", "echo weights > model.pt"), checkpoint=Checkpointing(path="model.pt")
    )

    here.run(launch)

    ended = here.ends()
    seen = here.sees(JobCheckpointed)
    assert here.heard.index(seen) < here.heard.index(ended)


def test_a_preempted_job_writes_a_checkpoint_and_then_ends(here: Here) -> None:
    checkpoint = Checkpointing(path="model.pt", signal=signal.SIGUSR1)
    here.run(python(SAVES, checkpoint=checkpoint))
    here.until(lambda: here.text("out") == "ready\n")
    before = now()

    here.backend.do(stop(60_000, why=PREEMPTED, checkpoint=True))

    ended = here.ends()
    assert ended.why == PREEMPTED
    assert ended.at - before < 20_000
    assert here.sees(JobCheckpointed).path == str(here.work / "model.pt")


def test_a_job_that_writes_no_checkpoint_ends_within_its_grace(here: Here) -> None:
    checkpoint = Checkpointing(path="model.pt", signal=signal.SIGUSR1)
    here.run(python(LISTENS, checkpoint=checkpoint))
    here.until(lambda: here.text("out") == "ready\n")
    before = now()

    here.backend.do(stop(1_000, why=PREEMPTED, checkpoint=True))

    ended = here.ends()
    assert ended.why == PREEMPTED
    assert 1_000 <= ended.at - before < 5_000
    assert here.text("out") == "ready\nSIGUSR1\nSIGTERM\n"


def test_nothing_of_an_ended_job_is_left_anywhere(here: Here) -> None:
    here.shell("true", Wanted(memory_mib=64))

    here.ends()

    token = (here.home / "spool" / "token").read_text()
    parents = list(Path("/sys/fs/cgroup").glob(f"**/muster-{token[:12]}"))
    assert [group for parent in parents for group in parent.iterdir() if group.is_dir()] == []
    here.until(lambda: here.remnants() == [])
