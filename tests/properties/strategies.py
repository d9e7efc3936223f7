"""Generated worlds: small, crowded, and with every kind of rule in them.

What runs in them is consistent with the room there is, but not with every rule:
limits may have shrunk, and nodes may have been drained, under jobs that were there before.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from muster.model.cluster import Abilities, Node
from muster.model.job import ArrayPart, JobState
from muster.model.policy import OrderWeights, Packing, Policy, PreemptPolicy, Preference
from muster.model.queue import Quota, Scope
from muster.model.snapshot import Snapshot
from muster.model.value import HOUR, MINUTE, Duration, JobId, replace
from properties.samples import (
    BOUNDED_CLASSES,
    BOUNDED_POOLS,
    BOUNDED_QUEUES,
    BURSTS,
    CLASSES,
    GUESTS,
    HARMLESS,
    KINDS_OF_NODE,
    LINES,
    PLACES,
    PLAIN_SHAPES,
    QUEUES,
    RULES,
    SHAPES,
    STATES,
    USERS,
)
from stories.requests import JobAsked
from stories.seats import seats
from stories.things import ClassIs, NodesAre, PoolIs, QueueIs
from stories.world import World


@dataclass(frozen=True)
class Mix:
    """What kind of world is wanted."""

    nodes: int = 3
    running: int = 5
    waiting: int = 6
    reservations: bool = True
    preempting: bool = False


ANY_MIX = Mix()
EMPTY = Mix(running=0, reservations=False)
CROWDED = Mix(nodes=2, running=6, waiting=3, reservations=False, preempting=True)


@st.composite
def worlds(draw: DrawFn, mix: Mix = ANY_MIX) -> World:
    """A world with everything in it, ready to plan."""
    world = World(draw(policies()))
    _add_machines(draw, world, mix)
    _add_queues(draw, world)
    _add_classes(draw, world)
    for number in range(draw(st.integers(0, mix.running))):
        _add_running(draw, world, f"r{number}")
    for number in range(draw(st.integers(1, mix.waiting))):
        world.submits(f"w{number}", **draw(requests(world, mix)))
    _add_troubles(draw, world)
    if mix.reservations:
        _add_reservations(draw, world)
    _add_past(draw, world)
    return world


def snapshots() -> SearchStrategy[Snapshot]:
    """What the planner would see of such a world."""
    return worlds().map(lambda world: world.scene.snapshot())


def policies() -> SearchStrategy[Policy]:
    """Policies that differ in every switch."""
    return st.builds(
        Policy,
        order=st.sampled_from(
            (
                OrderWeights(),
                OrderWeights(size=-100, fair_share=20_000),
                OrderWeights(short=9_000),
                OrderWeights(service=9_000),
            )
        ),
        preempt=st.builds(
            PreemptPolicy,
            by_class=_mostly(),
            reclaim=_mostly(),
            by_service=st.booleans(),
            by_service_if_saved=st.booleans(),
            tries=st.sampled_from((16, 1)),
            min_run=st.sampled_from((Duration(0), Duration(10 * MINUTE))),
            waited_percent=st.sampled_from((0, 25)),
        ),
        packing=st.sampled_from(Packing),
        prefer=st.sampled_from(Preference),
        backfill_depth=st.sampled_from((16, 1, 0)),
        patience=st.sampled_from((Policy().patience, Duration(60_000), Duration(0))),
        default_time=st.sampled_from((None, HOUR)),
        repartition=_mostly(),
        grow=_mostly(),
        bursts=st.sampled_from(((), (), *BURSTS)),
    )


@st.composite
def requests(draw: DrawFn, world: World, mix: Mix = ANY_MIX) -> JobAsked:
    """What somebody might ask for in this world, with up to two rules beside the shape."""
    asked: JobAsked = {
        **draw(st.sampled_from(PLAIN_SHAPES if mix.preempting else SHAPES)),
        **draw(st.sampled_from(RULES)),
        **draw(st.sampled_from(RULES)),
        "queue": draw(st.sampled_from(QUEUES)),
        "user": draw(st.sampled_from(USERS)),
        "job_class": draw(st.sampled_from(("urgent", "normal") if mix.preempting else CLASSES)),
    }
    minutes = draw(st.sampled_from((None, 10, 60)))
    if minutes is not None:
        asked["minutes"] = minutes
    expected = draw(st.sampled_from((None, 5, 120)))
    if expected is not None:
        asked["expected_minutes"] = expected
    _tie_to_others(draw, world, asked)
    return asked


def _tie_to_others(draw: DrawFn, world: World, asked: JobAsked) -> None:
    kept = sorted(each.name for each in world.scene.reservations)
    if kept and draw(_rarely()):
        asked["reservation"] = draw(st.sampled_from((*kept, "gone")))
    tie = draw(st.sampled_from(("", "", "", "", "", "after", "afterok", "afterany", "array")))
    if tie == "array":
        asked["array"] = ArrayPart(array=JobId(1_000), index=len(world.names), at_once=2)
    elif tie and world.names:
        named = f"{tie}:{draw(st.sampled_from(sorted(world.names)))}"
        between = draw(st.sampled_from(("", "", ",", "?")))
        other = draw(st.sampled_from(sorted(world.names))) if between else ""
        asked["after"] = f"{named}{between}afterok:{other}" if between else named


def _add_machines(draw: DrawFn, world: World, mix: Mix) -> None:
    abilities = st.builds(Abilities, mig=_mostly(), mps=_mostly(), resize=st.booleans())
    world.has_cluster("c", abilities=draw(abilities))
    world.has_cluster(
        "d",
        order=draw(st.sampled_from((1, -1))),
        reachable=draw(_mostly()),
        abilities=draw(st.builds(Abilities, pods=st.booleans(), commands=_mostly())),
    )
    world.has_pool("main", price=2, default_minutes=draw(st.sampled_from((30, 600))))
    second: PoolIs = {
        **draw(st.sampled_from(BOUNDED_POOLS)),
        "cluster": draw(st.sampled_from(("c", "d"))),
        "spot": draw(st.booleans()),
        "price": 1,
        "starts": draw(_mostly()),
        "users": draw(st.sampled_from(((), (), USERS[:1]))),
        "queues": draw(st.sampled_from(((), (), QUEUES[:1]))),
    }
    world.has_pool("second", **second)
    for pool in ("main", "second"):
        for number in range(1, draw(st.integers(pool == "main", mix.nodes)) + 1):
            fields: NodesAre = {
                **draw(st.sampled_from(KINDS_OF_NODE)),
                "pool": pool,
                "where": draw(st.sampled_from(PLACES)),
            }
            world.has_nodes(f"{pool[0]}{number}", **fields)


def _add_queues(draw: DrawFn, world: World) -> None:
    for path in QUEUES:
        fields: QueueIs = {
            **draw(st.sampled_from(BOUNDED_QUEUES)),
            "quotas": tuple(draw(st.lists(quotas(), max_size=2, unique_by=_scope))),
            "weight": draw(st.sampled_from((1, 3))),
        }
        world.has_queue(path, **fields)


def quotas() -> SearchStrategy[Quota]:
    """Lines of quota of every kind, with bounds that bite in a small world."""
    return st.sampled_from(LINES)


def _scope(line: Quota) -> Scope:
    return line.scope


def _add_classes(draw: DrawFn, world: World) -> None:
    mode = st.sampled_from(("requeue", "requeue", "checkpoint", "suspend", "cancel"))
    world.has_class("low", priority=-10, mode=draw(mode), spot_only=draw(_rarely()))
    world.has_class(
        "normal",
        mode=draw(mode),
        min_run_minutes=draw(st.sampled_from((0, 15))),
        preempts=draw(st.sampled_from(((), ("low",), ("urgent",)))),
    )
    urgent: ClassIs = {
        **draw(st.sampled_from(BOUNDED_CLASSES)),
        "priority": 100,
        "preempts": ("normal", "low"),
        "preemptible": draw(st.booleans()),
    }
    world.has_class("urgent", **urgent)


def _add_running(draw: DrawFn, world: World, name: str) -> None:
    """A job that holds room, if there is room for it; else it waits."""
    asked: JobAsked = {
        **draw(st.sampled_from(SHAPES)),
        **draw(st.sampled_from(HARMLESS)),
        "queue": draw(st.sampled_from(QUEUES)),
        "user": draw(st.sampled_from(USERS)),
        "job_class": draw(st.sampled_from(CLASSES)),
        "minutes": draw(st.sampled_from((10, 60, 600))),
    }
    job = world.submits(name, **asked)
    nodes = list(world.scene.nodes.values())
    first = draw(st.sampled_from(nodes))
    alike = [node for node in nodes if _kind(node) == _kind(first)]
    task = world.scene.jobs[job].spec.groups[0]
    placements = seats(task, alike, held=world.scene.held())
    if placements is None:
        return
    ran = draw(st.integers(0, 9))
    world.sits(name, placements, ran=ran, checkpointed=draw(st.none() | st.integers(0, ran)))
    _change_state(world, job, draw(st.sampled_from(STATES)))


def _kind(node: Node) -> tuple[str, str | None]:
    """Tasks of one group share a pool and a GPU model."""
    return node.pool, node.devices[0].model if node.devices else None


def _change_state(world: World, job: JobId, state: JobState) -> None:
    world.scene.jobs[job] = replace(world.scene.jobs[job], state=state)
    if state is JobState.STARTING:
        allocation = world.scene.allocations[job]
        world.scene.allocations[job] = replace(allocation, started_at=None, checkpointed_at=None)


def _add_troubles(draw: DrawFn, world: World) -> None:
    """Nodes drained, and devices broken, under the jobs on them."""
    for node in list(world.scene.nodes.values()):
        trouble = draw(st.sampled_from(("", "", "", "", "", "", "drained", "broken")))
        if trouble == "drained":
            world.drains(node.id)
        elif trouble == "broken":
            world.breaks(node.id, device=0)


def _add_reservations(draw: DrawFn, world: World) -> None:
    begins = draw(st.sampled_from((-10, 0, 20, 90)))
    kind = draw(st.sampled_from(("", "", "maintenance", "nodes", "amount", "guests", "mine")))
    node = draw(st.sampled_from(sorted(world.scene.nodes)))
    if kind == "maintenance":
        world.reserves("maintenance", nodes=node, begins=begins, ends=begins + 60)
    elif kind == "nodes":
        world.reserves("show", nodes=node, begins=begins, ends=begins + 60, queue="a")
    elif kind == "amount":
        world.promises(2, queue="a/x", begins=begins, ends=begins + 60)
    elif kind == "guests":
        whose = draw(st.sampled_from(GUESTS))
        world.reserves("show", nodes=node, begins=begins, ends=begins + 60, **whose)
    elif kind == "mine":
        world.promises(2, begins=begins, ends=begins + 60, **draw(st.sampled_from(GUESTS)))


def _add_past(draw: DrawFn, world: World) -> None:
    for queue in draw(st.lists(st.sampled_from(QUEUES), max_size=2, unique=True)):
        world.uses(queue, draw(st.sampled_from(USERS)), gpu_hours=draw(st.sampled_from((1, 100))))
    for shape in draw(st.lists(st.sampled_from(SHAPES), max_size=2)):
        world.usually_sees(draw(st.integers(1, 9)), **shape)


def _mostly() -> SearchStrategy[bool]:
    return st.sampled_from((True, True, True, False))


def _rarely() -> SearchStrategy[bool]:
    return st.sampled_from((False, False, False, True))


@st.composite
def guaranteed_worlds(draw: DrawFn) -> World:
    """An empty cluster, guarantees that it can keep, and more one-GPU jobs than it can take."""
    world = World()
    world.has_nodes(*draw(st.sampled_from((("n1",), ("n1", "n2")))), gpus=4)
    left = 4 * len(world.scene.nodes)
    for path in ("a/x", "a/y", "b"):
        guaranteed = draw(st.integers(0, left))
        left -= guaranteed
        world.has_queue(path, guaranteed=guaranteed, weight=draw(st.sampled_from((1, 5))))
    world.has_class("urgent", priority=100)
    for path in draw(st.permutations(("a/x", "a/y", "b", "root"))):
        _submit_some(draw, world, path)
    return world


@st.composite
def lent_worlds(draw: DrawFn) -> World:
    """A cluster full of borrowers, and owners who want their guarantee back."""
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("a", guaranteed=draw(st.integers(0, 4)))
    world.has_queue("b", guaranteed=draw(st.integers(0, 4)))
    world.has_class("urgent", priority=100)
    for number in range(8):
        world.runs(
            f"r{number}",
            on="n1",
            queue=draw(st.sampled_from(("root", "a", "b"))),
            job_class=draw(st.sampled_from(("normal", "urgent"))),
        )
    for path in draw(st.permutations(("a", "b", "root"))):
        _submit_some(draw, world, path)
    return world


def _submit_some(draw: DrawFn, world: World, path: str) -> None:
    for number in range(draw(st.integers(0, 5))):
        job_class = draw(st.sampled_from(("normal", "urgent")))
        world.submits(f"{path}{number}", queue=path, user=path, job_class=job_class)
