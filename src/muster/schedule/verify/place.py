"""Clusters, pools and nodes that may take the work."""

from collections.abc import Iterable, Iterator

from muster.model.cluster import Node, NodeState, Pool
from muster.model.job import Job, JobSpec, Spot, TaskGroup
from muster.model.placement import Placement
from muster.schedule.verify.additions import Addition, Kind, Task
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def clusters_are_reachable_and_allowed(case: Case) -> Iterator[Violation]:
    """The decision's cluster is reachable, and one of those that the spec names."""
    clusters = case.snapshot.clusters
    for addition in case.additions:
        cluster, spec = clusters.get(addition.cluster), addition.job.spec
        text = None
        if cluster is None:
            text = f"There is no cluster {addition.cluster!r}."
        elif not cluster.reachable:
            text = f"Cluster {cluster.name} cannot be reached."
        elif spec.clusters and cluster.name not in spec.clusters:
            text = f"It asks for {_either(spec.clusters)}, not for cluster {cluster.name}."
        if text is not None:
            yield Violation(rule="cluster", subject=f"job {addition.job.id}", text=text)


def clusters_can_run_it(case: Case) -> Iterator[Violation]:
    """The decision's cluster can do what running the job takes."""
    clusters = case.snapshot.clusters
    for addition in case.placed:
        cluster, takes = clusters.get(addition.cluster), addition.job.spec.takes
        lacking = None if cluster is None else cluster.abilities.lacking(takes)
        if cluster is not None and lacking is not None:
            text = f"It takes {lacking.value}, which cluster {cluster.name} does not have."
            yield Violation(rule="abilities", subject=f"job {addition.job.id}", text=text)


def nodes_take_work(case: Case) -> Iterator[Violation]:
    """Every node exists, is UP, and lies in the cluster and the pool that are named and allowed.

    A resumed job only needs its nodes not to be DOWN: a DRAINING node keeps what it has.
    """
    nodes, up = case.snapshot.nodes, NodeState.UP
    for addition in case.additions:
        pools = addition.job.spec.pools
        for placement in addition.placements:
            node = nodes.get(placement.node)
            # Nearly always true, so it is asked at once and in place.
            if (
                node is not None
                and node.state is up
                and node.pool == placement.pool
                and node.cluster == addition.cluster
                and (not pools or node.pool in pools)
            ):
                continue
            for text in _node_faults(addition, placement, node):
                yield Violation(rule="node", subject=f"job {addition.job.id}", text=text)


def groups_are_of_one_kind(case: Case) -> Iterator[Violation]:
    """All tasks of a group lie in one pool, on one GPU model."""
    for addition in case.placed:
        if len(addition.tasks) == 1 and not addition.beside and len(addition.tasks[0].devices) < 2:
            continue
        for group, tasks in by_group(addition):
            pools = {task.placement.pool for task in tasks}
            models = {device.model for task in tasks for device in task.devices}
            if len(pools) > 1:
                text = f"Group {group.name} is spread over the pools {_both(pools)}."
                yield Violation(rule="one pool", subject=f"job {addition.job.id}", text=text)
            if len(models) > 1:
                text = f"Group {group.name} is spread over the models {_both(models)}."
                yield Violation(rule="one model", subject=f"job {addition.job.id}", text=text)


def spot_is_respected(case: Case) -> Iterator[Violation]:
    """Spot-only work, by class or by itself, runs in spot pools; work that says never, elsewhere.

    The class decides before the job. The pool exists, is open, and lets the job in.
    """
    pools = case.snapshot.pools
    for addition in case.placed:
        spot = _spot(case, addition.job)
        for name in addition.pools:
            pool = pools.get(name)
            if pool is None:
                text = f"There is no pool {name}."
                yield Violation(rule="pool", subject=f"job {addition.job.id}", text=text)
                continue
            if not pool.starts:
                text = f"Nothing starts in pool {name} now."
                yield Violation(rule="pool", subject=f"job {addition.job.id}", text=text)
            if not (pool.is_open or _lets_in(pool, addition.job.spec)):
                text = f"Pool {name} does not let it in."
                yield Violation(rule="pool", subject=f"job {addition.job.id}", text=text)
            if spot is not Spot.ALLOWED and pool.spot != (spot is Spot.ONLY):
                text = f"Its spot rule is {spot}, and pool {name} is {_kind(is_spot=pool.spot)}."
                yield Violation(rule="spot", subject=f"job {addition.job.id}", text=text)


def by_group(addition: Addition) -> Iterable[tuple[TaskGroup, list[Task]]]:
    """The tasks of each group to which something is added, with those that it has already."""
    if len(addition.tasks) == 1 and not addition.beside:
        return [(addition.tasks[0].group, addition.tasks)]
    names = {task.group.name for task in addition.tasks}
    found: dict[str, tuple[TaskGroup, list[Task]]] = {}
    for task in (*addition.beside, *addition.tasks):
        if task.group.name in names:
            found.setdefault(task.group.name, (task.group, []))[1].append(task)
    return found.values()


def _node_faults(addition: Addition, placement: Placement, node: Node | None) -> Iterator[str]:
    if node is None:
        yield f"There is no node {placement.node}."
        return
    is_resumed = addition.kind is Kind.RESUME
    if node.state is NodeState.DOWN or (node.state is NodeState.DRAINING and not is_resumed):
        yield f"Node {node.id} is {node.state}."
    if node.pool != placement.pool:
        yield f"Node {node.id} is in pool {node.pool}, not in {placement.pool}."
    if node.cluster != addition.cluster:
        yield f"Node {node.id} is in cluster {node.cluster}, not in {addition.cluster}."
    pools = addition.job.spec.pools
    if pools and node.pool not in pools and not is_resumed:
        yield f"It asks for {_either(pools)}, not for pool {node.pool}."


def _spot(case: Case, job: Job) -> Spot:
    job_class = case.snapshot.classes.get(job.spec.job_class)
    return Spot.ONLY if job_class is not None and job_class.spot_only else job.spec.spot


def _lets_in(pool: Pool, spec: JobSpec) -> bool:
    return pool.lets_in(spec.user, spec.queue, spec.job_class)


def _kind(*, is_spot: bool) -> str:
    return "spot" if is_spot else "not spot"


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)


def _both(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
