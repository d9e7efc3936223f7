"""Mails in Slurm's words: the expected subjects are those that a Slurm 22.05.8 sent."""

import pytest

from muster.controller.queries.diagnosis import Diagnosed
from muster.doors.slurm.mail import letter
from muster.lifecycle.notices import ArrayResult, Notice
from muster.model.efficiency import CauseTime, JobReport
from muster.model.finding import Cause, Confidence
from muster.model.job import (
    ArrayPart,
    Cancelled,
    EndReason,
    Exited,
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
from muster.model.launch import Launch
from muster.model.mail import Mail, Occasion
from muster.model.placement import Allocation, Placement
from muster.model.resources import Resources
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.telemetry.diagnosis.fixes import Fix

ANN = UserName("ann")
BEGAN = Instant(1_000_000)
ENDED = Instant(1_005_000)
HELD = Allocation(
    job=JobId(12),
    attempt=1,
    cluster=ClusterName("lab"),
    placements=tuple(
        Placement(
            group="main",
            index=index,
            node=NodeId(f"node{index + 1}"),
            pool=PoolName("gpu"),
            amount=Resources(cpu_milli=1_000),
        )
        for index in range(2)
    ),
    placed_at=BEGAN,
    started_at=BEGAN,
)


def job(
    why: EndReason | None, *, mail: Mail, index: int | None = None, state: JobState | None = None
) -> Job:
    spec = JobSpec(
        name="x",
        user=ANN,
        queue=QueuePath("lab"),
        groups=(TaskGroup(),),
        mail=mail,
        array=None if index is None else ArrayPart(array=JobId(12), index=index),
        labels={"slurm/comment": "why not"},
    )
    usual = JobState.RUNNING if why is None else JobState.FAILED
    return Job(
        id=JobId(12 if index is None else 12 + index),
        spec=spec,
        state=state or usual,
        why=why,
        submitted_at=Instant(BEGAN - 61_000),
        attempt=1,
    )


def subject(
    on: Occasion, why: EndReason | None = None, *, index: int | None = None, whole: bool = False
) -> str:
    ended_job = job(why, mail=Mail(each_part=not whole), index=index)
    at = BEGAN if on is Occasion.BEGIN else ENDED
    return letter(Notice(on=on, job=ended_job, at=at, held=HELD), None).subject


@pytest.mark.parametrize(
    ("on", "why", "text"),
    [
        (Occasion.BEGIN, None, "Began, Queued time 00:01:01"),
        (Occasion.END, Exited(code=0), "Ended, Run time 00:00:05, COMPLETED, ExitCode 0"),
        (Occasion.FAIL, Exited(code=3), "Failed, Run time 00:00:05, FAILED, ExitCode 3"),
        (Occasion.FAIL, Signaled(signal=9), "Failed, Run time 00:00:05, FAILED"),
        (Occasion.END, Cancelled(by=ANN), "Ended, Run time 00:00:05, CANCELLED, ExitCode 0"),
        (
            Occasion.FAIL,
            TimedOut(limit=Duration(1)),
            "Failed, Run time 00:00:05, TIMEOUT, ExitCode 0",
        ),
        (
            Occasion.FAIL,
            NodeFailed(node=NodeId("n")),
            "Failed, Run time 00:00:05, NODE_FAIL, ExitCode 0",
        ),
        (
            Occasion.FAIL,
            Preempted(by=JobId(1)),
            "Failed, Run time 00:00:05, PREEMPTED, ExitCode 0",
        ),
        (
            Occasion.FAIL,
            OutOfMemory(node=NodeId("n")),
            "Failed, Run time 00:00:05, OUT_OF_MEMORY",
        ),
        (Occasion.REQUEUE, None, "Requeued, Run time 00:00:05"),
        (Occasion.TIME_LIMIT, None, "Reached time limit, Run time 00:00:05"),
        (Occasion.TIME_LIMIT_90, None, "Reached 90% of time limit, Run time 00:00:05"),
        (Occasion.TIME_LIMIT_80, None, "Reached 80% of time limit, Run time 00:00:05"),
        (Occasion.TIME_LIMIT_50, None, "Reached 50% of time limit, Run time 00:00:05"),
        (Occasion.INVALID_DEPEND, None, "Invalid dependency"),
    ],
)
def test_a_subject_says_what_happened(on: Occasion, why: EndReason | None, text: str) -> None:
    assert subject(on, why) == f"Slurm Job_id=12 Name=x {text}"
    task = f"Slurm Array Task Job_id=12_3 (15) Name=x {text}"
    assert subject(on, why, index=3) == task


@pytest.mark.parametrize(
    ("on", "spread", "text"),
    [
        (Occasion.END, ArrayResult(least=0, most=0), "Ended, FAILED, ExitCode [0-0]"),
        (Occasion.FAIL, ArrayResult(least=0, most=512), "Failed, Mixed, ExitCode [0-2]"),
        (Occasion.FAIL, ArrayResult(least=256, most=512), "Failed, FAILED, ExitCode [1-2]"),
        (Occasion.END, ArrayResult(least=0, most=9), "Ended, Mixed, MaxSignal [9]"),
        (Occasion.FAIL, ArrayResult(least=9, most=256), "Failed, Mixed, MaxExitCode [1]"),
        (Occasion.REQUEUE, ArrayResult(least=0, most=0, requeued=True), "Requeued"),
        (
            Occasion.END,
            ArrayResult(least=0, most=0, requeued=True),
            "Ended, FAILED, ExitCode [0-0], with requeued tasks",
        ),
    ],
)
def test_an_array_has_a_summary(on: Occasion, spread: ArrayResult, text: str) -> None:
    last = job(Exited(code=1), mail=Mail(), index=3)

    found = letter(Notice(on=on, job=last, at=ENDED, spread=spread), None)

    assert found.subject == f"Slurm Array Summary Job_id=12_* (12) Name=x {text}"
    assert found.env["SLURM_JOB_ID"] == "12"


def test_an_array_begins_without_a_time() -> None:
    text = "Slurm Array Summary Job_id=12_* (12) Name=x Began"

    assert subject(Occasion.BEGIN, index=0, whole=True) == text


def test_a_letter_goes_to_whom_it_should_and_else_to_the_user() -> None:
    named = job(None, mail=Mail(to="boss@example.org,bob"))
    unnamed = job(None, mail=Mail())

    to = [
        letter(Notice(on=Occasion.BEGIN, job=each, at=BEGAN), None).to for each in (named, unnamed)
    ]

    assert to == ["boss@example.org,bob", "ann"]


def test_the_program_learns_what_slurm_tells_it() -> None:
    over = job(Exited(code=3), mail=Mail())
    launch = Launch(workdir="/home/ann", stdout="slurm-%j.out")

    env = letter(Notice(on=Occasion.FAIL, job=over, at=ENDED, held=HELD), launch).env

    assert env == {
        "SLURM_CLUSTER_NAME": "lab",
        "SLURM_JOBID": "12",
        "SLURM_JOB_ACCOUNT": "lab",
        "SLURM_JOB_COMMENT": "why not",
        "SLURM_JOB_DERIVED_EC": "0",
        "SLURM_JOB_EXIT_CODE": "768",
        "SLURM_JOB_EXIT_CODE2": "3:0",
        "SLURM_JOB_EXIT_CODE_MAX": "3",
        "SLURM_JOB_GID": env["SLURM_JOB_GID"],
        "SLURM_JOB_GROUP": env["SLURM_JOB_GROUP"],
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_MAIL_TYPE": "Failed",
        "SLURM_JOB_NAME": "x",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_PARTITION": "gpu",
        "SLURM_JOB_RESTART_COUNT": "0",
        "SLURM_JOB_RUN_TIME": "00:00:05",
        "SLURM_JOB_STATE": "FAILED",
        "SLURM_JOB_STDOUT": "/home/ann/slurm-12.out",
        "SLURM_JOB_UID": env["SLURM_JOB_UID"],
        "SLURM_JOB_USER": "ann",
        "SLURM_JOB_WORK_DIR": "/home/ann",
    }


def test_a_job_that_is_over_by_now_was_running_when_it_began() -> None:
    over = job(Exited(code=0), mail=Mail(), state=JobState.COMPLETED)

    env = letter(Notice(on=Occasion.BEGIN, job=over, at=BEGAN, held=HELD), None).env

    assert env["SLURM_JOB_STATE"] == "RUNNING"


def test_the_mail_about_an_end_has_the_report_as_its_text() -> None:
    report = JobReport(
        job=JobId(12),
        attempt=1,
        user=ANN,
        queue=QueuePath("lab"),
        cluster=ClusterName("lab"),
        since=BEGAN,
        until=ENDED,
        headline=Cause.INPUT_CPU,
        confidence=Confidence.SURE,
        gpu_ms=Duration(7_200_000),
        cost_micros=8_000_000,
        wasted_micros=4_000_000,
        causes=(CauseTime(cause=Cause.INPUT_CPU, gpu_ms=Duration(7_200_000)),),
    )
    fix = Fix(cause=Cause.INPUT_CPU, text="ask for 16 CPUs", flag="--cpus-per-task=16")
    told = Diagnosed(report=report, fixes=(fix,))
    ended = job(Exited(code=0), mail=Mail(on=(Occasion.END,)))

    written = letter(Notice(on=Occasion.END, job=ended, at=ENDED, held=HELD), None, told)

    assert written.body.splitlines() == [
        "The GPU waited for CPUs that prepare its input (sure).",
        "Held: 2.00 GPU hours, 8.00, of which wasted 4.00",
        "  input_cpu          2.00 GPU hours  the GPU waited for CPUs that prepare its input",
        "",
        "What would help:",
        "  1. ask for 16 CPUs: --cpus-per-task=16",
        "",
        "More: muster diagnose 12 --timeline",
    ]
    begun = Notice(on=Occasion.BEGIN, job=ended, at=ENDED, held=HELD)
    assert letter(begun, None, told).body == ""
