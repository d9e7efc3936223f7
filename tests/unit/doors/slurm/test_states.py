import pytest

from muster.doors.slurm.words.states import State, exit_code, reason, state_of
from muster.model.job import (
    Cancelled,
    DependencyKind,
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.plan import (
    ArrayFull,
    Behind,
    DependsOn,
    NoRoom,
    NotBefore,
    OverClassLimit,
    OverLimit,
    WaitReason,
)
from muster.model.queue import Scope
from muster.model.value import (
    ClassName,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    UserName,
)

ANN = UserName("ann")


def job(state: JobState, why: EndReason | HeldBy | None = None) -> Job:
    spec = JobSpec(name="x", user=ANN, queue=QueuePath("lab"), groups=(TaskGroup(),))
    return Job(id=JobId(1), spec=spec, state=state, why=why, submitted_at=Instant(0))


@pytest.mark.parametrize(
    ("why", "state", "code", "word"),
    [
        (Exited(code=0), State.COMPLETED, "0:0", "None"),
        (Exited(code=3), State.FAILED, "3:0", "NonZeroExitCode"),
        (Signaled(signal=11), State.FAILED, "0:11", "JobLaunchFailure"),
        (TimedOut(limit=Duration(60_000)), State.TIMEOUT, "0:0", "TimeLimit"),
        (OutOfMemory(node=NodeId("n")), State.OUT_OF_MEMORY, "0:125", "OutOfMemory"),
        (NodeFailed(node=NodeId("n")), State.NODE_FAIL, "0:0", "NodeDown"),
        (Preempted(by=JobId(2)), State.PREEMPTED, "0:0", "None"),
        (Cancelled(by=ANN), State.CANCELLED, "0:0", "None"),
    ],
)
def test_ends_have_slurms_words(why: EndReason, state: State, code: str, word: str) -> None:
    ended = job(JobState.FAILED, why)

    assert (state_of(ended), exit_code(ended), reason(ended, None)) == (state, code, word)


@pytest.mark.parametrize(
    ("why", "word"),
    [
        (NoRoom(group="main", placed=0, wanted=1, nodes=2), "Resources"),
        (Behind(job=JobId(2), starts_at=Instant(0)), "Priority"),
        (NotBefore(at=Instant(0)), "BeginTime"),
        (ArrayFull(array=JobId(1), at_once=2), "JobArrayTaskLimit"),
        (DependsOn(job=JobId(2), kind=DependencyKind.AFTER_OK), "Dependency"),
        (
            DependsOn(job=JobId(2), kind=DependencyKind.AFTER_OK, never=True),
            "DependencyNeverSatisfied",
        ),
        (
            OverLimit(queue=QueuePath("lab"), scope=Scope(), limit=1, used=1, asked=1),
            "AssocGrpGRES",
        ),
        (
            OverClassLimit(
                job_class=ClassName("high"),
                side="user",
                whose="ann",
                resource="gpu",
                limit=1,
                used=1,
                asked=1,
            ),
            "QOSMaxGRESPerUser",
        ),
    ],
)
def test_waits_have_slurms_words(why: WaitReason, word: str) -> None:
    assert reason(job(JobState.PENDING), why) == word


def test_who_holds_a_job_is_told_apart() -> None:
    assert reason(job(JobState.HELD, HeldBy(user=ANN)), None) == "JobHeldUser"
    assert reason(job(JobState.HELD, HeldBy(user=UserName("root"))), None) == "JobHeldAdmin"
    assert reason(job(JobState.HELD, HeldBy(user=ANN, as_admin=True)), None) == "JobHeldAdmin"
    assert state_of(job(JobState.HELD)) is State.PENDING
