"""Which records a window has, how rows came out, and in which units amounts are shown."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.controller.messages import JobView
from muster.doors.slurm.accounting.records import (
    AcctJob,
    AcctRow,
    RecordKind,
    derived_exit,
    exit_of_row,
    last_of_each,
    rows_of_job,
    state_of_row,
)
from muster.doors.slurm.accounting.sacct_fields import FIELDS, LISTED
from muster.doors.slurm.accounting.values import exit_text
from muster.doors.slurm.accounting.window import Window
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.usage import Scale
from muster.doors.slurm.words.states import State
from muster.model.job import (
    Cancelled,
    EndReason,
    Exited,
    Job,
    JobSpec,
    JobState,
    OutOfMemory,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.resources import Resources
from muster.model.steps import Step
from muster.model.value import Duration, Instant, JobId, NodeId, QueuePath, UserName

NOW = Instant(1_000_000)
SCENE = cast("Listing", SimpleNamespace(now=NOW))


def record(
    state: JobState = JobState.COMPLETED,
    *,
    why: EndReason | None = None,
    times: tuple[int, int | None, int | None] = (100, 200, 300),
    by: str | None = None,
) -> AcctJob:
    """A job that was submitted, started and ended then."""
    submitted, started, ended = times
    spec = JobSpec(
        name="train",
        user=UserName("ann"),
        queue=QueuePath("acme"),
        groups=(TaskGroup(),),
        labels={} if by is None else {"slurm/by": by},
    )
    job = Job(
        id=JobId(7), spec=spec, state=state, why=why, submitted_at=Instant(submitted), attempt=1
    )
    view = JobView(
        job=job,
        started_at=None if started is None else Instant(started),
        ended_at=None if ended is None else Instant(ended),
    )
    return AcctJob(JobRow(view, SCENE), job.submitted_at)


def step(number: int = 0, *, ended: int | None = 250, code: int = 0, signal: int = 0) -> Step:
    return Step(
        job=JobId(7),
        attempt=1,
        number=number,
        name="work",
        command="work",
        tasks=1,
        nodes=(NodeId("n1"),),
        amount=Resources(cpu_milli=1_000),
        began_at=Instant(210),
        ended_at=None if ended is None else Instant(ended),
        code=code,
        signal=signal,
    )


def window(since: int, until: int, *states: State, named: bool = False) -> Window:
    return Window(since=Instant(since), until=Instant(until), states=frozenset(states), named=named)


OVER = record(why=Exited(code=0))
RUNNING = record(JobState.RUNNING, times=(100, 200, None))
WAITING = record(JobState.PENDING, times=(100, None, None))
HELD = record(JobState.HELD, times=(100, None, None))


@pytest.mark.parametrize(
    ("asked", "who", "expected"),
    [
        (window(0, 1_000), OVER, True),
        (window(301, 1_000), OVER, False),
        (window(0, 99), OVER, False),
        (window(0, 100), OVER, True),
        (window(5_000, 6_000), RUNNING, True),
        (window(0, 1_000), HELD, False),
        (window(0, 1_000, named=True), HELD, True),
        (window(0, 1_000, State.COMPLETED), OVER, True),
        (window(0, 299, State.COMPLETED), OVER, False),
        (window(0, 1_000, State.FAILED), OVER, False),
        (window(250, 250, State.RUNNING), OVER, True),
        (window(301, 301, State.RUNNING), OVER, False),
        (window(150, 150, State.PENDING), OVER, True),
        (window(250, 250, State.PENDING), OVER, False),
        (window(5_000, 5_000, State.RUNNING), RUNNING, True),
        (window(5_000, 5_000, State.PENDING), WAITING, True),
        (window(5_000, 5_000, State.RUNNING), WAITING, False),
        (window(5_000, 5_000, State.PENDING), HELD, False),
    ],
)
def test_a_window_has_what_was_in_a_state_then(
    asked: Window, who: AcctJob, *, expected: bool
) -> None:
    assert asked.has(who) is expected


@pytest.mark.parametrize(
    ("why", "of_job", "of_script"),
    [
        (Exited(code=0), ("COMPLETED", (0, 0)), ("COMPLETED", (0, 0))),
        (Exited(code=3), ("FAILED", (3, 0)), ("FAILED", (3, 0))),
        (Signaled(signal=11), ("FAILED", (0, 11)), ("CANCELLED", (0, 11))),
        (Cancelled(by=UserName("ann")), ("CANCELLED", (0, 0)), ("CANCELLED", (0, 15))),
        (TimedOut(limit=Duration(1)), ("TIMEOUT", (0, 0)), ("CANCELLED", (0, 15))),
        (
            OutOfMemory(node=NodeId("n1")),
            ("OUT_OF_MEMORY", (0, 125)),
            ("OUT_OF_MEMORY", (0, 125)),
        ),
    ],
    ids=str,
)
def test_a_script_may_come_out_otherwise_than_its_job(
    why: EndReason, of_job: Any, of_script: Any
) -> None:
    job, script = rows_of_job(record(JobState.CANCELLED, why=why))

    assert (state_of_row(job).name, exit_of_row(job)) == of_job
    assert (state_of_row(script).name, exit_of_row(script)) == of_script


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (step(ended=None), State.RUNNING),
        (step(), State.COMPLETED),
        (step(code=2), State.FAILED),
        (step(signal=9), State.CANCELLED),
    ],
)
def test_a_step_stands_where_its_end_says(made: Step, state: State) -> None:
    assert state_of_row(AcctRow(RUNNING, RecordKind.STEP, made)) is state


def test_the_worst_step_counts_unless_it_was_ordered_to_end() -> None:
    job = record(why=Exited(code=0))
    job.steps = (step(code=2), step(1, code=7), step(2, signal=15), step(3, ended=None))

    assert derived_exit(job) == (7, 0)


@pytest.mark.parametrize(
    ("by", "kinds"),
    [
        (None, [RecordKind.JOB, RecordKind.BATCH, RecordKind.STEP]),
        ("srun", [RecordKind.JOB, RecordKind.STEP]),
        ("salloc", [RecordKind.JOB, RecordKind.STEP]),
    ],
)
def test_only_jobs_with_a_script_have_its_step(by: str | None, kinds: list[RecordKind]) -> None:
    job = record(why=Exited(code=0), by=by)
    job.steps = (step(),)

    assert [row.kind for row in rows_of_job(job)] == kinds


def test_what_is_asked_to_be_cut_shows_the_part_in_the_window() -> None:
    job = record(why=Exited(code=0), times=(1_000, 10_000, 90_000))
    job.cut = (Instant(20_000), Instant(50_000))

    row = AcctRow(job, RecordKind.JOB)

    assert (row.started_at, row.ended_at, row.elapsed) == (20_000, 50_000, 30_000)


def test_of_each_job_the_newest_record_stays() -> None:
    older, newer = record(why=Exited(code=1)), record(why=Exited(code=0))

    assert last_of_each([older, newer]) == [newer]


@pytest.mark.parametrize(
    ("scale", "mib", "text"),
    [
        (Scale(), 0, "0"),
        (Scale(), 2_048, "2G"),
        (Scale(), 1_536, "1.50G"),
        (Scale(), 2_000, "2000M"),
        (Scale(), 512, "512M"),
        (Scale(convert=False), 2_048, "2048M"),
        (Scale(unit="K"), 1, "1024K"),
        (Scale(unit="T"), 524_288, "0.50T"),
        (Scale(unit="M", convert=False), 2_048, "2048M"),
    ],
)
def test_amounts_are_shown_in_the_unit_that_is_asked_for(scale: Scale, mib: int, text: str) -> None:
    assert scale.mib(mib) == text


def test_every_field_of_the_list_is_known_and_says_how_wide_it_is() -> None:
    assert len(LISTED) == 109
    assert {name.lower() for name in LISTED} <= FIELDS.keys()
    assert all(field.width for field in FIELDS.values())


@pytest.mark.parametrize(
    ("code", "shown"), [(3, "3:0"), (127, "127:0"), (130, "2:0"), (255, "127:0")]
)
def test_the_128_of_a_shell_is_taken_off(code: int, shown: str) -> None:
    whole, *_ = rows_of_job(record(JobState.FAILED, why=Exited(code=code)))

    assert exit_text(whole) == shown
