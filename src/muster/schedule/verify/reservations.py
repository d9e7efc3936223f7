"""Capacity that is promised for a time."""

from collections.abc import Iterable, Iterator

from muster.model.cluster import AmountReserved, NodesReserved, Reservation, is_guest
from muster.model.job import Job
from muster.model.placement import Placement
from muster.model.queue import Meter, Scope, is_within
from muster.model.value import NodeId
from muster.schedule.verify.case import Case
from muster.schedule.verify.census import Holder
from muster.schedule.verify.moments import Moment
from muster.schedule.verify.times import time_limit
from muster.schedule.verify.violation import Violation


def nodes_stay_reserved(case: Case) -> Iterator[Violation]:
    """A job of another queue (any job, when they are for no queue) does not overlap the window."""
    kept = _kept_nodes(case)
    there = {
        (number, placement.node): addition
        for number, addition in enumerate(case.additions if kept else ())
        for placement in addition.placements
        if placement.node in kept
    }
    for (_, node), addition in there.items():
        job, placements = addition.job, addition.placements
        for reservation in kept[node]:
            if _is_outside(job, reservation) and _overlaps(case, job, placements, reservation):
                text = (
                    f"It would still be on {node} when {reservation.name} begins, "
                    f"in {reservation.begins_at - case.snapshot.now} ms."
                )
                yield Violation(rule="reserved", subject=f"job {job.id}", text=text)


def reservations_asked_for_are_kept_to(case: Case) -> Iterator[Violation]:
    """A job that asks for a reservation is in it, while it is open, and may be."""
    known = {each.name: each for each in case.snapshot.reservations}
    for addition in case.additions:
        job, name = addition.job, addition.job.spec.reservation
        if name is None:
            continue
        why = _not_inside(case, job, addition.placements, known.get(name))
        if why is not None:
            text = f"It asks for reservation {name}, {why}."
            yield Violation(rule="reserved", subject=f"job {job.id}", text=text)


def _not_inside(
    case: Case, job: Job, placements: tuple[Placement, ...], reservation: Reservation | None
) -> str | None:
    if reservation is None:
        return "which does not exist"
    if _is_outside(job, reservation):
        return "which is not for it"
    now = case.snapshot.now
    has_begun = reservation.begins_at <= now or reservation.flexible
    if not has_begun or reservation.ends_at <= now:
        return "which is not open now"
    strange = [each.node for each in placements if not _is_part(each, reservation)]
    return f"and {strange[0]} is not in it" if strange else None


def _is_part(placement: Placement, reservation: Reservation) -> bool:
    match reservation:
        case NodesReserved(nodes=nodes):
            return placement.node in nodes
        case AmountReserved(pool=pool):
            return placement.pool == pool


def amounts_stay_reserved(case: Case) -> Iterator[Violation]:
    """All outsiders that overlap the window leave the promised GPU of the pool free.

    It is asked when an outsider that overlaps the window is new in the pool.
    """
    for reservation in case.snapshot.reservations:
        if not isinstance(reservation, AmountReserved):
            continue
        if reservation.ends_at <= case.snapshot.now:
            continue
        for moment in case.moments:
            yield from _overcommitted(case, moment, reservation)


def _overcommitted(case: Case, moment: Moment, reservation: AmountReserved) -> Iterator[Violation]:
    pool = reservation.pool
    there = [(each.job, each.placements) for each in moment.added if pool in each.pools]
    new = _taken(case, there, reservation)
    if not new:
        return
    capacity = case.fleet.capacity(Scope(meter=Meter.GPU, pool=pool))
    more = new + _taken(case, moment.passing(), reservation)
    # Mostly there is room for everyone, and it does not matter who ends when.
    if _held_by_outsiders(case, reservation) + more + reservation.gpu_milli <= capacity:
        return
    taken = _taken(case, case.staying.holders(), reservation) + more
    if taken + reservation.gpu_milli > capacity:
        text = (
            f"{taken} GPU milli of outsiders and {reservation.gpu_milli} promised "
            f"do not fit in the {capacity} of pool {reservation.pool}{moment.words}."
        )
        yield Violation(rule="reserved", subject=f"reservation {reservation.name}", text=text)


def _kept_nodes(case: Case) -> dict[NodeId, list[NodesReserved]]:
    kept: dict[NodeId, list[NodesReserved]] = {}
    for reservation in case.snapshot.reservations:
        if isinstance(reservation, NodesReserved) and reservation.ends_at > case.snapshot.now:
            for node in reservation.nodes:
                kept.setdefault(node, []).append(reservation)
    return kept


def _taken(case: Case, holders: Iterable[Holder], reservation: AmountReserved) -> int:
    """The GPU that outsiders among these take from the pool, if they overlap the window."""
    pool, taken = reservation.pool, 0
    for job, placements in holders:
        gpu_milli = 0
        for placement in placements:
            if placement.pool == pool:
                gpu_milli += placement.amount.gpu_milli
        if (
            gpu_milli
            and _is_outside(job, reservation)
            and _overlaps(case, job, placements, reservation)
        ):
            taken += gpu_milli
    return taken


def _held_by_outsiders(case: Case, reservation: AmountReserved) -> int:
    """At least the GPU of the pool that outsiders hold and stay on, whenever they end."""
    by_queue = case.staying.gpu_use.get(reservation.pool, {})
    whose = reservation.for_queue
    is_for_all = not reservation.for_users and not reservation.by_name
    return sum(
        gpu_milli
        for queue, gpu_milli in by_queue.items()
        if not (is_for_all and whose is not None and is_within(queue, whose))
    )


def _is_outside(job: Job, reservation: Reservation) -> bool:
    spec = job.spec
    return not is_guest(reservation, spec.user, spec.queue, spec.reservation)


def _overlaps(
    case: Case, job: Job, placements: tuple[Placement, ...], reservation: Reservation
) -> bool:
    """Has the job not ended, by its limit, when the window begins? Who is here now has not."""
    now = case.snapshot.now
    if reservation.begins_at <= now:
        return True
    limit = time_limit(case, job, placements)
    if limit is None:
        return True
    allocation = case.snapshot.allocations.get(job.id)
    if allocation is None:
        return now + limit > reservation.begins_at
    began = allocation.placed_at if allocation.started_at is None else allocation.started_at
    return began + limit > reservation.begins_at
