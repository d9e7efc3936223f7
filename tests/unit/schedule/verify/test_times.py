"""When jobs may begin, and capacity that is promised for a time."""

import pytest

from muster.model.cluster import AmountReserved, NodesReserved
from muster.model.history import Finished
from muster.model.job import ArrayPart, Dependency, DependencyKind, JobState
from muster.model.value import (
    HOUR,
    MINUTE,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from unit.schedule.yard import NOW, Yard, at, claim_on, clear, resume, start

AFTER, OK = DependencyKind.AFTER, DependencyKind.AFTER_OK
NOT_OK, ANY = DependencyKind.AFTER_NOT_OK, DependencyKind.AFTER_ANY


def after(kind: DependencyKind, delay: int = 0) -> tuple[Dependency, ...]:
    return (Dependency(kind=kind, job=JobId(1), delay=Duration(delay)),)


def test_no_job_begins_too_early() -> None:
    yard = Yard()
    yard.waits(1, begin_at=NOW)
    yard.waits(2, begin_at=Instant(NOW + 1))

    assert yard.judge(start(1, at("n1"))) == []
    assert yard.judge(start(2, at("n1"))) == ["begin"]
    assert yard.judge(clear(2, at("n1"))) == ["begin"]


@pytest.mark.parametrize(
    ("state", "met"),
    [
        (JobState.COMPLETED, {AFTER, OK, ANY}),
        (JobState.FAILED, {AFTER, NOT_OK, ANY}),
        (JobState.CANCELLED, {AFTER, NOT_OK, ANY}),
    ],
)
def test_a_job_waits_for_the_end_it_needs(state: JobState, met: set[DependencyKind]) -> None:
    yard = Yard()
    yard.finished[JobId(1)] = Finished(state=state, started_at=None, ended_at=NOW)
    for kind in (AFTER, OK, NOT_OK, ANY):
        yard.waits(2, after=after(kind))
        assert yard.judge(start(2, at("n1"))) == ([] if kind in met else ["dependency"])


def test_of_several_ways_a_job_needs_one() -> None:
    yard = Yard()
    ok, bad = Finished(state=JobState.COMPLETED, started_at=None, ended_at=NOW), JobState.FAILED
    yard.finished[JobId(1)] = ok
    yard.finished[JobId(2)] = replace(ok, state=bad)
    met, failed = (Dependency(kind=OK, job=JobId(each)) for each in (1, 2))
    yard.waits(3, after=(failed, replace(met, way=1)))
    yard.waits(4, after=(met, failed))
    yard.waits(5, after=(failed, replace(met, way=1), replace(failed, way=1)))

    assert yard.judge(start(3, at("n1"))) == []
    assert yard.judge(start(4, at("n1"))) == ["dependency"]
    assert yard.judge(start(5, at("n1"))) == ["dependency"]


def test_a_running_job_has_begun_and_not_ended() -> None:
    yard = Yard()
    yard.runs(1, at("n1"))
    for kind in (AFTER, OK, NOT_OK, ANY):
        yard.waits(2, after=after(kind))
        assert yard.judge(start(2, at("n2"))) == ([] if kind is AFTER else ["dependency"])


def test_after_counts_from_the_start() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), started_at=NOW - MINUTE)
    yard.waits(2, after=after(AFTER, delay=MINUTE))
    yard.waits(3, after=after(AFTER, delay=MINUTE + 1))

    assert yard.judge(start(2, at("n2"))) == []
    assert yard.judge(start(3, at("n2"))) == ["dependency"]


def test_a_job_that_nobody_knows_or_that_never_began_meets_nothing() -> None:
    yard = Yard()
    yard.waits(2, after=after(AFTER))
    yard.waits(3, after=(Dependency(kind=ANY),))

    assert yard.judge(start(2, at("n2"))) == ["dependency"]
    assert yard.judge(start(3, at("n2"))) == ["dependency"]

    yard.waits(1)
    assert yard.judge(start(2, at("n2"))) == ["dependency"]

    yard.jobs[JobId(1)] = replace(yard.jobs[JobId(1)], attempt=1)
    assert yard.judge(start(2, at("n2"))) == []


def test_a_singleton_waits_for_earlier_jobs_of_its_user_and_name() -> None:
    alone = (Dependency(kind=DependencyKind.SINGLETON),)
    yard = Yard()
    yard.waits(1, name="x")
    yard.waits(2, name="x", after=alone)
    yard.waits(3, name="x", after=alone, user=UserName("bob"))
    yard.waits(4, name="y", after=alone)

    assert yard.judge(start(2, at("n1"))) == ["dependency"]
    assert yard.judge(start(3, at("n1")), start(4, at("n2"))) == []

    del yard.jobs[JobId(1)]
    assert yard.judge(start(2, at("n1"))) == []


def test_a_job_must_be_able_to_meet_its_deadline() -> None:
    yard = Yard()
    deadline = Instant(NOW + HOUR)
    yard.waits(1, deadline=deadline, time_limit=HOUR)
    yard.waits(2, deadline=deadline, time_limit=Duration(HOUR + 1))
    yard.waits(3, deadline=deadline)

    verdicts = [yard.judge(start(job, at("n1"))) for job in (1, 2, 3)]

    assert verdicts == [[], ["deadline"], ["deadline"]]

    yard.pool("main", default_time=HOUR)
    assert yard.judge(start(3, at("n1"))) == []


def test_an_array_keeps_its_width() -> None:
    yard = Yard()
    part = ArrayPart(array=JobId(1), index=0, at_once=2)
    yard.runs(1, at("n1"), array=part)
    for job in (2, 3):
        yard.waits(job, array=part)

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1", "g1")), start(3, at("n2"))) == ["array"]

    yard.waits(2, array=part, claim=claim_on(at("n1", "g1"), victims=[9]))
    assert yard.judge(start(3, at("n2"))) == ["array"]


def nodes_kept(yard: Yard, begins: int, ends: int, queue: str | None = None) -> None:
    yard.reservations.append(
        NodesReserved(
            name="fair",
            nodes=(NodeId("n1"),),
            begins_at=Instant(NOW + begins),
            ends_at=Instant(NOW + ends),
            for_queue=None if queue is None else QueuePath(queue),
        )
    )


def test_reserved_nodes_are_left_before_the_window_begins() -> None:
    yard = Yard()
    nodes_kept(yard, HOUR, 2 * HOUR)
    yard.waits(1, time_limit=HOUR)
    yard.waits(2, time_limit=Duration(HOUR + 1))
    yard.waits(3)

    assert [yard.judge(start(job, at("n2"))) for job in (1, 2, 3)] == [[], [], []]
    verdicts = [yard.judge(start(job, at("n1"))) for job in (1, 2, 3)]
    assert verdicts == [[], ["reserved"], ["reserved"]]


def test_a_window_that_is_over_keeps_nobody_off() -> None:
    yard = Yard()
    nodes_kept(yard, -HOUR, 0)
    yard.waits(1)

    assert yard.judge(start(1, at("n1"))) == []


def test_reserved_nodes_are_there_for_their_queue_and_those_below_it() -> None:
    yard = Yard()
    nodes_kept(yard, -HOUR, HOUR, queue="a")
    yard.queue("a/b")
    yard.queue("ab")
    for job, queue in ((1, "a"), (2, "a/b"), (3, "ab")):
        yard.waits(job, queue=QueuePath(queue))

    verdicts = [yard.judge(start(job, at("n1"))) for job in (1, 2, 3)]

    assert verdicts == [[], [], ["reserved"]]


def test_nobody_is_resumed_in_the_window_of_others() -> None:
    yard = Yard()
    nodes_kept(yard, -HOUR, HOUR)
    yard.runs(1, at("n1"), state=JobState.SUSPENDED, time_limit=HOUR)

    assert yard.judge(resume(1)) == ["reserved"]


def gpus_promised(yard: Yard, gpu_milli: int) -> None:
    yard.queue("b")
    yard.reservations.append(
        AmountReserved(
            name="course",
            pool=PoolName("main"),
            gpu_milli=gpu_milli,
            for_queue=QueuePath("b"),
            begins_at=Instant(NOW + HOUR),
            ends_at=Instant(NOW + 2 * HOUR),
        )
    )


def test_outsiders_leave_the_promised_amount() -> None:
    yard = Yard()
    gpus_promised(yard, 2_000)
    yard.runs(1, at("n1"))
    yard.waits(2)
    yard.waits(3)
    yard.waits(4, time_limit=HOUR)
    yard.waits(5, queue=QueuePath("b"))
    second = start(2, at("n1", "g1"))

    assert yard.judge(second) == []
    assert yard.judge(second, start(3, at("n2"))) == ["reserved"]
    assert yard.judge(second, start(4, at("n2"))) == []
    assert yard.judge(second, start(5, at("n2"))) == []


def test_outsiders_that_end_before_the_window_do_not_count() -> None:
    yard = Yard()
    gpus_promised(yard, 3_000)
    yard.runs(1, at("n1"), time_limit=Duration(2 * HOUR))
    yard.waits(2)

    assert yard.judge(start(2, at("n2"))) == []

    yard.runs(1, at("n1"), time_limit=Duration(2 * HOUR + 1))
    assert yard.judge(start(2, at("n2"))) == ["reserved"]
