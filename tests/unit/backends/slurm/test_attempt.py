import pytest

from muster.backends.attempts import Attempt, End, Kill, Look, Resume
from muster.backends.base import Limit, Stop
from muster.backends.notes import Note
from muster.backends.slurm.attempt import SLURM, look_of
from muster.backends.slurm.listing import QueuedJob
from muster.model.event import Event, JobEnded, JobStarted, JobSuspended
from muster.model.job import (
    Cancelled,
    EndReason,
    Exited,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.value import Duration, Instant, JobId, NodeId, UserName, replace
from unit.backends.slurm.given import line, listed

BY_ANN = Cancelled(by=UserName("ann"))
LATER = Instant(200_000)

UNOPENED = "Slurm could not open the files of its output: are their folders there?"


def attempt(**fields: object) -> Attempt:
    note = Note(
        job=JobId(7),
        attempt=1,
        user=UserName("ann"),
        nodes=(NodeId("node1"),),
        began_at=Instant(99_500),
        handle="12",
    )
    return Attempt(note=replace(note, **fields))


def job(**fields: str) -> QueuedJob:
    (found,) = listed(line(**fields))
    return found


def seen(**fields: str) -> Look:
    return look_of(job(**fields), attempt().note)


def looks(made: Attempt, *states: str) -> list[type[Event]]:
    found: list[Event] = []
    for state in states:
        found += made.look(seen(State=state), LATER)
    return [type(each) for each in found]


def stop(grace: int = 10_000) -> Stop:
    return Stop(job=JobId(7), attempt=1, why=BY_ANN, grace=Duration(grace))


def test_it_is_told_once_that_it_runs_stands_and_is_over() -> None:
    told = looks(attempt(), "PENDING", "RUNNING", "RUNNING", "SUSPENDED", "SUSPENDED", "COMPLETED")

    assert told == [JobStarted, JobSuspended, JobEnded]


def test_a_job_that_is_leaving_is_not_over() -> None:
    assert looks(attempt(), "RUNNING", "COMPLETING") == [JobStarted]


@pytest.mark.parametrize(
    ("state", "status", "why"),
    [
        ("COMPLETED", 0, Exited(code=0)),
        ("FAILED", 3 << 8, Exited(code=3)),
        ("FAILED", 9, Signaled(signal=9)),
        ("FAILED", 53, LaunchFailed(text=UNOPENED)),
        ("NODE_FAIL", 0, NodeFailed(node=NodeId("node1"))),
        ("OUT_OF_MEMORY", 0, OutOfMemory(node=NodeId("node1"))),
        ("TIMEOUT", 0, TimedOut(limit=Duration(0))),
        ("CANCELLED", 15, Cancelled(by=SLURM)),
        ("PREEMPTED", 15, Requeued(by=SLURM)),
    ],
)
def test_it_ends_as_slurm_says(state: str, status: int, why: EndReason) -> None:
    made = attempt()

    *_, end = made.look(seen(State=state, exit_code=str(status), EndTime="101"), LATER)

    assert isinstance(end, JobEnded)
    assert (end.why, end.at) == (why, 101_000)


def test_what_we_ended_ended_for_our_reason() -> None:
    made = attempt()
    list(made.look(seen(), Instant(100_000)))
    made.stop(stop(), Instant(150_500))

    assert list(made.due(Instant(150_500))) == [End(grace=Duration(10_000))]
    *_, end = made.look(seen(State="FAILED", exit_code="15", EndTime="150"), LATER)

    assert isinstance(end, JobEnded)
    assert (end.why, end.at) == (BY_ANN, 150_500)


def test_who_does_not_obey_is_killed() -> None:
    made = attempt()
    list(made.look(seen(), Instant(100_000)))
    made.stop(stop(grace=300), Instant(150_000))
    list(made.due(Instant(150_000)))

    assert made.next_due() == 150_300
    assert list(made.due(Instant(150_300))) == [Kill()]


def test_one_that_waits_is_simply_cancelled() -> None:
    made = attempt()
    list(made.look(seen(State="PENDING", StartTime="N/A", NodeList="(null)"), LATER))
    made.stop(stop(), LATER)

    assert list(made.due(LATER)) == [Kill()]
    cancelled = job(State="CANCELLED", StartTime="150", EndTime="150", NodeList="(null)")
    assert [type(each) for each in made.look(look_of(cancelled, made.note), LATER)] == [JobEnded]


def test_one_that_stands_is_resumed_before_it_is_ended() -> None:
    made = attempt()
    list(made.look(seen(State="SUSPENDED"), Instant(100_000)))
    made.stop(stop(), Instant(150_000))

    assert list(made.due(Instant(150_000))) == [Resume()]
    assert list(made.due(Instant(150_100))) == []
    list(made.look(seen(), Instant(151_000)))
    assert list(made.due(Instant(153_000))) == [End(grace=Duration(7_000))]


def test_a_signal_that_slurm_may_have_lost_is_sent_again_while_the_job_runs() -> None:
    made = attempt()
    list(made.look(seen(State="SUSPENDED"), Instant(100_000)))
    made.stop(stop(), Instant(150_000))
    list(made.due(Instant(150_000)))
    list(made.look(seen(), Instant(151_000)))
    list(made.due(Instant(152_500)))

    assert made.next_due() == 154_500
    assert list(made.due(Instant(154_500))) == [End(grace=Duration(5_500))]
    list(made.look(seen(State="COMPLETING"), Instant(155_000)))
    assert list(made.due(Instant(157_000))) == []


def test_a_limit_is_kept_to_the_millisecond_and_can_be_changed() -> None:
    made = attempt(limit=Duration(400))
    list(made.look(seen(), Instant(100_000)))

    assert made.next_due() == 100_400
    made.limit(Limit(job=JobId(7), attempt=1, ends_at=Instant(190_000)))
    assert made.next_due() == 190_000
    made.limit(Limit(job=JobId(7), attempt=1, ends_at=None))
    assert made.next_due() is None


def test_another_controller_goes_on_with_what_was_noted() -> None:
    first = attempt(limit=Duration(400))
    list(first.look(seen(), Instant(100_000)))
    first.stop(stop(), Instant(150_000))

    second = Attempt(note=first.note)
    (started,) = second.look(seen(), LATER)

    assert isinstance(started, JobStarted)
    assert started.at == 100_000
    assert list(second.due(LATER)) == [End(grace=Duration(0)), Kill()]


def test_one_that_slurm_forgot_is_lost_unless_we_ended_it() -> None:
    (lost,) = attempt().lost(LATER)
    made = attempt()
    made.stop(stop(), LATER)
    (ended,) = made.lost(LATER)

    assert isinstance(lost, JobEnded)
    assert lost.why == NodeFailed(node=NodeId("node1"))
    assert isinstance(ended, JobEnded)
    assert ended.why == BY_ANN
