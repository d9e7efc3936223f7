"""What every store promises about the past."""

from collections.abc import Iterator
from typing import Any

import pytest

from contracts.stores.given import (
    attempt,
    audit,
    date,
    ended,
    job,
    node,
    over,
    part,
    step,
    submitted,
    write,
)
from contracts.stores.places import Place
from muster.model.errors import UnknownError
from muster.model.event import NodeSeen, StepBegan
from muster.model.history import Ended, Finished, Used
from muster.model.job import JobState
from muster.model.value import Instant, JobId, replace
from muster.stores.base import EndedBy, EventQuery, HistoryQuery
from muster.stores.opening import WholeStore

MANY = (
    ended(1, at=100, user="ann", queue="acme", name="train"),
    ended(2, at=300, user="bob", queue="acme/nlp", name="train", state=JobState.FAILED),
    ended(3, at=200, user="ann", queue="acme2", name="eval", state=JobState.CANCELLED),
    ended(4, at=300, user="eve", queue="acme/nlp/big", name="eval", array=part(4, 0)),
    ended(5, at=50, user="eve", queue="acme/nl_", name="100%", array=part(4, 1)),
    ended(6, at=400, user="bob", queue="other", name="train", state=JobState.FAILED),
)


@pytest.fixture
def history(store: WholeStore) -> WholeStore:
    write(store, attempts=(attempt(1, "n1"), attempt(2, "n1", "n2")))
    write(store, attempts=(attempt(2, "n3", attempt_number=2), attempt(9, "n1")))
    write(store, ended=MANY, jobs=(job(9),))
    return store


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [6, 4, 2, 3, 1, 5]),
        ({"order": EndedBy.ID}, [6, 5, 4, 3, 2, 1]),
        ({"jobs": (3, 5, 77)}, [3, 5]),
        ({"arrays": (4,)}, [4, 5]),
        ({"users": ("ann",)}, [3, 1]),
        ({"users": ("ann", "eve"), "order": EndedBy.ID}, [5, 4, 3, 1]),
        ({"queues": ("acme",)}, [4, 2, 1, 5]),
        ({"queues": ("acme",), "order": EndedBy.ID}, [5, 4, 2, 1]),
        ({"queues": ("acme/nlp",)}, [4, 2]),
        ({"queues": ("acme/nl_",)}, [5]),
        ({"queues": ("acm%",)}, []),
        ({"queues": ("acme/nlp", "other")}, [6, 4, 2]),
        ({"queues": ("acme",), "users": ("eve",)}, [4, 5]),
        ({"queues": ("acme",), "states": (JobState.FAILED,)}, [2]),
        ({"nodes": ("n1",)}, [2, 1]),
        ({"nodes": ("n1", "n2", "n3")}, [2, 1]),
        ({"nodes": ("n3",), "queues": ("acme",)}, [2]),
        ({"states": (JobState.FAILED,)}, [6, 2]),
        ({"states": (JobState.FAILED, JobState.CANCELLED)}, [6, 2, 3]),
        ({"name": "train"}, [6, 2, 1]),
        ({"name": "100%"}, [5]),
        ({"name": "%"}, []),
        ({"ended_from": 200}, [6, 4, 2, 3]),
        ({"ended_to": 200}, [1, 5]),
        ({"ended_from": 200, "ended_to": 400, "queues": ("acme",)}, [4, 2]),
        ({"users": ("bob",), "states": (JobState.FAILED,), "name": "train", "ended_to": 350}, [2]),
    ],
    ids=str,
)
def test_ended_jobs_are_found_by_everything_that_is_given(
    history: WholeStore, asked: dict[str, Any], expected: list[int]
) -> None:
    page = history.ended(HistoryQuery(**asked))

    assert [each.job.id for each in page.jobs] == expected
    assert page.next is None


@pytest.mark.parametrize("order", EndedBy)
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("queues", [(), ("acme",), ("acme", "other")], ids=str)
def test_pages_join_without_gaps_or_repetitions(
    history: WholeStore, order: EndedBy, limit: int, queues: tuple[Any, ...]
) -> None:
    whole = history.ended(HistoryQuery(order=order, queues=queues)).jobs

    pages = list(paged(history, HistoryQuery(order=order, queues=queues, limit=limit)))

    assert tuple(each for page in pages for each in page) == whole
    assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.parametrize("order", EndedBy)
def test_jobs_that_end_while_somebody_turns_pages_disturb_nobody(
    history: WholeStore, order: EndedBy
) -> None:
    query = HistoryQuery(order=order, limit=2)
    seen: list[Ended] = []
    for number, page in enumerate(paged(history, query)):
        seen += page
        write(history, ended=(ended(100 + number, at=1_000 + number),))

    assert sorted(seen, key=lambda each: each.job.id) == list(MANY)


def test_a_mark_of_another_order_is_refused(history: WholeStore) -> None:
    page = history.ended(HistoryQuery(limit=1))

    with pytest.raises(UnknownError, match="for the first page"):
        history.ended(HistoryQuery(limit=1, order=EndedBy.ID, after=page.next))


@pytest.mark.parametrize("mark", ["", "7", "end-x-1", "end-1-1; DROP TABLE history", "end-1"])
def test_a_mark_that_nobody_gave_is_refused(history: WholeStore, mark: str) -> None:
    with pytest.raises(UnknownError, match="for the first page"):
        history.ended(HistoryQuery(after=mark))


def test_how_jobs_came_out_is_known_of_those_that_are_over(history: WholeStore) -> None:
    found = history.finished((JobId(2), JobId(9), JobId(77), JobId(2)))

    expected = Finished(state=JobState.FAILED, started_at=Instant(299), ended_at=Instant(300))
    assert found == {JobId(2): expected}
    assert history.finished(()) == {}


def test_a_job_that_never_started_has_no_start(store: WholeStore) -> None:
    write(store, ended=(replace(ended(1, at=5), started_at=None),))

    assert store.finished((JobId(1),))[JobId(1)].started_at is None


def test_attempts_come_by_job_and_number(history: WholeStore) -> None:
    found = history.attempts((JobId(2), JobId(1), JobId(77), JobId(2)))

    expected = (attempt(1, "n1"), attempt(2, "n1", "n2"), attempt(2, "n3", attempt_number=2))
    assert found == expected


def test_steps_come_by_job_attempt_and_number(store: WholeStore) -> None:
    over_now = step(1, 1, ended_at=Instant(9), code=3, used=Used(cpu_ms=5))
    later = step(1, attempt_number=2)
    write(store, steps=(step(1, 1), step(1), step(2)))
    write(store, steps=(later, over_now), ended=(ended(2, at=9),))

    found = store.steps((JobId(2), JobId(1), JobId(77), JobId(2)))

    assert found == (step(1), over_now, later, step(2))
    assert store.steps(()) == ()


def test_many_jobs_at_once_are_no_trouble(store: WholeStore) -> None:
    numbers = range(1, 1_202)
    write(
        store,
        ended=tuple(ended(number, at=number) for number in numbers),
        attempts=tuple(attempt(number, "n1") for number in numbers),
    )
    jobs = tuple(JobId(number) for number in numbers)

    assert len(store.finished(jobs)) == 1_201
    assert [each.job for each in store.attempts(jobs)] == list(jobs)
    assert len(store.ended(HistoryQuery(jobs=jobs, limit=5_000)).jobs) == 1_201


def test_events_are_numbered_without_gaps(place: Place) -> None:
    store = place.open()
    seen = NodeSeen(at=Instant(2), node=node("n1"))
    write(store, events=(submitted(1), seen))
    write(store)
    write(store, events=(over(1),))

    found = place.open().events(EventQuery())

    assert [stored.number for stored in found] == [1, 2, 3]
    assert [stored.event for stored in found] == [submitted(1), seen, over(1)]


def test_events_are_read_on_from_a_place(store: WholeStore) -> None:
    write(store, events=tuple(submitted(number) for number in range(1, 8)))

    found = store.events(EventQuery(after=2, limit=3))

    assert [stored.number for stored in found] == [3, 4, 5]
    assert store.events(EventQuery(after=7)) == ()


def test_the_events_of_one_job_are_its_own(store: WholeStore) -> None:
    write(store, events=(submitted(1), submitted(2), over(1, at=9)))

    assert [stored.number for stored in store.events(EventQuery(job=JobId(1)))] == [1, 3]
    assert [stored.number for stored in store.events(EventQuery(job=JobId(1), after=1))] == [3]


def test_events_of_a_step_are_those_of_its_job(store: WholeStore) -> None:
    began = StepBegan(at=Instant(3), step=step(1))
    write(store, events=(submitted(2), began))

    assert [each.event for each in store.events(EventQuery(job=JobId(1)))] == [began]


def test_dates_come_latest_first_and_leave_with_their_jobs(store: WholeStore) -> None:
    write(store, ended=(ended(1, at=50), ended(2, at=90)), dates=(date(1, 20), date(2, 30)))
    write(store, dates=(date(3, 25),))

    assert [each.job for each in store.dates(since=Instant(0), limit=9)] == [2, 3, 1]
    assert [each.job for each in store.dates(since=Instant(25), limit=9)] == [2, 3]
    assert store.dates(since=Instant(0), limit=1) == (date(2, 30),)

    store.forget(Instant(60), limit=9)

    assert [each.job for each in store.dates(since=Instant(0), limit=9)] == [2, 3]


def test_who_changed_what_comes_newest_first(store: WholeStore) -> None:
    write(store, audit=(audit(5, "a"), audit(7, "b")))
    write(store, audit=(audit(6, "c"),))

    assert [each.action for each in store.audit(before=None, limit=9)] == ["b", "c", "a"]
    assert [each.action for each in store.audit(before=Instant(7), limit=1)] == ["c"]
    assert store.audit(before=Instant(5), limit=9) == ()


def test_a_page_of_the_audit_log_never_splits_an_instant(store: WholeStore) -> None:
    write(store, audit=(audit(5, "a"), audit(5, "b"), audit(5, "c"), audit(4, "d")))

    first = store.audit(before=None, limit=2)
    second = store.audit(before=first[-1].at, limit=2)

    assert [each.action for each in first] == ["c", "b", "a"]
    assert [each.action for each in second] == ["d"]


def paged(store: WholeStore, query: HistoryQuery) -> Iterator[tuple[Ended, ...]]:
    while True:
        page = store.ended(query)
        yield page.jobs
        if page.next is None:
            return
        query = replace(query, after=page.next)
