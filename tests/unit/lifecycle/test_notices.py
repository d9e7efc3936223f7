"""Which notices follow from what happened to a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.lifecycle.holding import allocation_after
from muster.lifecycle.notices import (
    Notice,
    is_hopeless,
    marks_of,
    notices_of,
    notices_of_array,
    status_of,
)
from muster.lifecycle.step import step
from muster.model.event import JobEvent
from muster.model.history import Ended, Finished
from muster.model.job import (
    ArrayPart,
    Cancelled,
    DeadlinePassed,
    Dependency,
    DependencyKind,
    EndReason,
    Exited,
    Job,
    JobSpec,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Signaled,
    TimedOut,
)
from muster.model.mail import Mail, Occasion, is_address
from muster.model.placement import Allocation
from muster.model.queue import PreemptMode
from muster.model.value import Duration, Instant, JobId, NodeId, replace
from unit.lifecycle.given import (
    ANN,
    JOB,
    NOW,
    OTHER,
    cancel_asked,
    ended,
    job,
    placed,
    preempted,
    requeue_asked,
    spec,
    started,
)

EVERYTHING = Mail(on=tuple(Occasion))
NODE = NodeId("n1")


def occasions_of(
    *events: JobEvent, mail: Mail = EVERYTHING, attempts: int = 1, requeue: bool = True
) -> list[str]:
    """The occasions of a job to which all of this happens, one commit after the other."""
    found: list[Notice] = []
    now = job(max_attempts=attempts, requeue=requeue)
    now = replace(now, spec=replace(now.spec, mail=mail))
    held: Allocation | None = None
    for event in events:
        now = step(now, event)
        found += notices_of(now, held, [event])
        held = allocation_after(held, event, now)
    return [each.on.value for each in found]


@pytest.mark.parametrize(
    ("why", "occasions"),
    [
        (Exited(code=0), ["end"]),
        (Exited(code=3), ["fail"]),
        (Signaled(signal=9), ["fail"]),
        (OutOfMemory(node=NODE), ["fail"]),
        (LaunchFailed(text="no"), ["fail"]),
        (DeadlinePassed(deadline=NOW), ["fail"]),
        (Cancelled(by=ANN), ["end"]),
        (TimedOut(limit=Duration(1)), ["time_limit", "fail"]),
        (Preempted(by=OTHER, mode=PreemptMode.CANCEL), ["fail"]),
        (Preempted(by=OTHER), ["requeue"]),
        (NodeFailed(node=NODE), ["fail", "requeue"]),
    ],
)
def test_how_an_attempt_ended_decides_what_is_announced(
    why: EndReason, occasions: list[str]
) -> None:
    assert occasions_of(placed(), started(), ended(why)) == ["begin", *occasions]


def test_a_start_that_is_reported_twice_is_announced_once() -> None:
    assert occasions_of(placed(), started(), started(), ended(Exited(code=0))) == ["begin", "end"]


def test_a_failure_that_is_tried_again_is_a_requeue() -> None:
    assert occasions_of(placed(), started(), ended(Exited(code=1)), attempts=2) == [
        "begin",
        "requeue",
    ]


def test_a_job_that_never_began_ends_when_it_is_cancelled() -> None:
    assert occasions_of(cancel_asked()) == ["end"]


def test_a_job_that_stops_for_its_user_is_announced_when_it_has_stopped() -> None:
    going = (placed(), started(), cancel_asked())

    assert occasions_of(*going) == ["begin"]
    assert occasions_of(*going, ended(Signaled(signal=15))) == ["begin", "end"]


def test_each_attempt_begins_again() -> None:
    again = (placed(), started(), requeue_asked(), ended(Signaled(signal=15)))
    once_more = (placed(2), started(2), ended(Exited(code=0), 2))

    assert occasions_of(*again, *once_more) == ["begin", "requeue", "begin", "end"]


def test_a_preempted_job_that_is_not_requeued_has_failed() -> None:
    stops = (placed(), started(), preempted(), ended(Signaled(signal=15)))

    assert occasions_of(*stops, requeue=False) == ["begin", "fail"]


@given(on=st.sets(st.sampled_from(Occasion)))
def test_only_what_was_asked_for_is_announced(on: set[Occasion]) -> None:
    mail = Mail(on=tuple(sorted(on)))
    every = occasions_of(placed(), started(), ended(TimedOut(limit=Duration(1))))

    found = occasions_of(placed(), started(), ended(TimedOut(limit=Duration(1))), mail=mail)

    assert found == [each for each in every if each in on]


def test_what_begins_and_ends_in_one_commit_is_announced_as_two_things() -> None:
    events = (started(), replace(ended(Exited(code=0)), at=Instant(NOW + 5_000)))
    now = job(after=(placed(), *events))
    now = replace(now, spec=replace(now.spec, mail=EVERYTHING))
    held = Allocation(job=JOB, attempt=1, cluster=placed().cluster, placements=(), placed_at=NOW)

    begun, over = notices_of(now, held, events)

    assert (begun.on, over.on, over.ran) == (Occasion.BEGIN, Occasion.END, 5_000)


def test_the_time_for_which_a_job_stood_still_does_not_count_as_run() -> None:
    held = Allocation(
        job=JOB,
        attempt=1,
        cluster=placed().cluster,
        placements=(),
        placed_at=NOW,
        started_at=NOW,
        stands_since=Instant(NOW + 70_000),
        stood=Duration(20_000),
    )

    notice = Notice(on=Occasion.END, job=job(), at=Instant(NOW + 100_000), held=held)

    assert notice.ran == 50_000
    running = replace(job(after=(placed(), started())), spec=_limited(60_000))
    goes_on = replace(held, stands_since=None)
    assert marks_of(running, goes_on) == {
        Occasion.TIME_LIMIT_50: NOW + 20_000 + 30_000,
        Occasion.TIME_LIMIT_90: NOW + 20_000 + 54_000,
    }
    assert marks_of(replace(running, state=JobState.SUSPENDED), held) == {}


def _limited(limit: int) -> JobSpec:
    on = (Occasion.TIME_LIMIT_50, Occasion.TIME_LIMIT_90)
    return spec(mail=Mail(on=on), time_limit=Duration(limit))


def part(index: int, why: EndReason, *, attempt: int = 1, mail: Mail = EVERYTHING) -> Ended:
    state = JobState.COMPLETED if why == Exited(code=0) else JobState.FAILED
    array = ArrayPart(array=JobId(100), index=index)
    over = Job(
        id=JobId(100 + index),
        spec=spec(array=array, mail=mail),
        state=state,
        why=why,
        submitted_at=NOW,
        attempt=attempt,
    )
    return Ended(job=over, started_at=NOW, ended_at=Instant(NOW + 1_000 - index))


@pytest.mark.parametrize(
    ("ends", "on", "least", "most"),
    [
        ([Exited(code=0), Exited(code=0)], Occasion.END, 0, 0),
        ([Exited(code=0), Exited(code=2)], Occasion.FAIL, 0, 512),
        ([Exited(code=0), Signaled(signal=9)], Occasion.END, 0, 9),
        ([Exited(code=1), Signaled(signal=9)], Occasion.FAIL, 9, 256),
        ([Cancelled(by=ANN), Cancelled(by=ANN)], Occasion.END, 9, 9),
    ],
)
def test_an_array_is_announced_as_a_whole(
    ends: list[EndReason], on: Occasion, least: int, most: int
) -> None:
    (notice,) = notices_of_array([part(index, why) for index, why in enumerate(ends)])

    assert notice.spread is not None
    assert (notice.on, notice.spread.least, notice.spread.most) == (on, least, most)
    assert notice.job.id == 100 + len(ends) - 1


def test_an_array_with_a_failed_part_has_ended_for_those_who_ask_for_the_end_alone() -> None:
    mail = Mail(on=(Occasion.END,))

    (notice,) = notices_of_array([part(each, Exited(code=each), mail=mail) for each in range(2)])

    assert notice.on is Occasion.END


def test_an_array_in_which_a_part_began_twice_was_requeued() -> None:
    parts = [part(0, Exited(code=0), attempt=2), part(1, Exited(code=0))]

    assert [each.on for each in notices_of_array(parts)] == [Occasion.REQUEUE, Occasion.END]


@given(st.lists(st.integers(0, 255), min_size=1))
def test_the_statuses_of_an_array_lie_between_its_least_and_its_most(codes: list[int]) -> None:
    parts = [part(index, Exited(code=code)) for index, code in enumerate(codes)]

    (notice,) = notices_of_array(parts)

    assert notice.spread is not None
    assert notice.spread.least == min(codes) * 256
    assert notice.spread.most == max(codes) * 256 == max(status_of(each.job.why) for each in parts)


@pytest.mark.parametrize(
    ("kind", "state", "hopeless"),
    [
        (DependencyKind.AFTER_OK, JobState.FAILED, True),
        (DependencyKind.AFTER_OK, JobState.COMPLETED, False),
        (DependencyKind.AFTER_NOT_OK, JobState.COMPLETED, True),
        (DependencyKind.AFTER_ANY, JobState.FAILED, False),
    ],
)
def test_a_dependency_is_hopeless_when_the_other_job_came_out_so(
    kind: DependencyKind, state: JobState, *, hopeless: bool
) -> None:
    asked = spec(after=(Dependency(kind=kind, job=OTHER),))
    finished = {OTHER: Finished(state=state, started_at=NOW, ended_at=NOW)}

    assert is_hopeless(asked, finished) is hopeless
    assert not is_hopeless(asked, {})


def test_a_dependency_is_not_hopeless_while_one_of_its_ways_is_open() -> None:
    first, second = (
        Dependency(kind=DependencyKind.AFTER_OK, job=JobId(each), way=each) for each in (1, 2)
    )
    failed = Finished(state=JobState.FAILED, started_at=NOW, ended_at=NOW)

    assert not is_hopeless(spec(after=(first, second)), {JobId(1): failed})
    assert is_hopeless(spec(after=(first, second)), {JobId(1): failed, JobId(2): failed})


@pytest.mark.parametrize(
    "text", ["ann", "ann@example.org", "a.b+c@x-y.org,bob", "müller@example.org", "u1234", "a=b@x"]
)
def test_these_can_be_written_to(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    ["", "-f", "-A/etc/shadow", "|reboot", "/etc/passwd", "a@b,|x", "a b", "a\nb", "a,,b", "~x"],
)
def test_what_mail_programs_take_for_something_else_is_no_address(text: str) -> None:
    assert not is_address(text)
