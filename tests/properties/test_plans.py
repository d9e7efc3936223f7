"""What is true of every plan, whatever the world."""

from collections.abc import Mapping
from random import Random
from typing import TypeVar

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from muster.model.job import WAITING, Job, JobState, TaskGroup
from muster.model.placement import Placement
from muster.model.plan import Clear, NoEstimate, Plan, Start
from muster.model.snapshot import Snapshot
from muster.model.value import replace
from muster.schedule.plan import Planner, plan
from muster.schedule.verify import violations
from properties.strategies import EMPTY, guaranteed_worlds, lent_worlds, snapshots, worlds
from stories.world import World

Key = TypeVar("Key")
Item = TypeVar("Item")


@given(worlds())
def test_no_plan_breaks_the_rules(world: World) -> None:
    snapshot = world.scene.snapshot()

    assert violations(snapshot, plan(snapshot, world.policy)) == []


@given(worlds())
def test_the_same_world_gives_the_same_plan(world: World) -> None:
    snapshot = world.scene.snapshot()

    assert plan(snapshot, world.policy) == plan(snapshot, world.policy)


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_listed_does_not_matter(world: World, dice: Random) -> None:
    snapshot = world.scene.snapshot()

    assert plan(shuffled(snapshot, dice), world.policy) == plan(snapshot, world.policy)


@given(st.lists(snapshots(), min_size=2, max_size=3), worlds())
def test_memory_of_other_worlds_does_not_change_the_plan(
    others: list[Snapshot], world: World
) -> None:
    planner = Planner(world.policy)
    seen = [*others, world.scene.snapshot()]

    for version, snapshot in enumerate(seen):
        numbered = replace(snapshot, version=version)
        assert planner.plan(numbered) == plan(numbered, world.policy)


@given(worlds())
def test_every_waiting_job_is_decided_once(world: World) -> None:
    snapshot = world.scene.snapshot()

    made = plan(snapshot, world.policy)

    decided = [*(move.job for move in made.moves), *made.waits]

    waiting = {job.id for job in snapshot.jobs.values() if job.state in WAITING}
    assert len(decided) == len(set(decided))
    assert set(decided) == waiting


@given(worlds())
def test_a_gang_is_never_placed_in_part(world: World) -> None:
    snapshot = world.scene.snapshot()

    for decision in plan(snapshot, world.policy).moves:
        if isinstance(decision, Start | Clear):
            groups = snapshot.jobs[decision.job].spec.groups
            assert all(is_whole(group, decision.placements) for group in groups)


@given(worlds())
def test_every_wait_has_a_time_to_come_or_the_reason_there_is_none(world: World) -> None:
    snapshot = world.scene.snapshot()

    planner = Planner(world.policy)
    made = planner.plan(snapshot)

    assert planner.backlog().keys() == made.waits.keys()
    for job_id, prospect in planner.backlog().items():
        job, expected = snapshot.jobs[job_id], prospect.expected
        assert isinstance(expected, NoEstimate) or expected > snapshot.now
        assert (job.state is JobState.HELD) == (expected is NoEstimate.HELD)
        assert (job.state is JobState.HELD) == (prospect.position is None)
        assert planner.expected_start(job_id) == expected


@given(worlds(EMPTY))
def test_an_empty_cluster_starts_something_if_anything_could_start(world: World) -> None:
    snapshot = world.scene.snapshot()
    assume(any(starts_alone(job, snapshot, world) for job in snapshot.jobs.values()))

    made = plan(snapshot, world.policy)

    assert any(isinstance(decision, Start) for decision in made.moves)


@given(guaranteed_worlds())
def test_a_free_cluster_gives_every_queue_what_it_was_guaranteed(world: World) -> None:
    snapshot = world.scene.snapshot()

    made = plan(snapshot, world.policy)

    assert shortfalls(snapshot, made) == {}


@given(lent_worlds())
def test_every_queue_gets_its_guarantee_back_from_those_it_was_lent_to(world: World) -> None:
    snapshot = world.scene.snapshot()

    made = plan(snapshot, world.policy)

    assert shortfalls(snapshot, made) == {}


@given(worlds())
def test_snapshots_and_plans_survive_the_wire(world: World) -> None:
    snapshot = world.scene.snapshot()
    made = plan(snapshot, world.policy)
    # A version of a mapping shares what it holds with others; what is sent is a plain one.
    sent = replace(made, waits=dict(made.waits))

    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Plan) == made


def is_whole(group: TaskGroup, placements: tuple[Placement, ...]) -> bool:
    """Are there as many tasks of the group as must be, and no more than may be?"""
    indices = sorted(placed.index for placed in placements if placed.group == group.name)
    return indices == list(range(len(indices))) and group.fewest <= len(indices) <= group.count


def shuffled(snapshot: Snapshot, dice: Random) -> Snapshot:
    """The same snapshot with everything listed in another order."""
    return replace(
        snapshot,
        clusters=_mixed(snapshot.clusters, dice),
        pools=_mixed(snapshot.pools, dice),
        nodes=_mixed(snapshot.nodes, dice),
        queues=_mixed(snapshot.queues, dice),
        classes=_mixed(snapshot.classes, dice),
        jobs=_mixed(snapshot.jobs, dice),
        allocations=_mixed(snapshot.allocations, dice),
        finished=_mixed(snapshot.finished, dice),
        used_lately=tuple(dice.sample(snapshot.used_lately, len(snapshot.used_lately))),
    )


def _mixed(mapping: Mapping[Key, Item], dice: Random) -> dict[Key, Item]:
    return dict(dice.sample(list(mapping.items()), len(mapping)))


def starts_alone(job: Job, snapshot: Snapshot, world: World) -> bool:
    """Would the job start if no other job were waiting? Jobs that wait for others do not count."""
    if job.spec.after:
        return False
    alone = replace(snapshot, jobs={job.id: job})
    return any(isinstance(one, Start) for one in plan(alone, world.policy).moves)


def shortfalls(snapshot: Snapshot, made: Plan) -> dict[str, int]:
    """By queue: how many one-GPU jobs within the guarantee neither start nor get room made."""
    short: dict[str, int] = {}
    for path, queue in snapshot.queues.items():
        jobs = {job.id for job in snapshot.jobs.values() if job.spec.queue == path}
        waiting = {job for job in jobs if snapshot.jobs[job].state is JobState.PENDING}
        got = len({one.job for one in made.moves} & waiting)
        owed = sum(_gpus(line.guaranteed) for line in queue.quotas) - len(jobs - waiting)
        if got < min(owed, len(waiting)):
            short[path] = min(owed, len(waiting)) - got
    return short


def _gpus(guaranteed: object) -> int:
    assert isinstance(guaranteed, int)
    return guaranteed // 1_000
