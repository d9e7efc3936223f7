"""Dates through the whole controller: asked for, shown, kept when jobs start, and judged."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from controller.desk import Desk, spec
from muster.app.forecaster import SERVER
from muster.controller.dates.board import STALE_MS, DateBoard
from muster.controller.dates.client import Forecasts, RuledSnapshot, SupposedDates
from muster.controller.dates.dated import dated, explained
from muster.controller.dates.process import ProcessForecasts
from muster.controller.dates.protocol import JobDate, Lessons
from muster.controller.loop.controller import LastPlan
from muster.model.dates import KeptDate, StartDate
from muster.model.errors import OurBugError
from muster.model.event import DeadlineMissForeseen
from muster.model.explanation import Alternative, Explanation, FewerGpus
from muster.model.job import Job
from muster.model.plan import NoEstimate, Prospect, Wait
from muster.model.queue import Queue
from muster.model.reason import NoRoom
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import SECOND, Instant, JobId, QueuePath, replace
from muster.model.versioned import with_values
from muster.simulator.forecast_server import InlineForecasts
from muster.stores.base import EventQuery

NOBODY_LOOKS = 0.0


class Board:
    """A desk with a board beside it, which looks when it is told to."""

    def __init__(self, forecasts: Forecasts | None = None) -> None:
        self.desk = Desk()
        self.last_plan = LastPlan()
        simulation = self.desk.simulation
        self.board = DateBoard(
            simulation.journal,
            self.last_plan,
            forecasts or InlineForecasts(lambda: NOBODY_LOOKS),
            lambda: simulation.now,
            simulation.journal.write,
        )
        self.board.begin(simulation.journal.transaction())

    def looks(self) -> bool:
        plan, _ = self.desk.plans()
        self.last_plan.settle(plan, self.desk.simulation.now, 0)
        return self.board.look()

    def kept(self) -> tuple[KeptDate, ...]:
        return self.desk.simulation.parts.history.dates(since=Instant(0), limit=100)


class DeafForecasts:
    """A forecaster that died."""

    def dates(self, snapshot: Snapshot, site: Site, news: Lessons) -> Iterator[tuple[JobDate, ...]]:
        del snapshot, site, news
        raise OurBugError("the forecaster's process ended")

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        del usual, changed, job
        raise OurBugError("the forecaster's process ended")

    def start(self) -> None:
        """It does not."""

    def close(self) -> None:
        """Nothing is held."""


def test_a_waiting_job_gets_a_date_and_loses_it_when_it_starts() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=60, limit_s=60)
    waiting = board.desk.submits(gpus=4, lasts=60, limit_s=60)
    board.desk.lets_pass(1)

    board.looks()
    date = board.board.latest()[waiting]
    board.desk.lets_pass(100)
    board.looks()

    assert date.early <= date.middle <= date.late
    assert date.middle == pytest.approx(60 * SECOND, abs=5 * SECOND)
    assert board.board.latest() == {}


def test_the_first_date_is_kept_with_the_start_that_it_foretold() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=60, limit_s=60)
    waiting = board.desk.submits(gpus=4, lasts=60, limit_s=60)
    board.desk.lets_pass(1)
    board.looks()
    first = board.board.latest()[waiting]
    board.desk.lets_pass(20)
    board.looks()

    board.desk.lets_pass(100)
    board.looks()

    (kept,) = board.kept()
    assert (kept.job, kept.told_at) == (waiting, SECOND)
    assert (kept.early, kept.late) == (first.early, first.late)
    assert kept.started_at == 60 * SECOND
    assert kept.held


def test_nothing_is_asked_while_nothing_changed() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=600)
    board.desk.submits(gpus=4, lasts=600)
    board.desk.lets_pass(1)

    assert board.looks()
    assert not board.board.look()

    board.desk.lets_pass(STALE_MS // SECOND + 1)
    assert board.board.look()


def test_a_job_that_was_cancelled_while_it_waited_is_not_judged() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=60)
    board.desk.lets_pass(0)
    waiting = board.desk.submits(gpus=4, lasts=60, deadline=Instant(30 * SECOND), limit_s=10)
    board.desk.lets_pass(1)
    board.looks()

    board.desk.lets_all_end()
    board.looks()

    assert board.desk.state(waiting) == "failed"
    assert board.kept() == ()


def test_a_job_that_will_miss_its_deadline_is_said_to_once() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=600, limit_s=600)
    board.desk.lets_pass(0)
    late = board.desk.submits(gpus=4, lasts=60, limit_s=60, deadline=Instant(300 * SECOND))
    board.desk.submits(gpus=4, lasts=60, limit_s=60, deadline=Instant(9_000 * SECOND))
    board.desk.lets_pass(1)

    board.looks()
    board.desk.lets_pass(20)
    board.looks()

    stored = board.desk.simulation.parts.history.events(EventQuery())
    said = [each.event for each in stored if isinstance(each.event, DeadlineMissForeseen)]
    assert [(each.job, each.deadline) for each in said] == [(late, 300 * SECOND)]
    assert said[0].starts_at > 300 * SECOND


def test_a_date_is_waited_for_only_while_the_job_waits() -> None:
    board = Board()
    running = board.desk.submits(gpus=4)
    waiting = board.desk.submits(gpus=4)
    board.desk.lets_pass(1)
    board.looks()

    assert board.board.soon(running, patience_s=60) is None
    assert board.board.soon(waiting, patience_s=60) == board.board.latest()[waiting]


def test_dates_stay_when_the_forecaster_is_gone() -> None:
    board = Board(DeafForecasts())
    board.desk.submits(gpus=4)
    board.desk.submits(gpus=4)
    board.desk.lets_pass(1)

    with pytest.raises(OurBugError):
        board.looks()

    assert board.board.latest() == {}


def test_dates_of_another_process_are_those_of_this_one() -> None:
    here, there = InlineForecasts(lambda: NOBODY_LOOKS), ProcessForecasts(SERVER, Lessons)
    desk = Desk(nodes=2)
    for number in range(12):
        desk.submits(gpus=number % 4 + 1, lasts=60 + number, limit_s=120)
    ended: list[Lessons] = []
    desk.simulation.watch(lambda batch, _: ended.append(Lessons(ended=batch.ended)))
    with closing(there):
        for _ in range(4):
            desk.lets_pass(50)
            snapshot, site = desk.record.snapshot(desk.simulation.now), desk.record.site
            news = Lessons(ended=tuple(each for some in ended for each in some.ended))
            ended.clear()

            assert list(there.dates(snapshot, site, news)) == list(here.dates(snapshot, site, news))


def test_a_job_that_is_only_supposed_has_a_date_and_leaves_no_trace() -> None:
    board = Board()
    running = board.desk.submits(gpus=4, lasts=600, limit_s=600)
    board.desk.lets_pass(1)
    usual = ruled(board.desk)
    guest = Job(
        id=JobId(9),
        spec=spec(gpus=4, limit_s=60, job_class="normal"),
        submitted_at=usual.snapshot.now,
    )
    jobs = with_values(usual.snapshot.jobs, {guest.id: guest})
    changed = replace(usual, snapshot=replace(usual.snapshot, jobs=jobs))

    found = board.board.suppose(usual, changed, guest.id)
    waiting = board.desk.submits(gpus=4)
    board.desk.lets_pass(1)
    board.looks()

    assert found.date is not None
    assert found.date.after == (running,)
    assert set(board.board.latest()) == {waiting}


def test_under_other_rules_it_is_known_who_would_move() -> None:
    board = Board()
    board.desk.submits(gpus=4, lasts=600, limit_s=600)
    first = board.desk.submits(gpus=4, lasts=600, limit_s=600, queue="a")
    second = board.desk.submits(gpus=4, lasts=600, limit_s=600)
    board.desk.lets_pass(1)
    usual = ruled(board.desk)
    queues = {**usual.site.queues, QueuePath("default"): favoured(usual.site)}
    site = replace(usual.site, queues=queues)
    changed = RuledSnapshot(snapshot=replace(usual.snapshot, queues=queues), site=site)

    moved = {each.job: each for each in board.board.suppose(usual, changed, None).moved}

    assert set(moved) == {first, second}
    assert moved[first].after > moved[first].before
    assert moved[second].after < moved[second].before


def test_nothing_is_supposed_without_a_forecaster() -> None:
    board = Board(DeafForecasts())
    usual = ruled(board.desk)

    assert board.board.suppose(usual, usual, None) == SupposedDates()


def ruled(desk: Desk) -> RuledSnapshot:
    snapshot = desk.record.snapshot(desk.simulation.now)
    return RuledSnapshot(snapshot=snapshot, site=desk.record.site)


def favoured(site: Site) -> Queue:
    """The default queue, if it went before all others."""
    return replace(site.queues[QueuePath("default")], priority=100_000)


def test_a_forecaster_that_was_killed_is_replaced() -> None:
    desk = Desk()
    desk.submits(gpus=4)
    waiting = desk.submits(gpus=4)
    desk.lets_pass(1)
    snapshot, site = desk.record.snapshot(desk.simulation.now), desk.record.site
    learned: list[int] = []

    def past() -> Lessons:
        learned.append(1)
        return Lessons()

    forecasts = ProcessForecasts(SERVER, past)
    with closing(forecasts):
        before = list(forecasts.dates(snapshot, site, Lessons()))
        assert forecasts.pid is not None
        os.kill(forecasts.pid, signal.SIGKILL)
        # It is noticed before anything is sent, or when nothing comes back.
        with suppress(OurBugError):
            list(forecasts.dates(snapshot, site, Lessons()))

        assert list(forecasts.dates(snapshot, site, Lessons())) == before

    assert before[0][0].job == waiting
    assert len(learned) == 2


DATE = StartDate(early=Instant(10), middle=Instant(20), late=Instant(40))


def test_a_forecast_takes_the_place_of_what_the_planner_reckoned() -> None:
    assert dated(Prospect(expected=Instant(99)), DATE).expected == 20
    assert dated(Prospect(expected=NoEstimate.UNBOUNDED), DATE).date == DATE
    assert dated(Prospect(expected=Instant(99)), None).expected == 99


def test_who_is_held_has_no_date_whatever_was_forecast() -> None:
    assert dated(Prospect(expected=NoEstimate.HELD), DATE).date is None


def test_an_explanation_says_when_the_deadline_will_be_missed() -> None:
    wait = Wait(job=JobId(1), why=NoRoom(group="main", placed=0, wanted=1, nodes=1))
    found = Explanation(job=JobId(1), decision=wait, text="Waits.", expected=Instant(99))
    due = replace(spec(), deadline=Instant(15))
    job = Job(id=JobId(1), spec=due, submitted_at=Instant(0))

    told = explained(found, DATE, job, Instant(0))

    assert told.text.startswith("Waits. It is expected to start too late for its deadline, ")


def test_an_explanation_suggests_only_what_is_sooner_than_its_date() -> None:
    def alternative(expected: int) -> Alternative:
        at = Instant(expected)
        return Alternative(change=FewerGpus(gpus=1), starts_now=False, expected=at, text="")

    wait = Wait(job=JobId(1), why=NoRoom(group="main", placed=0, wanted=1, nodes=1))
    found = Explanation(
        job=JobId(1),
        decision=wait,
        text="",
        expected=Instant(99),
        alternatives=(alternative(5), alternative(50)),
    )

    told = explained(
        found, DATE, Job(id=JobId(1), spec=spec(), submitted_at=Instant(0)), Instant(0)
    )

    assert (told.expected, told.date) == (20, DATE)
    assert [each.expected for each in told.alternatives] == [5]
