"""What every store promises about forgetting."""

from contracts.stores.given import (
    attempt,
    ended,
    job,
    launch_of,
    node,
    over,
    part,
    step,
    submitted,
    write,
)
from muster.model.event import NodeSeen, StepBegan
from muster.model.value import Instant, JobId, NodeId
from muster.stores.base import EventQuery, HistoryQuery
from muster.stores.opening import WholeStore


def test_all_that_is_kept_of_an_old_job_goes(store: WholeStore) -> None:
    for number in (1, 2):
        write(
            store,
            events=(
                submitted(number),
                StepBegan(at=Instant(number), step=step(number)),
                over(number, at=number * 100),
            ),
            attempts=(attempt(number, "n1"),),
            steps=(step(number), step(number, 1)),
            launches=(launch_of(number),),
            ended=(ended(number, at=number * 100),),
        )

    forgotten = store.forget(Instant(200), limit=10)

    assert forgotten == 1
    assert left(store) == [2]
    assert store.finished((JobId(1),)) == {}
    assert store.attempts((JobId(1), JobId(2))) == (attempt(2, "n1"),)
    assert store.steps((JobId(1), JobId(2))) == (step(2), step(2, 1))
    assert store.launch(JobId(1)) is None
    assert store.launch(JobId(2)) is not None
    assert [stored.number for stored in store.events(EventQuery())] == [4, 5, 6]
    by_queue = store.ended(HistoryQuery(queues=(ended(1, at=1).job.spec.queue,)))
    assert [each.job.id for each in by_queue.jobs] == [2]
    by_node = store.ended(HistoryQuery(nodes=(NodeId("n1"),)))
    assert [each.job.id for each in by_node.jobs] == [2]


def test_the_oldest_go_first_and_no_more_than_asked(store: WholeStore) -> None:
    write(store, ended=tuple(ended(number, at=1_000 - number) for number in range(1, 301)))

    assert store.forget(Instant(2_000), limit=250) == 250
    assert left(store) == list(range(1, 51))
    assert store.forget(Instant(2_000), limit=250) == 50
    assert store.forget(Instant(2_000), limit=250) == 0


def test_what_is_live_is_not_forgotten(store: WholeStore) -> None:
    write(store, jobs=(job(1),), events=(submitted(1),), launches=(launch_of(1),))

    assert store.forget(Instant(10_000), limit=10) == 0
    assert store.load().jobs == (job(1),)
    assert store.launch(JobId(1)) is not None
    assert len(store.events(EventQuery(job=JobId(1)))) == 1


def test_an_array_keeps_what_it_runs_until_its_last_job_is_forgotten(store: WholeStore) -> None:
    write(
        store,
        launches=(launch_of(1),),
        ended=(ended(1, at=10, array=part(1, 0)), ended(2, at=20, array=part(1, 1))),
        jobs=(job(3, array=part(1, 2)),),
    )

    store.forget(Instant(15), limit=10)
    after_the_first = store.launch(JobId(1))
    store.forget(Instant(25), limit=10)
    after_the_second = store.launch(JobId(1))
    write(store, ended=(ended(3, at=30, array=part(1, 2)),))
    store.forget(Instant(35), limit=10)

    assert after_the_first is not None
    assert after_the_second is not None
    assert store.launch(JobId(1)) is None


def test_numbers_of_later_events_stay(store: WholeStore) -> None:
    write(store, events=(submitted(1),), ended=(ended(1, at=1),))
    store.forget(Instant(5), limit=1)

    write(store, events=(submitted(2),))

    assert [stored.number for stored in store.events(EventQuery())] == [2]
    assert store.load().last_event == 2


def test_old_events_of_nodes_go_too(store: WholeStore) -> None:
    seen = tuple(NodeSeen(at=Instant(at), node=node("n1")) for at in (5, 50))
    write(store, events=seen, nodes=(node("n1"),))

    store.forget(Instant(50), limit=10)

    assert [stored.event for stored in store.events(EventQuery())] == [seen[1]]
    assert store.load().nodes == (node("n1"),)


def left(store: WholeStore) -> list[int]:
    return sorted(each.job.id for each in store.ended(HistoryQuery(limit=1_000)).jobs)
