"""A ledger that follows the world is like one that is made from it."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from muster.model.cluster import Cluster, Node, NodesReserved, NodeState, Pool
from muster.model.gpu import Device, GpuAsk, MpsShare
from muster.model.job import Ask, JobSpec, LabelRule, Spot, TaskGroup, Where
from muster.model.placement import Placement
from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot, UsualAsk
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.room.find import Bounds
from muster.schedule.room.index import MOST_LABEL_VALUES, Tenant
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.needs import Need

IRON = Cluster(name=ClusterName("iron"))
BIG, SMALL = (Pool(name=PoolName(name), cluster=IRON.name) for name in ("big", "small"))
A100, H100 = GpuModel("A100-40GB"), GpuModel("H100-80GB")
SPEC = JobSpec(name="job", user=UserName("ada"), queue=QueuePath("all"), groups=())
FOREVER = Instant(1 << 50)

ASKS = (
    Ask(cpu_milli=4_000),
    Ask(cpu_milli=8_000, gpus=GpuAsk(count=1)),
    Ask(cpu_milli=16_000, gpus=GpuAsk(count=2, models=(H100,))),
    Ask(cpu_milli=2_000, gpus=GpuAsk(count=1, slice=MpsShare(milli=500))),
)
WHERES = (Where(), Where(require=(LabelRule(key="disk", values=("nvme",)),)))


def node(name: str, pool: Pool = BIG, model: GpuModel = A100, gpus: int = 4) -> Node:
    devices = tuple(
        Device(id=DeviceId(f"{name}-{each}"), index=each, model=model, memory_mib=40_960)
        for each in range(gpus)
    )
    return Node(
        id=NodeId(name),
        cluster=pool.cluster,
        pool=pool.name,
        cpu_milli=16_000 * gpus,
        memory_mib=65_536 * gpus,
        devices=devices,
    )


def world(*nodes: Node) -> Snapshot:
    return Snapshot(
        now=Instant(0),
        clusters={IRON.name: IRON},
        pools={BIG.name: BIG, SMALL.name: SMALL},
        nodes={each.id: each for each in nodes},
    )


PLAIN = world(node("n1"), node("n2", gpus=8), node("n3", SMALL, H100), node("n4", SMALL, H100, 2))


def with_node(snapshot: Snapshot, changed: Node) -> Snapshot:
    return replace(snapshot, nodes={**snapshot.nodes, changed.id: changed})


def without_node(snapshot: Snapshot, name: str) -> Snapshot:
    kept = {each: node for each, node in snapshot.nodes.items() if each != name}
    return replace(snapshot, nodes=kept)


def changed_node(snapshot: Snapshot, name: str, **changes: object) -> Snapshot:
    return with_node(snapshot, replace(snapshot.nodes[NodeId(name)], **changes))


def with_private_names(snapshot: Snapshot) -> Snapshot:
    for each in range(MOST_LABEL_VALUES + 1):
        named = replace(node(f"x{each:03}"), labels={"disk": f"nvme{each}"})
        snapshot = with_node(snapshot, named)
    return snapshot


def reserved(snapshot: Snapshot) -> Snapshot:
    kept = NodesReserved(
        name="night", nodes=(NodeId("n2"),), begins_at=Instant(5), ends_at=Instant(9)
    )
    return replace(snapshot, reservations=(kept,))


EDITS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "a node came": lambda was: with_node(was, node("n0", SMALL, H100, 8)),
    "a node of a new size came": lambda was: with_node(was, node("n9", gpus=16)),
    "a node went": lambda was: without_node(was, "n2"),
    "a node was resized": lambda was: changed_node(was, "n1", cpu_milli=7_000),
    "a node was drained": lambda was: changed_node(was, "n1", state=NodeState.DRAINING),
    "a node was relabelled": lambda was: changed_node(was, "n4", labels={"disk": "nvme"}),
    "a node moved to another pool": lambda was: changed_node(was, "n3", pool=BIG.name),
    "a label became private": with_private_names,
    "a pool was closed": lambda was: replace(
        was, pools={**was.pools, BIG.name: replace(BIG, starts=False)}
    ),
    "a pool got a time limit": lambda was: replace(
        was, pools={**was.pools, BIG.name: replace(BIG, max_time=Duration(60_000))}
    ),
    "a cluster was lost": lambda was: replace(
        was, clusters={IRON.name: replace(IRON, reachable=False)}
    ),
    "a node was reserved": reserved,
    "other tasks became usual": lambda was: replace(
        was, usual=(UsualAsk(each=ASKS[1], count=3), UsualAsk(each=ASKS[2], count=9))
    ),
}


class Answer(NamedTuple):
    """What a ledger says about one need."""

    tiers: int
    usable: int
    at_most: int
    best: str


def followed(ledger: Ledger, old: Snapshot, new: Snapshot) -> None:
    ledger.follow(new)
    for name in sorted(old.nodes.keys() | new.nodes.keys()):
        if name not in new.nodes:
            ledger.drop_node(name)
        elif old.nodes.get(name) != new.nodes[name]:
            ledger.set_node(new.nodes[name])


def answers(ledger: Ledger) -> list[Answer]:
    needs = [need_of(ledger, ask, where) for ask in ASKS for where in WHERES]
    return [answer(ledger, need) for need in needs]


def need_of(ledger: Ledger, ask: Ask, where: Where) -> Need:
    return ledger.needs.of(TaskGroup(each=ask, where=where), SPEC, Spot.NEVER)


def answer(ledger: Ledger, need: Need) -> Answer:
    catalogue = ledger.catalogue
    tiers = catalogue.tiers(need)
    found = [ledger.finder(need, tier, frozenset()).best(Bounds()) for tier in tiers]
    seats = [each[0] for each in found if each is not None]
    names = [(seat.room.node.id, seat.taking and seat.taking.after.name) for seat in seats]
    return Answer(
        len(tiers),
        catalogue.usable_nodes(need),
        catalogue.at_most(need),
        str(names[:1]),
    )


def made(snapshot: Snapshot) -> Ledger:
    ledger = Ledger(snapshot, Policy())
    for each in snapshot.nodes.values():
        ledger.set_node(each)
    return ledger


def with_tenant(ledger: Ledger) -> Ledger:
    """Somebody has half of n2."""
    placement = Placement(
        group="main",
        index=0,
        node=NodeId("n2"),
        pool=BIG.name,
        amount=Resources(cpu_milli=64_000, memory_mib=1_024, gpu_milli=0),
        devices=(),
    )
    tenant = Tenant((placement,), False, False, False, FOREVER)
    for room in ledger.occupy(JobId(1), (placement,), tenant):
        ledger.settle(room)
    return ledger


@pytest.mark.parametrize("edit", EDITS)
def test_a_ledger_that_follows_an_edit_answers_as_a_new_one(edit: str) -> None:
    new = EDITS[edit](PLAIN)
    ledger = with_tenant(made(PLAIN))
    answers(ledger)

    followed(ledger, PLAIN, new)

    assert answers(ledger) == answers(with_tenant(made(new)))


@pytest.mark.parametrize("edit", EDITS)
def test_a_ledger_finds_back_when_an_edit_is_undone(edit: str) -> None:
    new = EDITS[edit](PLAIN)
    ledger = with_tenant(made(PLAIN))
    before = answers(ledger)

    followed(ledger, PLAIN, new)
    followed(ledger, new, PLAIN)

    assert answers(ledger) == before
