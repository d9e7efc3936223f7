"""What is made of a Slurm that forgets, repeats numbers, or runs again what had ended."""

import contextlib
import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from muster.backends.attempts import Deed, Kill
from muster.backends.base import Run, Stop
from muster.backends.slurm.listing import QueuedJob
from muster.backends.slurm.nodes import Fleet, Partition, SlurmNode
from muster.backends.slurm.orders import Orders
from muster.backends.slurm.register import Register
from muster.backends.slurm.submission import Manner, Submission
from muster.backends.slurm.topology import Topology
from muster.backends.slurm.usage import Usage
from muster.backends.slurm.watch import Watch
from muster.backends.slurm.wire import (
    SlurmDownError,
    SlurmNotYetError,
    SlurmRefusedError,
    Submitted,
)
from muster.model.event import JobCheckpointed, JobEnded, JobStarted
from muster.model.job import Cancelled, Exited, LaunchFailed, NodeFailed, Requeued
from muster.model.launch import Checkpointing, Launch
from muster.model.value import ClusterName, Duration, Instant, JobId, UserName, replace
from unit.backends.slurm.given import line, listed, only, run

ME = UserName(pwd.getpwuid(os.getuid()).pw_name)
MARK = "muster:here:7.1"


class Slurm:
    """A cluster that says what it is told to say, and remembers what was asked of it."""

    def __init__(self) -> None:
        self.says: list[str] = []
        self.accounts: QueuedJob | None = None
        self.deeds: list[tuple[str, Deed]] = []
        self.answers: Submitted = "12"
        self.submitted = 0
        self.now = Instant(1_000_000)

    def clock(self) -> Instant:
        return self.now

    def jobs(self) -> tuple[QueuedJob, ...]:
        return listed("\n".join(self.says))

    def partitions(self) -> tuple[Partition, ...]:
        return ()

    def nodes(self, fleet: Fleet) -> tuple[SlurmNode, ...]:
        del fleet
        return ()

    def topology(self) -> Topology:
        return Topology()

    def finished(self, handle: str) -> QueuedJob | None:
        del handle
        return self.accounts

    def usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        del handles
        return {}

    def submit(self, asked: Sequence[tuple[Submission, UserName]]) -> Sequence[Submitted]:
        self.submitted += len(asked)
        return [self.answers] * len(asked)

    def do(self, handle: str, deed: Deed) -> None:
        self.deeds.append((handle, deed))

    def signal_step(self, handle: str, step: int, number: int) -> None:
        raise NotImplementedError

    def suspend(self, handle: str) -> None:
        raise NotImplementedError

    def limit(self, handle: str, minutes: int | None) -> None:
        raise NotImplementedError


class Desk:
    """A register with one attempt that was submitted as job 12, and who looks after it.

    answers: what came of the submission; empty where there was none.
    """

    def __init__(self, folder: Path, answers: Submitted = "12") -> None:
        self.slurm = Slurm()
        self.slurm.answers = answers
        self.register = Register(ClusterName("lab"), "here", folder)
        clock = self.slurm.clock
        self.orders = Orders(self.register, self.slurm, Manner(), clock)
        self.watch = Watch(self.register, self.slurm, Manner(), clock)
        if answers:
            self.orders.take(_ours())
            self.orders.submit()
        else:
            self.register.adopt(())

    @classmethod
    def reopened(cls, folder: Path) -> "Desk":
        """After a restart that wants nothing of what was there."""
        return cls(folder, "")

    def sees(self, *lines: str, after_ms: int = 500) -> None:
        self.slurm.says = list(lines)
        self.slurm.now = Instant(self.slurm.now + after_ms)
        self.watch.look(self.slurm.now)
        with contextlib.suppress(SlurmDownError):
            self.orders.submit_again()

    def told(self) -> list[object]:
        events = self.register.news
        return [each.why if isinstance(each, JobEnded) else type(each) for each in events]


def _ours(launch: Launch = Launch(argv=("true",))) -> Run:  # noqa: B008 -- a value
    sent = run(launch, ("node1", 1))
    job = replace(sent.job, spec=replace(sent.job.spec, user=ME))
    return replace(sent, job=job)


def said(
    state: str, *, id: str = "12", mark: str = MARK, uid: int | None = None, **fields: str
) -> str:
    times = {"StartTime": "1000", "EndTime": "N/A"} | fields
    return line(
        JobID=id,
        State=state,
        UserID=str(os.getuid() if uid is None else uid),
        Comment=mark,
        **times,
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_an_attempt_that_is_listed_no_more_is_given_up_after_a_while(desk: Desk) -> None:
    desk.sees(said("RUNNING"))
    desk.sees()
    assert desk.told() == [JobStarted]

    desk.sees(after_ms=11_000)

    assert desk.told() == [JobStarted, NodeFailed(node=_ours().allocation.placements[0].node)]


def test_one_that_comes_back_was_never_lost(desk: Desk) -> None:
    desk.sees(said("RUNNING"))
    desk.sees()
    desk.sees(said("RUNNING"))
    desk.sees(after_ms=9_000)

    assert desk.told() == [JobStarted]


def test_a_number_that_was_given_again_tells_nothing_of_who_had_it(desk: Desk) -> None:
    desk.sees(said("RUNNING"))
    desk.slurm.accounts = only(said("COMPLETED", EndTime="1200"))

    desk.sees(said("RUNNING", mark="(null)"))

    assert desk.told() == [JobStarted]


def test_accounting_tells_of_this_attempt_and_not_of_an_older_job(desk: Desk) -> None:
    desk.sees(said("RUNNING"))
    desk.slurm.accounts = only(said("COMPLETED", EndTime="500"))
    desk.sees()
    assert desk.told() == [JobStarted]

    desk.slurm.accounts = only(said("COMPLETED", EndTime="1200"))
    desk.sees()

    assert desk.told() == [JobStarted, Exited(code=0)]


def test_what_slurm_is_about_to_run_once_more_ends_instead(desk: Desk) -> None:
    desk.sees(said("RUNNING"))

    desk.sees(said("PENDING", NodeList="(null)"))

    assert desk.slurm.deeds == [("12", Kill())]
    assert desk.told() == [JobStarted, Requeued(by=UserName("slurm"))]


def test_what_had_ended_does_not_run_again(desk: Desk) -> None:
    desk.sees(said("COMPLETED", EndTime="1001"))
    assert desk.told() == [JobStarted, Exited(code=0)]

    desk.sees(said("RUNNING"))
    desk.register.forget((_ours().job.id, 1))
    desk.sees(said("RUNNING"))
    desk.sees(said("RUNNING", id="13"))

    assert desk.slurm.deeds == [("12", Kill()), ("12", Kill())]
    assert len(desk.told()) == 2


def test_a_submission_without_an_answer_is_repeated_only_when_slurm_had_time(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, SlurmDownError("Socket timed out"))
    desk.sees()
    assert desk.slurm.submitted == 1

    desk.slurm.answers = "12"
    desk.sees(after_ms=5_000)
    desk.sees(said("RUNNING"))

    assert desk.slurm.submitted == 2
    assert desk.told() == [JobStarted]


def test_a_submission_that_slurm_took_in_late_is_not_repeated(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SlurmDownError("Socket timed out"))
    desk.sees()
    desk.sees(said("RUNNING"), after_ms=5_000)

    assert desk.slurm.submitted == 1
    assert desk.told() == [JobStarted]


def test_of_an_attempt_that_slurm_took_in_twice_the_first_goes_on(desk: Desk) -> None:
    desk.sees(said("RUNNING"), said("PENDING", id="13"))

    assert desk.slurm.deeds == [("13", Kill())]
    assert desk.told() == [JobStarted]


def test_components_of_one_job_are_no_doubles(desk: Desk) -> None:
    desk.sees(said("RUNNING", HetJobID="12"), said("RUNNING", id="13", HetJobID="12"))

    assert not desk.slurm.deeds


def test_what_slurm_refuses_ends_with_the_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SlurmRefusedError("Invalid account"))

    assert desk.told() == [LaunchFailed(text="Invalid account")]


def test_what_a_slurm_refuses_whose_nodes_are_not_back_is_asked_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SlurmNotYetError("Requested node configuration is not available"))
    desk.sees()
    assert (desk.slurm.submitted, desk.told()) == (1, [])

    desk.slurm.answers = "12"
    desk.sees(after_ms=5_000)
    desk.sees(said("RUNNING"))

    assert desk.slurm.submitted == 2
    assert desk.told() == [JobStarted]


def test_what_slurm_refuses_for_a_minute_is_refused(tmp_path: Path) -> None:
    why = "Requested node configuration is not available"
    desk = Desk(tmp_path, SlurmNotYetError(why))

    for _ in range(11):
        desk.sees(after_ms=5_000)
    assert desk.told() == []
    desk.sees(after_ms=5_000)

    assert desk.told() == [LaunchFailed(text=why)]


def test_what_is_stopped_before_it_is_submitted_never_is(desk: Desk) -> None:
    sent = _ours()
    other = replace(sent, job=replace(sent.job, id=JobId(8)))
    other = replace(other, allocation=replace(other.allocation, job=JobId(8)))
    why = Cancelled(by=ME)

    desk.orders.take(other)
    desk.orders.take(Stop(job=JobId(8), attempt=1, why=why, grace=Duration(0)))
    desk.orders.submit()

    assert desk.slurm.submitted == 1
    assert desk.told() == [why]


def test_what_carries_our_mark_and_is_not_known_is_told_and_left_alone(desk: Desk) -> None:
    desk.sees(said("RUNNING"), said("RUNNING", id="40", mark="muster:here:99.1"))

    assert desk.register.orphans == ("40",)
    assert not desk.slurm.deeds


def test_what_ended_before_a_restart_does_not_run_again_after_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.sees(said("COMPLETED", EndTime="1001"))
    desk.register.forget((_ours().job.id, 1))

    again = Desk.reopened(tmp_path)
    again.sees(said("RUNNING"), said("RUNNING", id="13"))

    assert again.slurm.deeds == [("12", Kill())]
    assert again.register.orphans == ("13",)


def test_what_was_begun_and_is_not_wanted_after_a_restart_ends(desk: Desk, tmp_path: Path) -> None:
    desk.sees(said("RUNNING"))

    again = Desk.reopened(tmp_path)
    again.sees(said("RUNNING"))

    assert again.slurm.deeds == [("12", Kill())]
    assert again.register.orphans == ()


def test_one_that_slurm_took_in_unheard_ends_when_it_is_forgotten(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SlurmDownError("Socket timed out"))
    desk.register.forget((_ours().job.id, 1))

    desk.sees(said("RUNNING", id="77"), said("RUNNING", id="78", uid=4321))

    assert desk.slurm.deeds == [("77", Kill())]
    assert desk.register.orphans == ("78",)


def test_what_an_attempt_saved_as_its_last_deed_is_told_before_its_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "notes", "")
    saves = Launch(argv=("true",), checkpoint=Checkpointing(path=str(tmp_path / "saved.pt")))
    desk.slurm.answers = "12"
    desk.orders.take(_ours(saves))
    desk.orders.submit()
    desk.sees(said("RUNNING"))
    saved = tmp_path / "saved.pt"
    saved.write_text("41")
    os.utime(saved, (1_001, 1_001))

    desk.sees(said("COMPLETED", EndTime="1002"))

    assert desk.told() == [JobStarted, JobCheckpointed, Exited(code=0)]
