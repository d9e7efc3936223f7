"""Every job can be explained, and what is said to help does help."""

from hypothesis import given

from muster.model.job import Job, JobState
from muster.model.plan import Clear, Start, Wait
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import replace
from muster.schedule.explain.alternatives import changed
from muster.schedule.explain.changes import ladders
from muster.schedule.explain.explanation import explain
from muster.schedule.plan import Planner, plan
from muster.schedule.policy.variants import Variant
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


@given(worlds())
def test_of_each_variant_one_plan_for_all_says_what_a_plan_of_its_own_says(world: World) -> None:
    snapshot = world.scene.snapshot()
    planner = Planner(world.policy)
    made = planner.plan(snapshot)

    for wait in list(made.waits.values())[:2]:
        job = snapshot.jobs[wait.job]
        specs = [
            changed(change, job.spec)
            for ladder in ladders(snapshot, job, wait.why)
            for change in ladder
        ]
        variants = [
            replace(job, spec=spec, claim=None) for spec in specs if spec.queue == job.spec.queue
        ]
        if variants:
            found = planner.variants(snapshot, variants)
            assert found == [_alone(snapshot, variant, world.policy) for variant in variants]


def _alone(snapshot: Snapshot, job: Job, policy: Policy) -> Variant:
    planner = Planner(policy)
    made = planner.plan(replace(snapshot, jobs={**snapshot.jobs, job.id: job}))
    decision = made.decision(job.id)
    if isinstance(decision, Wait):
        return Variant(starts_now=False, expected=planner.expected_start(job.id))
    is_clear = isinstance(decision, Clear)
    expected = decision.until if is_clear else snapshot.now
    return Variant(starts_now=not is_clear, expected=expected)
