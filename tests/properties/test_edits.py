"""A planner that follows edits of nodes and rules plans as one that knew nothing before."""

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from muster.model.cluster import Node, NodesReserved
from muster.model.queue import Ceiling, JobClass, Queue, Quota
from muster.model.value import (
    HOUR,
    MINUTE,
    ClassName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    NodeId,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.plan import Planner
from properties.strategies import worlds
from stories.acting import carry_out
from stories.scene import Scene
from stories.world import World

Edit = Callable[[Scene, Random], None]


@given(worlds(), st.data(), st.randoms(use_true_random=False))
def test_following_an_edit_is_as_good_as_starting_over(
    world: World, data: st.DataObject, dice: Random
) -> None:
    scene, planner = world.scene, Planner(world.policy)

    for edit in data.draw(st.lists(st.sampled_from(EDITS), min_size=1, max_size=4)):
        carry_out(scene, planner.plan(scene.snapshot()))
        edit(scene, dice)
        snapshot, fresh = scene.snapshot(), Planner(world.policy)

        assert planner.plan(snapshot) == fresh.plan(snapshot)
        assert planner.backlog() == fresh.backlog()


def adds_a_node(scene: Scene, dice: Random) -> None:
    like = _node(scene, dice)
    name = NodeId(f"new{len(scene.nodes)}")
    devices = tuple(replace(each, id=DeviceId(f"{name}/{each.index}")) for each in like.devices)
    scene.nodes[name] = replace(like, id=name, devices=devices)


def drops_a_node(scene: Scene, dice: Random) -> None:
    if len(scene.nodes) > 1:
        del scene.nodes[_node(scene, dice).id]


def resizes_a_node(scene: Scene, dice: Random) -> None:
    node = _node(scene, dice)
    change = dice.choice((1_000, 4_000, 64_000))
    scene.nodes[node.id] = replace(node, cpu_milli=node.cpu_milli + change)


def swaps_its_devices(scene: Scene, dice: Random) -> None:
    node, model = _node(scene, dice), GpuModel("H100-80GB")
    devices = tuple(replace(each, model=model, mig=None) for each in node.devices)
    scene.nodes[node.id] = replace(node, devices=devices)


def relabels_a_node(scene: Scene, dice: Random) -> None:
    node = _node(scene, dice)
    scene.nodes[node.id] = replace(node, labels={"disk": dice.choice(("ssd", "nvme"))})


def moves_a_node(scene: Scene, dice: Random) -> None:
    node = _node(scene, dice)
    scene.nodes[node.id] = replace(node, where=tuple(f"{each}x" for each in node.where))


def gives_a_queue_other_quotas(scene: Scene, dice: Random) -> None:
    queue = _queue(scene, dice)
    quotas = (Quota(guaranteed=dice.choice((0, 1_000)), limit=dice.choice((None, 2_000))),)
    scene.queues[queue.path] = replace(queue, quotas=quotas, max_jobs=dice.choice((None, 1)))


def gives_a_queue_another_weight(scene: Scene, dice: Random) -> None:
    queue = _queue(scene, dice)
    scene.queues[queue.path] = replace(queue, weight=dice.choice((1, 5)))


def gives_a_queue_another_priority(scene: Scene, dice: Random) -> None:
    queue = _queue(scene, dice)
    scene.queues[queue.path] = replace(queue, priority=dice.choice((0, 10, 100)))


def opens_and_closes_queues(scene: Scene, dice: Random) -> None:
    new = QueuePath("root/new")
    scene.queues[new] = Queue(path=new)
    if dice.random() < 0.5:
        del scene.queues[_queue(scene, dice).path]


def changes_a_class(scene: Scene, dice: Random) -> None:
    job_class = scene.classes[dice.choice(sorted(scene.classes))]
    scene.classes[job_class.name] = replace(
        job_class,
        priority=dice.choice((0, 50, 1_000)),
        per_user=Ceiling(jobs=dice.choice((None, 1))),
        max_time=dice.choice((None, Duration(30 * MINUTE))),
        preempts=dice.choice(((), tuple(sorted(scene.classes)))),
    )


def opens_and_closes_classes(scene: Scene, dice: Random) -> None:
    new = ClassName("new")
    scene.classes[new] = JobClass(name=new, priority=dice.choice((5, 5_000)))
    if dice.random() < 0.5:
        del scene.classes[dice.choice(sorted(scene.classes))]


def changes_a_pool(scene: Scene, dice: Random) -> None:
    pool = scene.pools[dice.choice(sorted(scene.pools))]
    scene.pools[pool.name] = replace(
        pool,
        default_time=dice.choice((None, HOUR)),
        max_time=dice.choice((None, HOUR)),
        users=dice.choice(((), (UserName("ada"),))),
        starts=dice.random() < 0.8,
    )


def reserves_a_node(scene: Scene, dice: Random) -> None:
    if scene.reservations and dice.random() < 0.5:
        del scene.reservations[0]
        return
    scene.reservations.append(
        NodesReserved(
            name=f"window{len(scene.reservations)}",
            nodes=(_node(scene, dice).id,),
            begins_at=Instant(scene.now + dice.choice((0, HOUR))),
            ends_at=Instant(scene.now + 2 * HOUR),
        )
    )


EDITS: tuple[Edit, ...] = (
    adds_a_node,
    drops_a_node,
    resizes_a_node,
    swaps_its_devices,
    relabels_a_node,
    moves_a_node,
    gives_a_queue_other_quotas,
    gives_a_queue_another_weight,
    gives_a_queue_another_priority,
    opens_and_closes_queues,
    changes_a_class,
    opens_and_closes_classes,
    changes_a_pool,
    reserves_a_node,
)


def _node(scene: Scene, dice: Random) -> Node:
    return scene.nodes[dice.choice(sorted(scene.nodes))]


def _queue(scene: Scene, dice: Random) -> Queue:
    return scene.queues[dice.choice(sorted(scene.queues))]
