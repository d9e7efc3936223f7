"""Ordered to stop: every backend shows these."""

import pytest

from contracts.backends.engine import Doing, Engine
from contracts.backends.given import ANN, BY_ANN, BY_OTHER
from muster.model.event import JobCheckpointed, JobEnded, JobStarted
from muster.model.job import EndReason, Exited, Requeued

GOES_ON = Doing()
HOUR_MS = 3_600_000


@pytest.mark.parametrize("why", [BY_ANN, BY_OTHER, Requeued(by=ANN)], ids=repr)
def test_who_obeys_ends_at_once_for_the_given_reason(engine: Engine, why: EndReason) -> None:
    run = engine.runs_and_is_ready(GOES_ON)

    ordered_at = engine.stops(run, why, grace=HOUR_MS)

    end = engine.end_of(run)
    assert end.why == why
    assert ordered_at <= end.at <= ordered_at + 1_000 + engine.slack
    assert not engine.lives(run)


def test_who_does_not_obey_is_killed_when_the_grace_is_over(engine: Engine) -> None:
    run = engine.runs_and_is_ready(Doing(is_stubborn=True))

    ordered_at = engine.stops(run, BY_ANN, grace=300)

    end = engine.end_of(run)
    assert end.why == BY_ANN
    assert ordered_at + 300 <= end.at <= ordered_at + 300 + engine.slack
    assert not engine.lives(run)


def test_ordered_twice_it_ends_once(engine: Engine) -> None:
    run = engine.runs_and_is_ready(GOES_ON)

    engine.stops(run, BY_ANN)
    engine.stops(run, BY_ANN)
    engine.end_of(run)
    engine.stops(run, BY_ANN)
    engine.passes()

    assert engine.story_of(run) == [JobStarted, JobEnded]


def test_ordered_again_with_less_grace_it_ends_sooner(engine: Engine) -> None:
    run = engine.runs_and_is_ready(Doing(is_stubborn=True))

    engine.stops(run, BY_ANN, grace=HOUR_MS)
    ordered_at = engine.stops(run, BY_ANN, grace=200)

    assert engine.end_of(run).at <= ordered_at + 200 + engine.slack


def test_it_can_be_stopped_before_it_starts(engine: Engine) -> None:
    run = engine.runs(GOES_ON)
    engine.stops(run, BY_ANN, grace=1_000)

    assert engine.end_of(run).why == BY_ANN

    engine.does(run)
    engine.passes()
    assert not engine.lives(run)
    assert engine.story_of(run).count(JobEnded) == 1


def test_one_that_is_over_stays_as_it_ended(engine: Engine) -> None:
    run = engine.runs(Doing(code=3))
    engine.end_of(run)

    engine.stops(run, BY_ANN)
    engine.passes()

    assert engine.end_of(run).why == Exited(code=3)
    assert engine.story_of(run) == [JobStarted, JobEnded]


def test_a_stop_with_a_checkpoint_lets_one_be_written_first(engine: Engine) -> None:
    run = engine.runs_and_is_ready(Doing(saves_when_asked=True))

    ordered_at = engine.stops(run, BY_OTHER, grace=20_000, saving=True)

    end = engine.end_of(run)
    assert end.why == BY_OTHER
    assert engine.story_of(run) == [JobStarted, JobCheckpointed, JobEnded]
    assert ordered_at <= engine.sees(JobCheckpointed, run).at <= end.at


def test_a_stop_without_one_does_not_ask_for_it(engine: Engine) -> None:
    run = engine.runs_and_is_ready(Doing(saves_when_asked=True))

    engine.stops(run, BY_OTHER)

    engine.end_of(run)
    assert engine.story_of(run) == [JobStarted, JobEnded]
