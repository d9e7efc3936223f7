"""The backlog of the last plan, for lists that must not wait long for it."""

from threading import Event

import pytest

from muster.controller.loop.controller import LastPlan
from muster.controller.planner.client import InlinePlanner
from muster.controller.queries.backlog import LatestBacklog
from muster.model.errors import OurBugError
from muster.model.plan import Backlog, NoEstimate, Plan, Prospect, Wait
from muster.model.policy import Policy
from muster.model.reason import NoRoom
from muster.model.value import Instant, JobId

NO_ROOM = NoRoom(group="main", placed=0, wanted=1, nodes=3)
LONG_S = 60.0


class Planner(InlinePlanner):
    """Has an answer ready, or keeps who asks waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Backlog | None = backlog(1)
        self.asked = 0
        self.is_free = Event()
        self.is_free.set()

    def backlog(self) -> Backlog:
        self.asked += 1
        self.is_free.wait(LONG_S)
        if self.answer is None:
            raise OurBugError("the planner's process ended")
        return self.answer


class Clock:
    """Goes on by so much whenever somebody looks at it."""

    def __init__(self, each_look_s: float) -> None:
        self.now_s = 0.0
        self._each_look_s = each_look_s

    def __call__(self) -> float:
        self.now_s += self._each_look_s
        return self.now_s


@pytest.fixture
def last_plan() -> LastPlan:
    made = LastPlan()
    settle(made)
    return made


def settle(last_plan: LastPlan) -> None:
    waits = {JobId(1): Wait(job=JobId(1), why=NO_ROOM)}
    last_plan.settle(Plan(snapshot_version=1, policy=Policy(), waits=waits), Instant(0), 1)


def backlog(position: int) -> Backlog:
    return {JobId(1): Prospect(expected=NoEstimate.UNBOUNDED, position=position)}


def test_the_planner_is_asked_once_after_each_plan(last_plan: LastPlan) -> None:
    planner = Planner()
    latest = LatestBacklog(last_plan, planner)

    assert latest.get(LONG_S) == backlog(1)
    assert latest.get(LONG_S) == backlog(1)
    assert planner.asked == 1

    planner.answer = backlog(2)
    settle(last_plan)

    assert latest.get(LONG_S) == backlog(2)
    assert planner.asked == 2


def test_while_the_planner_is_busy_a_list_has_the_backlog_of_an_earlier_plan(
    last_plan: LastPlan,
) -> None:
    planner = Planner()
    latest = LatestBacklog(last_plan, planner)
    latest.get(LONG_S)
    planner.is_free.clear()
    planner.answer = backlog(2)
    settle(last_plan)

    assert latest.get(0) == backlog(1)
    assert latest.get(0) == backlog(1)

    planner.is_free.set()
    assert latest.get(LONG_S) == backlog(2)
    assert planner.asked == 2


def test_a_planner_that_ended_leaves_what_was_known(last_plan: LastPlan) -> None:
    planner = Planner()
    latest = LatestBacklog(last_plan, planner)
    latest.get(LONG_S)
    planner.answer = None
    settle(last_plan)

    assert latest.get(LONG_S) == backlog(1)

    planner.answer = backlog(3)
    assert latest.get(LONG_S) == backlog(3)


def test_a_backlog_that_takes_long_is_not_asked_for_after_every_plan(last_plan: LastPlan) -> None:
    planner, clock = Planner(), Clock(each_look_s=1.0)
    latest = LatestBacklog(last_plan, planner, clock)
    latest.get(LONG_S)
    planner.answer = backlog(2)
    settle(last_plan)

    assert latest.get(LONG_S) == backlog(1)

    clock.now_s += 60
    assert latest.get(LONG_S) == backlog(2)
    assert planner.asked == 2


def test_nobody_is_asked_when_nothing_waits() -> None:
    planner = Planner()

    assert LatestBacklog(LastPlan(), planner).get(LONG_S) == {}
    assert planner.asked == 0
