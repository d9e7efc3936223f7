"""Rules that can run nothing are refused, and those that seldom mean it are told."""

import pytest

from controller.desk import LAB, SITE, Desk
from muster.controller.use_cases.site_checks import cautions, demand_workable
from muster.model.cluster import NodesReserved, Pool
from muster.model.errors import RefusedError
from muster.model.queue import Meter, Percent, Queue, Quota, Scope
from muster.model.site import Site
from muster.model.value import ClusterName, Instant, NodeId, PoolName, QueuePath, replace


@pytest.fixture
def desk() -> Desk:
    """One node of four GPUs, in a pool that the rules name."""
    made = Desk()
    made.lets_pass(1)
    return made


def guaranteed(amount: int | Percent) -> Site:
    line = Quota(scope=Scope(meter=Meter.GPU), guaranteed=amount)
    path = QueuePath("a")
    return replace(SITE, queues={**SITE.queues, path: Queue(path=path, quotas=(line,))})


def pools(desk: Desk, cluster: str) -> Site:
    names = {node.pool for node in desk.record.nodes.values()}
    named = {name: Pool(name=name, cluster=ClusterName(cluster)) for name in names}
    return replace(SITE, pools=named)


def test_rules_without_a_class_are_refused(desk: Desk) -> None:
    with pytest.raises(RefusedError, match="no class, so that every job would be refused"):
        demand_workable(replace(SITE, classes={}), desk.record)


def test_rules_that_put_every_pool_into_another_cluster_are_refused(desk: Desk) -> None:
    with pytest.raises(RefusedError, match=f"Write `cluster: {LAB}`"):
        demand_workable(pools(desk, "elsewhere"), desk.record)

    demand_workable(pools(desk, LAB), desk.record)


def test_a_guarantee_above_the_fleet_is_told(desk: Desk) -> None:
    told = cautions(guaranteed(8_000), desk.record)

    assert "queue a: guaranteed 8 GPUs, but all nodes together have 4 GPUs" in told
    assert not any("guaranteed" in text for text in cautions(guaranteed(4_000), desk.record))
    half = cautions(guaranteed(Percent(percent=50)), desk.record)
    assert not any("guaranteed" in text for text in half)


def test_nodes_whose_pool_goes_are_told(desk: Desk) -> None:
    other = PoolName("other")
    told = cautions(replace(SITE, pools={other: Pool(name=other, cluster=LAB)}), desk.record)

    assert any(text.startswith("nodes n1 are in pool") for text in told)
    assert "pool other has no nodes; jobs that ask for it wait until it has" in told


def test_a_cluster_that_there_is_not_is_told(desk: Desk) -> None:
    other = PoolName("other")
    pool = Pool(name=other, cluster=ClusterName("nowhere"))
    told = cautions(replace(SITE, pools={**SITE.pools, other: pool}), desk.record)

    assert f"there is no cluster nowhere; there is {LAB}" in told


def test_a_reserved_node_that_there_is_not_is_told(desk: Desk) -> None:
    window = NodesReserved(
        name="week", nodes=(NodeId("n9"),), begins_at=Instant(0), ends_at=Instant(1)
    )
    told = cautions(replace(SITE, reservations=(window,)), desk.record)

    assert "reservation week: there is no node n9" in told
