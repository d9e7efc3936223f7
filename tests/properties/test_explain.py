"""Every job can be explained, and what is said to help does help."""

from hypothesis import given

from muster.model.job import JobState
from muster.model.plan import Start
from muster.model.value import replace
from muster.schedule.explain.alternatives import changed
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner, plan
from properties.strategies import worlds
from stories.world import World


@given(worlds())
def test_every_job_can_be_explained(world: World) -> None:
    snapshot = world.scene.snapshot()
    planner = Planner(world.policy)
    made, backlog = planner.plan(snapshot), planner.backlog()

    for job in snapshot.jobs:
        explained = explain(snapshot, made, job, backlog, planner)
        assert explained.text
        assert job not in explained.blockers
        assert set(explained.blockers) <= set(snapshot.jobs)


@given(worlds())
def test_an_alternative_that_is_said_to_start_now_does_start(world: World) -> None:
    snapshot = world.scene.snapshot()
    planner = Planner(world.policy)
    made, backlog = planner.plan(snapshot), planner.backlog()

    for wait in list(made.waits.values())[:2]:
        job = snapshot.jobs[wait.job]
        for alternative in explain(snapshot, made, wait.job, backlog).alternatives:
            assert job.state is JobState.PENDING
            asked = replace(job, spec=changed(alternative.change, job.spec), claim=None)
            again = plan(replace(snapshot, jobs={**snapshot.jobs, job.id: asked}), world.policy)
            starts = {one.job for one in again.moves if isinstance(one, Start)}
            assert (job.id in starts) == alternative.starts_now
