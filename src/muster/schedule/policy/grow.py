"""Running elastic jobs take what is left, when everybody else has been looked at."""

from muster.model.job import JobState
from muster.model.placement import Placement
from muster.model.plan import Resize
from muster.schedule.policy.place import place_more
from muster.schedule.policy.search import CycleState, Search
from muster.schedule.state.books import Holding, model_of
from muster.schedule.state.follow import PlannerState


def grown(kept: PlannerState, cycle: CycleState) -> list[Resize]:
    """Resizes for running elastic jobs, oldest first, where the cluster can do that."""
    if not cycle.policy.grow:
        return []
    found: list[Resize] = []
    for job_id in sorted(kept.elastic):
        holding = cycle.books.holdings.get(job_id)
        if holding is None or not _can_grow(holding, cycle):
            continue
        more = _more(holding, kept, cycle)
        if more:
            kept.grow(job_id, more)
            found.append(Resize(job=job_id, attempt=holding.job.attempt, placements=more))
    return found


def _can_grow(holding: Holding, cycle: CycleState) -> bool:
    allocation = cycle.snapshot.allocations.get(holding.job.id)
    if allocation is None or holding.job.state is not JobState.RUNNING:
        return False
    cluster = cycle.snapshot.clusters[allocation.cluster]
    return cluster.reachable and cluster.abilities.resize


def _more(holding: Holding, kept: PlannerState, cycle: CycleState) -> tuple[Placement, ...]:
    entry = kept.entry(holding.job)
    more: tuple[Placement, ...] = ()
    for group_need in entry.shape.groups:
        group = group_need.group
        there = [each for each in holding.placements if each.group == group.name]
        is_bound = group.together is not None and group.together.required
        if there and not is_bound and len(there) < group.count:
            more += _more_of(Search(entry, group_need, cycle), there)
    return more


def _more_of(search: Search, there: list[Placement]) -> tuple[Placement, ...]:
    """One task at a time, in the pool and on the model that the group already has."""
    model = model_of(there[0], search.cycle.snapshot.nodes)
    kinds = search.cycle.ledger.catalogue.kinds.values()
    elsewhere = frozenset(
        (kind, gpus)
        for kind in kinds
        for gpus in getattr(search.cycle.ledger.catalogue.offer(kind, search.need), "gpus", ())
        if kind.pool.name != there[0].pool or (gpus is not None and gpus.model != model)
    )
    bounds = search.bounds()
    return place_more(search, bounds._replace(closed=bounds.closed | elsewhere), len(there))
