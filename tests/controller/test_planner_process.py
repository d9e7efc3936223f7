"""The planner in another process gives the same answers, and is replaced when it dies."""

import os
import signal
from collections.abc import Iterator

import pytest

from controller.desk import Desk
from muster.controller.planner.client import InlinePlanner
from muster.controller.planner.process import ProcessPlanner
from muster.model.errors import OurBugError, UnknownError
from muster.model.policy import Policy
from muster.model.value import JobId


@pytest.fixture
def planner() -> Iterator[ProcessPlanner]:
    made = ProcessPlanner()
    yield made
    made.close()


def busy_desk() -> Desk:
    desk = Desk(nodes=2)
    for number in range(10):
        desk.submits(gpus=number % 4 + 1, lasts=60 + number, limit_s=120)
    return desk


def test_both_thinkers_think_the_same(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()

    for _ in range(4):
        snapshot = desk.record.snapshot(desk.simulation.now)
        policy = desk.record.site.policy
        assert planner.plan(snapshot, policy) == here.plan(snapshot, policy)
        desk.lets_pass(40)


def test_both_thinkers_explain_the_same(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    desk.lets_pass(1)
    snapshot = desk.record.snapshot(desk.simulation.now)
    waiting = next(job.id for job in snapshot.jobs.values() if job.state == "pending")
    planner.plan(snapshot, Policy())
    here.plan(snapshot, Policy())

    assert planner.explain(waiting) == here.explain(waiting)


def test_a_job_that_was_never_planned_is_unknown(planner: ProcessPlanner) -> None:
    desk = busy_desk()
    planner.plan(desk.record.snapshot(desk.simulation.now), Policy())

    with pytest.raises(UnknownError, match="not planned yet"):
        planner.explain(JobId(99))


def test_a_rehearsal_changes_nothing_that_is_remembered(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    snapshot = desk.record.snapshot(desk.simulation.now)
    first = planner.plan(snapshot, Policy())

    rehearsed = planner.rehearse(snapshot, Policy(backfill_depth=1))
    again = planner.plan(snapshot, Policy())

    assert rehearsed == here.rehearse(snapshot, Policy(backfill_depth=1))
    assert again == first


def test_when_its_process_is_killed_another_one_answers(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    snapshot = desk.record.snapshot(desk.simulation.now)
    planner.plan(snapshot, Policy())
    assert planner.pid is not None

    os.kill(planner.pid, signal.SIGKILL)
    try:
        answer = planner.plan(snapshot, Policy())
    except OurBugError:
        # The pipe broke while it was asked: the next question finds a new process.
        answer = planner.plan(snapshot, Policy())

    assert answer == here.plan(snapshot, Policy())
