"""What the door keeps between calls."""

from muster.doors.slurm.submit.fleet import MOST_FORMS, SPARE, Memory
from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.value import Instant, JobId, QueuePath, UserName

JOB = Job(
    id=JobId(1),
    spec=JobSpec(
        name="fit",
        queue=QueuePath("a"),
        user=UserName("ann"),
        groups=(TaskGroup(),),
    ),
    submitted_at=Instant(0),
)


def test_lines_are_kept_for_a_form_until_too_many_others_were_asked_for() -> None:
    memory = Memory()
    memory.lines("first", 1)[JobId(1)] = (JOB, None, "line")

    assert memory.lines("first", 1) == {1: (JOB, None, "line")}
    for number in range(MOST_FORMS - 1):
        memory.lines(number, 1)
    assert memory.lines("first", 1)
    for number in range(MOST_FORMS):
        memory.lines(number, 1)
    assert memory.lines("first", 1) == {}


def test_lines_of_jobs_that_are_long_gone_are_forgotten() -> None:
    memory = Memory()
    kept = memory.lines("form", 1)
    kept.update({JobId(number): (JOB, None, "line") for number in range(SPARE + 3)})

    assert memory.lines("form", 2) is kept
    assert memory.lines("form", 1) == {}
