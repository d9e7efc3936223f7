"""No job is stopped for nothing, and none for ever."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from muster.lifecycle.levels import Lifetimes, levels_from
from muster.model.gpu import Mig, MigInstance
from muster.model.job import HOLDING, WAITING, Job
from muster.model.levels import Levels, ran_by
from muster.model.placement import DeviceShare
from muster.model.plan import Clear, Plan, Preempt, Repartition, Start, Wait
from muster.model.policy import Aim, Policy, PreemptPolicy
from muster.model.queue import PreemptMode
from muster.model.reason import NoRoom
from muster.model.snapshot import Snapshot
from muster.model.value import MINUTE, DeviceId, Instant, JobId, NodeId, replace
from muster.schedule.plan import plan
from muster.schedule.verify import violations
from properties.strategies import CROWDED, worlds
from stories.acting import carry_out, stop
from stories.scene import Scene
from stories.world import World


@given(worlds(CROWDED))
def test_every_victim_is_needed_and_all_of_them_suffice(world: World) -> None:
    made = plan(world.scene.snapshot(), world.policy)

    for clear in made.moves:
        if isinstance(clear, Clear):
            assert fits(world.scene, made, clear, without=set(clear.victims))
            for victim in clear.victims:
                spared = set(clear.victims) - {victim}
                assert not fits(world.scene, made, clear, without=spared), victim


@given(worlds(CROWDED))
def test_a_job_that_room_was_made_for_starts_in_the_next_cycle(world: World) -> None:
    first = world.goes_on()
    second = world.goes_on()

    assert set(first.cleared()) <= set(second.started())


@given(worlds(CROWDED))
def test_preemption_comes_to_rest_when_no_job_ends(world: World) -> None:
    """Each job is preempted at most as often as others could outrank it, so this is bounded."""
    cycles = 4 * len(world.names) + 4
    quiet = 0
    while quiet < 3:
        outcome = world.goes_on()
        quiet = quiet + 1 if is_quiet(outcome.plan) else 0
        cycles -= 1
        assert cycles > 0, f"still preempting: {outcome.plan.measures}"
        world.scene.now = Instant(world.scene.now + MINUTE)


SERVED = st.lists(
    st.tuples(st.sampled_from((1, 2, 4, 8)), st.integers(0, 600), st.integers(0, 2_400)),
    max_size=12,
)
"""Jobs that run: their GPUs, for how many minutes they have, and how long they waited before."""


def learned(ended: list[tuple[int, int, int]], aim: Aim) -> Levels:
    known = Lifetimes()
    for size, minutes, count in ended:
        for _ in range(count):
            known.end(size, ran=minutes * MINUTE)
    return levels_from(known, None, aim)


LEARNED = st.builds(
    learned,
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6_000), st.integers(1, 50)), max_size=4),
    st.sampled_from(Aim),
)
"""Levels after some jobs have ended: their sizes, for how many minutes they ran, how many each."""


@given(SERVED, st.lists(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=4), LEARNED)
def test_by_service_only_those_are_stopped_who_stand_higher_in_the_same_class(
    running: list[tuple[int, int, int]], waiting: list[int], levels: Levels
) -> None:
    world = World(Policy(preempt=PreemptPolicy(by_service=True, waited_percent=25)))
    world.has_nodes("n1", "n2", gpus=8)
    free = {"n1": 8, "n2": 8}
    for number, (gpus, ran, waited) in enumerate(running):
        node = next((each for each, left in free.items() if left >= gpus), None)
        if node is not None:
            free[node] -= gpus
            world.runs(f"r{number}", on=node, gpus=gpus, ran=ran)
            has_waited(world, f"r{number}", minutes=waited)
    for number, gpus in enumerate(waiting):
        world.submits(f"w{number}", gpus=gpus)
    snapshot = replace(world.scene.snapshot(), levels=levels)

    made = plan(snapshot, world.policy)

    assert violations(snapshot, made) == []
    for measure in made.measures:
        assert isinstance(measure, Preempt)
        one, other = snapshot.jobs[measure.for_job], snapshot.jobs[measure.job]
        assert level(one, snapshot) < level(other, snapshot)
        assert 100 * ran_for(other, snapshot) >= 25 * waited_for(other, snapshot)


@given(
    st.lists(st.tuples(st.sampled_from((1, 2, 4, 8)), *[st.booleans()] * 2), max_size=4),
    st.lists(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=4),
    LEARNED,
)
def test_where_only_savers_are_stopped_by_service_nobody_else_is(
    running: list[tuple[int, bool, bool]], waiting: list[int], levels: Levels
) -> None:
    world = World(Policy(preempt=PreemptPolicy(by_service_if_saved=True)))
    world.has_nodes("n1", "n2", gpus=8)
    free = {"n1": 8, "n2": 8}
    for number, (gpus, says_so, has_written) in enumerate(running):
        node = next((each for each, left in free.items() if left >= gpus), None)
        if node is not None:
            free[node] -= gpus
            world.runs(f"r{number}", on=node, gpus=gpus, ran=10_000)
            saves(world, f"r{number}", says_so=says_so, has_written=has_written)
    for number, gpus in enumerate(waiting):
        world.submits(f"w{number}", gpus=gpus)
    snapshot = replace(world.scene.snapshot(), levels=levels)
    without = replace(world.policy, preempt=PreemptPolicy())

    made = plan(snapshot, world.policy)

    assert violations(snapshot, made) == []
    for measure in made.measures:
        assert isinstance(measure, Preempt)
        victim = snapshot.jobs[measure.job]
        assert victim.spec.preempt_mode is PreemptMode.CHECKPOINT
        assert victim.checkpoint is not None
        assert level(snapshot.jobs[measure.for_job], snapshot) < level(victim, snapshot)
    if not any(says_so and has_written for _, says_so, has_written in running):
        usual = plan(snapshot, without)
        assert (made.moves, made.measures) == (usual.moves, usual.measures)


def saves(world: World, name: str, *, says_so: bool, has_written: bool) -> None:
    """The job says that it saves when it is stopped, or a checkpoint of it was seen, or both."""
    job = world.scene.jobs[world.names[name]]
    mode = PreemptMode.CHECKPOINT if says_so else None
    world.scene.jobs[job.id] = replace(
        job,
        spec=replace(job.spec, preempt_mode=mode),
        checkpoint="step-100" if has_written else None,
    )


def level(job: Job, snapshot: Snapshot) -> int:
    """Where the job stands now."""
    ran = ran_by(job, snapshot.allocations.get(job.id), snapshot.now)
    return snapshot.levels.level(job.spec, ran)


def has_waited(world: World, name: str, *, minutes: int) -> None:
    """The job came so long before it began."""
    job = world.scene.jobs[world.names[name]]
    came_at = Instant(job.submitted_at - minutes * MINUTE)
    world.scene.jobs[job.id] = replace(job, submitted_at=came_at)


def ran_for(job: Job, snapshot: Snapshot) -> int:
    return snapshot.now - (snapshot.allocations[job.id].started_at or snapshot.now)


def waited_for(job: Job, snapshot: Snapshot) -> int:
    return snapshot.now - job.submitted_at - ran_for(job, snapshot)


def is_quiet(made: Plan) -> bool:
    """Does nothing happen by this plan?"""
    return not made.measures and not made.moves


def fits(scene: Scene, made: Plan, clear: Clear, *, without: set[JobId]) -> bool:
    """Could the job start where its room is made, with the rest of the plan done and these gone?

    Asked of the verifier, which knows nothing of how the victims were chosen.
    """
    after = scene.copy()
    modes = carry_out(after, made)
    for victim in sorted(without):
        stop(after, victim, modes[victim])
    after.jobs[clear.job] = replace(after.jobs[clear.job], claim=None)
    snapshot = after.snapshot()
    waits = {
        job.id: wait(job.id)
        for job in snapshot.jobs.values()
        if job.state in WAITING and job.id != clear.job
    }
    tried = Plan(
        snapshot_version=snapshot.version,
        policy=made.policy,
        moves=(start(clear, scene),),
        waits=waits,
        measures=tuple(cuts(clear, snapshot)),
    )
    return violations(snapshot, tried) == []


def cuts(clear: Clear, snapshot: Snapshot) -> Iterator[Repartition]:
    """How the devices must be cut for the job, beside the instances that others use."""
    shares: dict[tuple[NodeId, DeviceId], set[MigInstance]] = {}
    for placement in clear.placements:
        for share in placement.devices:
            shares.setdefault((placement.node, share.device), set()).update(instances_of(share))
    for (node, device), wanted in shares.items():
        used = {
            made
            for job, allocation in snapshot.allocations.items()
            if snapshot.jobs[job].state in HOLDING
            for placement in allocation.placements
            for share in placement.devices
            if share.device == device
            for made in instances_of(share)
        }
        layout = tuple(sorted(wanted | used, key=lambda made: made.start)) or None
        now = next(each.mig for each in snapshot.nodes[node].devices if each.id == device)
        if layout != now and not (layout and now and set(layout) <= set(now)):
            yield Repartition(node=node, device=device, instances=layout, for_job=clear.job)


def instances_of(share: DeviceShare) -> set[MigInstance]:
    """The MIG instance that a share is, if it is one."""
    if not isinstance(share.slice, Mig) or share.start is None:
        return set()
    return {MigInstance(profile=share.slice.profile, start=share.start)}


def start(clear: Clear, scene: Scene) -> Start:
    return Start(
        job=clear.job,
        attempt=scene.jobs[clear.job].attempt + 1,
        cluster=clear.cluster,
        placements=clear.placements,
    )


def wait(job: JobId) -> Wait:
    why = NoRoom(group="main", placed=0, wanted=1, nodes=0)
    return Wait(job=job, why=why)
