"""The planner in another process gives the same answers, and is replaced when it dies."""

import os
import signal
from collections.abc import Iterator

import pytest

from controller.desk import Desk
from muster.controller.thinker_process import ProcessThinker
from muster.controller.thinking import HereThinker
from muster.model.errors import OurBugError, UnknownError
from muster.model.policy import Policy
from muster.model.value import JobId


@pytest.fixture
def thinker() -> Iterator[ProcessThinker]:
    made = ProcessThinker()
    yield made
    made.close()


def busy_desk() -> Desk:
    desk = Desk(nodes=2)
    for number in range(10):
        desk.submits(gpus=number % 4 + 1, lasts=60 + number, limit_s=120)
    return desk


def test_both_thinkers_think_the_same(thinker: ProcessThinker) -> None:
    desk, here = busy_desk(), HereThinker()

    for _ in range(4):
        snapshot = desk.record.snapshot(desk.simulation.now)
        policy = desk.record.site.policy
        assert thinker.think(snapshot, policy) == here.think(snapshot, policy)
        desk.lets_pass(40)


def test_both_thinkers_explain_the_same(thinker: ProcessThinker) -> None:
    desk, here = busy_desk(), HereThinker()
    desk.lets_pass(1)
    snapshot = desk.record.snapshot(desk.simulation.now)
    waiting = next(job.id for job in snapshot.jobs.values() if job.state == "pending")
    thinker.think(snapshot, Policy())
    here.think(snapshot, Policy())

    assert thinker.explain(waiting) == here.explain(waiting)


def test_a_job_that_was_never_planned_is_unknown(thinker: ProcessThinker) -> None:
    desk = busy_desk()
    thinker.think(desk.record.snapshot(desk.simulation.now), Policy())

    with pytest.raises(UnknownError, match="not planned yet"):
        thinker.explain(JobId(99))


def test_a_rehearsal_changes_nothing_that_is_remembered(thinker: ProcessThinker) -> None:
    desk, here = busy_desk(), HereThinker()
    snapshot = desk.record.snapshot(desk.simulation.now)
    first = thinker.think(snapshot, Policy())

    rehearsed = thinker.rehearse(snapshot, Policy(backfill_depth=1))
    again = thinker.think(snapshot, Policy())

    assert rehearsed == here.rehearse(snapshot, Policy(backfill_depth=1))
    assert again == first


def test_when_its_process_is_killed_another_one_answers(thinker: ProcessThinker) -> None:
    desk, here = busy_desk(), HereThinker()
    snapshot = desk.record.snapshot(desk.simulation.now)
    thinker.think(snapshot, Policy())
    assert thinker.pid is not None

    os.kill(thinker.pid, signal.SIGKILL)
    try:
        answer = thinker.think(snapshot, Policy())
    except OurBugError:
        # The pipe broke while it was asked: the next question finds a new process.
        answer = thinker.think(snapshot, Policy())

    assert answer == here.think(snapshot, Policy())
