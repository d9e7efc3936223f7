"""Priorities and shares that lists show are those that the planner used."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Claim
from muster.model.policy import OrderWeights, Policy
from muster.model.queue import Queue, lineage
from muster.model.value import ClusterName, Instant, JobId, QueuePath, UserName, replace
from muster.model.versioned import VersionHistory
from muster.schedule.explain.shares import JobCounts, shares_of
from muster.schedule.plan import Planner
from muster.schedule.policy.merit import aged
from muster.schedule.state.follow import PlannerState
from properties.samples import QUEUES
from properties.strategies import guaranteed_worlds, worlds
from stories.world import World

WEIGHTS = st.builds(
    OrderWeights,
    size=st.sampled_from([0, 0, 500, -500]),
    short=st.sampled_from([0, 0, 700]),
    service=st.sampled_from([0, 0, 300]),
    queue=st.sampled_from([0, 1_000]),
)


@given(worlds() | guaranteed_worlds(), WEIGHTS)
def test_the_priority_that_is_shown_is_the_one_that_was_used(
    world: World, weights: OrderWeights
) -> None:
    snapshot, policy = world.scene.snapshot(), replace(world.policy, order=weights)
    memory, planner = remembering(world, policy), Planner(policy)
    books = memory.books

    planner.plan(snapshot)

    for job, prospect in planner.backlog().items():
        entry, priority = memory.roster.entries.get(job), prospect.priority
        if entry is None or priority is None:
            continue
        if entry.job.begin_at is not None and entry.job.begin_at > snapshot.now:
            continue
        factor = books.shares.factor(entry.lane.leaf)
        evened = memory.roster.brevity.evened()[entry.lane.queue]
        used = entry.points + weights.fair_share * factor + evened + aged(snapshot.now, weights)
        assert priority.total == used
        least = entry.shape.least_gpu_milli
        assert priority.is_own == books.quotas.is_own(entry.lane.queue, least)


@given(worlds())
def test_everybody_has_the_share_that_the_planner_gives_them(world: World) -> None:
    shares = shares_of(world.scene.snapshot(), world.policy)
    planned = remembering(world, world.policy).books.shares

    assert {
        path: (branch.part, branch.share, branch.used, branch.held_milli)
        for path, branch in (*shares.users.items(), *shares.queues().items())
    } == {
        path: (branch.part, branch.share, branch.used, branch.held_milli)
        for path, branch in (*planned.users.items(), *planned.queues().items())
    }


@given(worlds())
def test_a_newcomer_has_the_seat_that_he_would_have(world: World) -> None:
    snapshot = world.scene.snapshot()
    jobs = [job for job in snapshot.jobs.values() if job.state is JobState.PENDING]
    if not jobs:
        return
    alone = {job_id: job for job_id, job in snapshot.jobs.items() if job.id != jobs[0].id}
    spec = jobs[0].spec

    before = shares_of(replace(snapshot, jobs=alone), world.policy).seat(spec.queue, spec.user)
    after = shares_of(snapshot, world.policy).seat(spec.queue, spec.user)

    assert (before.part, before.share) == (after.part, after.share)


@given(worlds(), st.sampled_from(["idle", "{}/idle", "{}/idle/below"]), st.integers(1, 1_000))
def test_an_idle_queue_changes_nobodys_priority(world: World, place: str, weight: int) -> None:
    snapshot = world.scene.snapshot()
    before = shares_of(snapshot, world.policy)
    for above in sorted(snapshot.queues):
        path = QueuePath(place.format(above))
        queues = {**snapshot.queues, path: Queue(path=path, weight=weight)}

        after = shares_of(replace(snapshot, queues=queues), world.policy)

        assert after.users.keys() == before.users.keys()
        for key, leaf in before.users.items():
            same = after.users[key]
            assert (same.part, same.share) == (leaf.part, leaf.share)
            assert after.factor(same) == before.factor(leaf)


@given(worlds(), st.sampled_from([*QUEUES, "idle", "idle/below"]))
def test_who_comes_to_an_idle_queue_has_the_seat_that_he_would_have(
    world: World, path: str
) -> None:
    snapshot = world.scene.snapshot()
    queues = dict(snapshot.queues)
    for each in lineage(QueuePath(path)):
        queues.setdefault(each, Queue(path=each, weight=7))
    alone = replace(snapshot, queues=queues)
    first = next(iter(snapshot.jobs.values()))
    spec = replace(first.spec, queue=QueuePath(path), user=UserName("newcomer"))
    comer = replace(first, id=JobId(99_999), spec=spec, state=JobState.PENDING)
    there = replace(alone, jobs={**snapshot.jobs, comer.id: comer})

    before, after = shares_of(alone, world.policy), shares_of(there, world.policy)
    seat, leaf = before.seat(spec.queue, spec.user), after.seat(spec.queue, spec.user)

    assert (seat.part, seat.share) == (leaf.part, leaf.share)
    assert before.factor(seat) == after.factor(leaf)
    assert before.queues()[spec.queue].share == after.queues()[spec.queue].share


def remembering(world: World, policy: Policy) -> PlannerState:
    snapshot = world.scene.snapshot()
    memory = PlannerState(snapshot, policy)
    memory.follow(snapshot)
    memory.begin_cycle()
    return memory


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["", "ann", "bob"])), max_size=30))
def test_counts_of_jobs_that_are_kept_up_are_those_that_are_counted(
    moves: list[tuple[int, str]],
) -> None:
    jobs: dict[JobId, Job] = {}
    history, following = VersionHistory(jobs), JobCounts()

    for number, user in moves:
        job_id = JobId(number)
        history.drop(job_id)
        if user:
            history.set(job_id, _job_of(job_id, UserName(user)))
        if number % 2:
            following.follow(history.version())
    following.follow(history.version())
    counted = JobCounts()
    counted.follow(dict(jobs))

    assert +following.by_user == counted.by_user
    assert following.claimants == counted.claimants


def _job_of(job_id: JobId, user: UserName) -> Job:
    lab, soon = ClusterName("lab"), Instant(1)
    claim = Claim(cluster=lab, placements=(), victims=(), until=soon) if user == "bob" else None
    spec = JobSpec(name="fit", queue=QueuePath("a"), user=user, groups=(TaskGroup(),))
    return Job(id=job_id, spec=spec, submitted_at=Instant(0), claim=claim)
