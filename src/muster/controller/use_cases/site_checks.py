"""New rules beside the machines and jobs that there are: what they would keep from running."""

from collections.abc import Callable, Iterator

from muster.controller.world.record import Record
from muster.model.amounts import capacity_of, resolved
from muster.model.cluster import NodesReserved
from muster.model.errors import RefusedError
from muster.model.reason import NoSuchClass, NoSuchPool, NoSuchQueue
from muster.model.site import Site
from muster.model.value import ClassName, PoolName
from muster.model.words import listed, metered, placed


def demand_workable(site: Site, record: Record) -> None:
    """Refuse rules under which every submission would fail."""
    if not site.queues:
        raise RefusedError(
            NoSuchQueue(queue=site.default_queue),
            "The new rules have no queue, so that nobody could submit. Name at least one.",
        )
    if not site.classes:
        raise RefusedError(
            NoSuchClass(job_class=ClassName("normal")),
            "The new rules have no class, so that every job would be refused. "
            "Name at least one, such as `classes: {normal: {}}`.",
        )
    misplaced = sorted(_misplaced(site, record))
    if misplaced and len(misplaced) == len({node.pool for node in record.nodes.values()}):
        raise RefusedError(
            NoSuchPool(name=misplaced[0]),
            f"The new rules put pool {listed(misplaced)} into a cluster that its nodes are not in, "
            f"so that nothing could run. Write `cluster: {listed(sorted(record.clusters))}`.",
        )


def cautions(site: Site, record: Record) -> tuple[str, ...]:
    """What the new rules leave without room, a node, a queue or a class."""
    return tuple(text for check in CHECKS for text in check(site, record))


def _jobs_keep_their_queue(site: Site, record: Record) -> Iterator[str]:
    lost = {job.spec.queue for job in record.jobs.values()} - site.queues.keys()
    for path in sorted(lost):
        yield f"jobs wait in queue {path}, which is gone; move or cancel them"


def _jobs_keep_their_class(site: Site, record: Record) -> Iterator[str]:
    gone = {job.spec.job_class for job in record.jobs.values()} - site.classes.keys()
    for name in sorted(gone):
        yield f"jobs have class {name}, which is gone; update or cancel them"


def _guarantees_are_there(site: Site, record: Record) -> Iterator[str]:
    nodes = list(record.nodes.values())
    for queue in site.queues.values() if nodes else ():
        for line in queue.quotas:
            there = capacity_of(line.scope, nodes)
            wanted = resolved(line.guaranteed, there)
            if wanted > there:
                yield (
                    f"queue {queue.path}{placed(line.scope)}: guaranteed "
                    f"{metered(line.scope, wanted)}, but all nodes together have "
                    f"{metered(line.scope, there)}"
                )


def _pools_have_their_cluster(site: Site, record: Record) -> Iterator[str]:
    for name in sorted(_misplaced(site, record)):
        yield (
            f"pool {name} is in cluster {site.pools[name].cluster} by these rules, and its nodes "
            f"are in {listed(sorted(record.clusters))}: nothing starts there"
        )
    known = record.clusters
    named = {pool.cluster for pool in site.pools.values()} - known.keys()
    for cluster in sorted(named) if known else ():
        yield f"there is no cluster {cluster}; there is {listed(sorted(known))}"


def _nodes_keep_their_pool(site: Site, record: Record) -> Iterator[str]:
    left: dict[str, list[str]] = {}
    for node in record.nodes.values():
        if node.pool not in site.pools:
            left.setdefault(node.pool, []).append(node.id)
    for pool, nodes in sorted(left.items()):
        yield (
            f"nodes {listed(sorted(nodes))} are in pool {pool}, which these rules do not name: "
            "they stay in it, open to all and without limits"
        )
    empty = site.pools.keys() - {node.pool for node in record.nodes.values()}
    for pool in sorted(empty) if record.nodes else ():
        yield f"pool {pool} has no nodes; jobs that ask for it wait until it has"


def _reserved_nodes_exist(site: Site, record: Record) -> Iterator[str]:
    for each in site.reservations if record.nodes else ():
        if isinstance(each, NodesReserved):
            missing = sorted(set(each.nodes) - record.nodes.keys())
            if missing:
                yield f"reservation {each.name}: there is no node {listed(missing)}"


Check = Callable[[Site, Record], Iterator[str]]

CHECKS: tuple[Check, ...] = (
    _jobs_keep_their_queue,
    _jobs_keep_their_class,
    _guarantees_are_there,
    _pools_have_their_cluster,
    _nodes_keep_their_pool,
    _reserved_nodes_exist,
)


def _misplaced(site: Site, record: Record) -> set[PoolName]:
    """Pools whose nodes are all in another cluster than the rules say."""
    clusters: dict[str, set[str]] = {}
    for node in record.nodes.values():
        clusters.setdefault(node.pool, set()).add(node.cluster)
    return {
        name
        for name, pool in site.pools.items()
        if name in clusters and pool.cluster not in clusters[name]
    }
