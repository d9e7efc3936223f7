"""Every job can be explained, and what is said to help does help."""

from hypothesis import given

from muster.model.job import JobState
from muster.model.plan import Start, Wait
from muster.model.value import replace
from muster.schedule.explain.alternatives import changed
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner, plan
from properties.strategies import worlds
from stories.world import World


@given(worlds())
def test_every_job_can_be_explained(world: World) -> None:
    snapshot = world.scene.snapshot()
    made = plan(snapshot, world.policy)
    planner = Planner(world.policy)

    for job in snapshot.jobs:
        explained = explain(snapshot, made, job, planner)
        assert explained.text
        assert job not in explained.blockers
        assert set(explained.blockers) <= set(snapshot.jobs)


@given(worlds())
def test_an_alternative_that_is_said_to_start_now_does_start(world: World) -> None:
    snapshot = world.scene.snapshot()
    made = plan(snapshot, world.policy)

    for wait in [one for one in made.decisions if isinstance(one, Wait)][:2]:
        job = snapshot.jobs[wait.job]
        for alternative in explain(snapshot, made, wait.job).alternatives:
            assert job.state is JobState.PENDING
            asked = replace(job, spec=changed(alternative.change, job.spec), claim=None)
            again = plan(replace(snapshot, jobs={**snapshot.jobs, job.id: asked}), world.policy)
            starts = {one.job for one in again.decisions if isinstance(one, Start)}
            assert (job.id in starts) == alternative.starts_now
