"""What a call costs does not depend on how much is over."""

from typing import Any

import pytest

from contracts.stores.given import (
    allocation,
    audit,
    ended,
    job,
    launch_of,
    node,
    site,
    submitted,
    used,
)
from contracts.stores.places import SqlitePlace, sqlite_file
from muster.model.job import JobState
from muster.model.value import JobId
from muster.stores.appending import appending
from muster.stores.base import Batch, HistoryQuery
from muster.stores.finding import ended_question
from muster.stores.talking import Drop, Put, Row, Say, Wish

LIVE = Batch(
    version=7,
    next_job=JobId(3),
    events=(submitted(1),),
    jobs=(job(1), job(2)),
    allocations=(allocation(1),),
    freed=(JobId(2),),
    launches=(launch_of(1),),
    nodes=(node("n1"),),
    site=site(),
    used=(used(),),
    audit=(audit(1),),
)
ENDING = Batch(version=7, next_job=JobId(3), ended=(ended(1, at=5),))


def test_the_history_is_touched_only_when_something_ends() -> None:
    assert {name for name in tables_of(LIVE) if name.startswith("history")} == set()
    assert tables_of(ENDING) >= {"history", "history_queues"}


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"users": ("ann",)},
        {"users": ("ann",), "states": (JobState.FAILED,), "queues": ("acme",)},
        {"queues": ("acme",)},
        {"queues": ("acme",), "states": (JobState.FAILED,), "ended_from": 5, "ended_to": 9},
        {"queues": ("acme",), "after": "end-5-1"},
        {"states": (JobState.FAILED,)},
        {"name": "train", "after": "end-5-1"},
        {"arrays": (5,)},
        {"ended_from": 5, "ended_to": 9, "after": "end-7-1"},
    ],
    ids=str,
)
def test_a_page_of_the_past_is_a_walk_along_an_index(
    sqlite: SqlitePlace, asked: dict[str, Any]
) -> None:
    steps = plan(sqlite, HistoryQuery(**asked))

    assert [step for step in steps if "TEMP B-TREE" in step] == []
    assert all("INDEX" in step or "PRIMARY KEY" in step for step in steps)


@pytest.mark.parametrize("asked", [{"nodes": ("n1",)}, {"jobs": (5, 7)}], ids=str)
def test_few_jobs_are_looked_up_one_by_one(sqlite: SqlitePlace, asked: dict[str, Any]) -> None:
    steps = plan(sqlite, HistoryQuery(**asked))

    assert "SEARCH h USING INTEGER PRIMARY KEY (rowid=?)" in steps


def plan(place: SqlitePlace, query: HistoryQuery) -> list[str]:
    """How SQLite would go about it."""
    place.open()
    question = ended_question(query)
    with sqlite_file(place.path) as file:
        rows = file.execute(f"EXPLAIN QUERY PLAN {question.sql}", question.given).fetchall()
    return [row[3] for row in rows]


def tables_of(batch: Batch) -> set[str]:
    """The tables that a batch writes to, asked of the talk itself."""
    talk = appending(batch)
    touched: set[str] = set()
    wish: Wish | None = next(talk)
    while wish is not None:
        match wish:
            case Put(table=table) | Drop(table=table):
                touched.add(table.name)
            case Say():
                pass
        wish = sent(talk, [(9,)])
    return touched


def sent(talk: Any, rows: list[Row]) -> Wish | None:
    try:
        return talk.send(rows)
    except StopIteration:
        return None
