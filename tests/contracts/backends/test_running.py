"""From Run to its end: every backend shows these."""

from pathlib import Path

import pytest

from contracts.backends.engine import Doing, Engine
from contracts.backends.given import BY_ANN
from muster.backends.base import Continue, Forget, Limit, Suspend
from muster.model.cluster import NodeState
from muster.model.event import (
    ClusterSeen,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
    NodeSeen,
)
from muster.model.job import Exited, TimedOut
from muster.model.value import Duration, Instant

GOES_ON = Doing()


def test_the_cluster_and_its_nodes_are_seen_at_first_sight(engine: Engine) -> None:
    first = engine.backend.observe(engine.now())

    assert [event.cluster for event in first if isinstance(event, ClusterSeen)] == [
        engine.backend.cluster
    ]
    nodes = [event.node for event in first if isinstance(event, NodeSeen)]
    assert len({node.id for node in nodes}) == len(nodes) == 2
    assert {node.state for node in nodes} == {NodeState.UP}
    assert {node.cluster for node in nodes} == {engine.backend.cluster.name}


def test_what_was_seen_is_not_reported_again(engine: Engine) -> None:
    engine.backend.observe(engine.now())

    assert engine.backend.observe(engine.now()) == ()


@pytest.mark.parametrize("code", [0, 3])
def test_an_attempt_starts_and_ends_with_its_code(engine: Engine, code: int) -> None:
    begun_at = engine.now()
    run = engine.runs(Doing(code=code))

    end = engine.end_of(run)

    assert end.why == Exited(code=code)
    assert engine.story_of(run) == [JobStarted, JobEnded]
    assert begun_at <= engine.sees(JobStarted, run).at <= end.at <= engine.now()


def test_sent_twice_it_is_run_once(engine: Engine) -> None:
    run = engine.runs(Doing(code=0))
    engine.does(run)
    engine.end_of(run)
    engine.does(run)

    engine.passes()

    assert engine.times_run(run) == 1
    assert engine.story_of(run) == [JobStarted, JobEnded]


def test_two_attempts_do_not_disturb_each_other(engine: Engine) -> None:
    long, short = engine.runs_and_is_ready(GOES_ON), engine.runs(Doing(code=1))

    assert engine.end_of(short).why == Exited(code=1)
    assert engine.lives(long)
    assert engine.story_of(long) == [JobStarted]


def test_a_suspended_attempt_stands_until_it_goes_on(engine: Engine) -> None:
    engine.needs_suspend()
    run = engine.runs_and_is_ready(Doing(code=0, lasts=Duration(300)))

    engine.does(Suspend(job=run.job.id, attempt=run.job.attempt))
    engine.sees(JobSuspended, run)
    engine.passes()
    assert engine.lives(run)

    engine.does(Continue(job=run.job.id, attempt=run.job.attempt))
    assert engine.end_of(run).why == Exited(code=0)
    assert engine.story_of(run) == [JobStarted, JobSuspended, JobEnded]


def test_a_suspended_attempt_can_be_stopped(engine: Engine) -> None:
    engine.needs_suspend()
    run = engine.runs_and_is_ready(GOES_ON)
    engine.does(Suspend(job=run.job.id, attempt=run.job.attempt))
    engine.sees(JobSuspended, run)

    engine.stops(run, BY_ANN)

    assert engine.end_of(run).why == BY_ANN
    assert not engine.lives(run)


def test_the_time_limit_ends_it(engine: Engine) -> None:
    run = engine.runs(GOES_ON, limit=400)

    end = engine.end_of(run)

    assert end.why == TimedOut(limit=Duration(400))
    ran = end.at - engine.sees(JobStarted, run).at
    assert 400 <= ran <= 400 + engine.slack
    assert not engine.lives(run)


def test_a_limit_that_is_changed_counts(engine: Engine) -> None:
    run = engine.runs_and_is_ready(GOES_ON, limit=3_600_000)
    ends_at = Instant(engine.now() + 200)

    engine.does(Limit(job=run.job.id, attempt=run.job.attempt, ends_at=ends_at))

    end = engine.end_of(run)
    assert isinstance(end.why, TimedOut)
    assert ends_at <= end.at <= ends_at + engine.slack


def test_a_limit_that_is_lifted_counts_no_more(engine: Engine) -> None:
    run = engine.runs(Doing(code=0, lasts=Duration(700)), limit=600)
    engine.does(Limit(job=run.job.id, attempt=run.job.attempt, ends_at=None))

    assert engine.end_of(run).why == Exited(code=0)


def test_a_checkpoint_that_was_written_is_reported(engine: Engine) -> None:
    begun_at = engine.now()
    run = engine.runs(Doing(saves=True))

    saved = engine.sees(JobCheckpointed, run)

    assert begun_at <= saved.at <= engine.now()
    assert engine.story_of(run)[:2] == [JobStarted, JobCheckpointed]


def test_what_is_forgotten_leaves_nothing(engine: Engine) -> None:
    over, going = engine.runs(Doing(code=0)), engine.runs_and_is_ready(GOES_ON)
    engine.end_of(over)

    for run in (over, going, over, going):
        engine.does(Forget(job=run.job.id, attempt=run.job.attempt))

    engine.until(lambda: not engine.lives(going))
    engine.reopens()
    engine.passes()
    assert engine.story_of(over) == engine.story_of(going) == []


def test_a_whole_backend_fits_in_150_lines() -> None:
    example = Path(__file__).with_name("example.py")

    assert len(example.read_text(encoding="utf-8").splitlines()) <= 150
