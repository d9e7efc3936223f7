"""Taking over what runs: every backend shows these."""

from contracts.backends.engine import Doing, Engine
from contracts.backends.given import BY_ANN
from muster.backends.base import Suspend
from muster.model.event import JobEnded, JobStarted, JobSuspended
from muster.model.job import Exited, NodeFailed
from muster.model.value import Duration, replace

GOES_ON = Doing()


def test_what_is_named_goes_on_and_everything_else_ends(engine: Engine) -> None:
    kept, dropped = engine.runs_and_is_ready(GOES_ON), engine.runs_and_is_ready(GOES_ON)

    engine.reopens(kept)

    engine.until(lambda: not engine.lives(dropped))
    assert engine.lives(kept)
    assert engine.times_run(kept) == 1
    engine.stops(kept, BY_ANN)
    assert engine.end_of(kept).why == BY_ANN
    assert engine.story_of(dropped) == []


def test_what_happened_meanwhile_is_reported(engine: Engine) -> None:
    run = engine.runs_and_is_ready(Doing(code=3, lasts=Duration(300)))
    engine.leaves()
    engine.until_over_unseen(run)

    engine.reopens(run)

    assert engine.end_of(run).why == Exited(code=3)
    assert engine.times_run(run) == 1


def test_what_was_reported_before_is_reported_again(engine: Engine) -> None:
    run = engine.runs(Doing(code=0))
    first = engine.end_of(run)

    engine.reopens(run)

    assert engine.end_of(run) == first
    assert engine.story_of(run) == [JobStarted, JobEnded]


def test_one_that_stands_is_ordered_to_stand(engine: Engine) -> None:
    engine.needs_suspend()
    run = engine.runs_and_is_ready(GOES_ON)
    engine.does(Suspend(job=run.job.id, attempt=run.job.attempt))
    engine.sees(JobSuspended, run)

    engine.reopens(run)

    engine.sees(JobSuspended, run)
    assert engine.story_of(run) == [JobStarted, JobSuspended]


def test_one_that_was_never_begun_can_still_be_run(engine: Engine) -> None:
    run = engine.begins(Doing(code=0), None)

    engine.reopens(run)
    engine.does(run)

    assert engine.end_of(run).why == Exited(code=0)
    assert engine.story_of(run) == [JobStarted, JobEnded]


def test_one_that_ran_and_is_not_here_any_more_is_reported_lost(engine: Engine) -> None:
    run = engine.begins(GOES_ON, None)
    allocation = replace(run.allocation, started_at=run.allocation.placed_at)

    engine.reopens(replace(run, allocation=allocation))

    assert isinstance(engine.end_of(run).why, NodeFailed)
