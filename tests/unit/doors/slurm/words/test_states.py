import pytest

from muster.doors.slurm.words.states import State, exit_code, reason, state_of, wait_word
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
from muster.model.queue import Ceiling, CeilingMeter, Scope, Side
from muster.model.reason import (
    ArrayFull,
    Behind,
    DependsOn,
    NoRoom,
    NotBefore,
    OverClassLimit,
    OverLimit,
    WaitReason,
)
from muster.model.value import (
    ClassName,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    UserName,
)
from stories.world import World

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
                side=Side.USER,
                whose="ann",
                meter=CeilingMeter.GPU,
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


@pytest.mark.parametrize(
    ("most", "of_a_user", "of_an_account"),
    [
        (Ceiling(gpu_milli=1_000), "QOSMaxGRESPerUser", "MaxGRESPerAccount"),
        (Ceiling(cpu_milli=1_000), "QOSMaxCpuPerUserLimit", "MaxCpuPerAccount"),
        (Ceiling(memory_mib=1_024), "QOSMaxMemoryPerUser", "MaxMemoryPerAccount"),
        (Ceiling(jobs=1), "QOSMaxJobsPerUserLimit", "MaxJobsPerAccount"),
    ],
)
def test_over_a_ceiling_of_a_class_slurms_word_says_which_and_whose(
    most: Ceiling, of_a_user: str, of_an_account: str
) -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("mine", per_user=most)
    world.has_class("ours", per_queue=most)
    for each in ("mine", "ours"):
        world.submits_many(each, 2, job_class=each, gpus=1, cpu=1, memory_gib=1)

    outcome = world.plans()

    assert wait_word(outcome.why("mine2"), ANN) == of_a_user
    assert wait_word(outcome.why("ours2"), ANN) == of_an_account


def test_who_holds_a_job_is_told_apart() -> None:
    assert reason(job(JobState.HELD, HeldBy(user=ANN)), None) == "JobHeldUser"
    assert reason(job(JobState.HELD, HeldBy(user=UserName("root"))), None) == "JobHeldAdmin"
    assert reason(job(JobState.HELD, HeldBy(user=ANN, as_admin=True)), None) == "JobHeldAdmin"
    assert state_of(job(JobState.HELD)) is State.PENDING
