"""Jobs that come back to room that is theirs: cleared for them, or left by them while suspended."""

from muster.model.cluster import NodeState
from muster.model.job import HeldBy
from muster.model.placement import DeviceShare, Placement
from muster.model.plan import Resume, Start
from muster.model.reason import MakingRoom, WaitingToResume, WaitReason
from muster.model.resources import NOTHING
from muster.schedule.policy.search import CycleState
from muster.schedule.room.index import Room
from muster.schedule.room.ledger import by_node
from muster.schedule.room.slices import DeviceState, choices
from muster.schedule.state.accounts import Portion
from muster.schedule.state.books import portions_of
from muster.schedule.state.follow import HeldRoom, PlannerState
from muster.schedule.state.roster import WaitingJob


def claim_is_sound(entry: WaitingJob, cycle: CycleState) -> bool:
    """Are all nodes of the job's claim up, in order, and open to it?"""
    claim, spec, neighbours = entry.job.claim, entry.job.spec, cycle.neighbours
    if claim is None:
        return False
    # The job's own claim must not keep it away from itself.
    neighbours.count(spec, claim.placements, is_away=True, sign=-1)
    is_sound = all(_is_sound(placement, entry, cycle) for placement in claim.placements)
    neighbours.count(spec, claim.placements, is_away=True, sign=1)
    return is_sound


def started_on_claim(
    entry: WaitingJob, hold: HeldRoom, kept: PlannerState, cycle: CycleState
) -> Start | WaitReason:
    """The job starts on the room that was cleared for it, once all victims are gone.

    If it may not have so much any more, the room is given up.
    """
    job = entry.job
    if hold.victims:
        return MakingRoom(victims=hold.victims)
    ends_at = max(cycle.ends_at(entry, each.pool) for each in hold.placements)
    start = hold._replace(ends_at=ends_at, is_claim=False)
    portions = portions_of(hold.placements, cycle.snapshot.nodes, is_suspended=False)
    kept.change(job.id, None)
    cycle.calendar.note(job.spec, portions, hold.ends_at, sign=-1)
    why = _refusal(entry, start, portions, cycle)
    if why is not None:
        return why
    cycle.calendar.note(job.spec, portions, ends_at)
    kept.change(job.id, start)
    return Start(
        job=job.id,
        attempt=job.attempt + 1,
        cluster=cycle.snapshot.nodes[hold.placements[0].node].cluster,
        placements=hold.placements,
    )


def resumed(entry: WaitingJob, kept: PlannerState, cycle: CycleState) -> Resume | WaitReason:
    """A suspended job goes on where it is, if what it left is free."""
    if isinstance(entry.job.why, HeldBy):
        return entry.job.why
    hold = kept.hold(entry.id)
    if hold is None:
        return WaitingToResume(node=None)
    for node_id, placements in by_node(hold.placements).items():
        if not _is_free(cycle.ledger.rooms.get(node_id), placements):
            return WaitingToResume(node=node_id)
    # Asleep it counts with its kept; awake it must be allowed as a whole.
    portions = portions_of(hold.placements, cycle.snapshot.nodes, is_suspended=False)
    kept.change(entry.id, None)
    why = _refusal(entry, hold, portions, cycle)
    kept.change(entry.id, hold if why is not None else hold._replace(is_suspended=False))
    return why or Resume(job=entry.id, attempt=entry.job.attempt)


def _refusal(
    entry: WaitingJob, hold: HeldRoom, portions: tuple[Portion, ...], cycle: CycleState
) -> WaitReason | None:
    spec, quotas = entry.job.spec, cycle.books.quotas
    total = sum((portion.amount for portion in portions), NOTHING)
    for placement in hold.placements:
        kind = cycle.ledger.rooms[placement.node].kind
        why = cycle.calendar.closed(kind, spec, entry.job_class)
        if why is not None:
            return why
    limit_ms = hold.ends_at - cycle.now
    return (
        quotas.too_many_jobs(spec.queue)
        or quotas.refusal(spec.queue, portions)
        or cycle.books.over_class_limit(spec, entry.job_class, total)
        or cycle.calendar.refusal(spec, portions, limit_ms)
    )


def _is_sound(placement: Placement, entry: WaitingJob, cycle: CycleState) -> bool:
    room = cycle.ledger.rooms.get(placement.node)
    if room is None or room.node.state is not NodeState.UP:
        return False
    if not room.kind.cluster.reachable or not room.kind.pool.starts:
        return False
    healthy = {device.id for device in room.node.devices if device.healthy}
    if not all(share.device in healthy for share in placement.devices):
        return False
    if cycle.calendar.closed(room.kind, entry.job.spec, entry.job_class) is not None:
        return False
    return _has_right_neighbours(placement, entry, cycle)


def _has_right_neighbours(placement: Placement, entry: WaitingJob, cycle: CycleState) -> bool:
    groups = (group for group in entry.job.spec.groups if group.name == placement.group)
    filters = (cycle.neighbours.filter(entry.job.spec, group.where) for group in groups)
    room = cycle.ledger.rooms[placement.node]
    return all(allows is None or allows(room) for allows in filters)


def _taken(state: DeviceState, share: DeviceShare) -> DeviceState | None:
    """The device after the very share is taken back, if that is possible."""
    ways = choices(state, share.slice, may_cut=False)
    return next((way.after for way in ways if way.start == share.start), None)


def _is_free(room: Room | None, placements: tuple[Placement, ...]) -> bool:
    if room is None or not room.is_listed or not room.kind.cluster.reachable:
        return False
    if sum(each.amount.cpu_milli for each in placements) > room.cpu_milli:
        return False
    places = {device.id: place for place, device in enumerate(room.node.devices)}
    states: dict[int, DeviceState | None] = dict(enumerate(room.devices))
    for placement in placements:
        for share in placement.devices:
            place = places.get(share.device, -1)
            state = states.get(place)
            found = None if state is None else _taken(state, share)
            if found is None:
                return False
            states[place] = found
    return True
