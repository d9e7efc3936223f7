"""Jobs that come back to room that is theirs: cleared for them, or left by them while suspended."""

from muster.model.cluster import NodeState
from muster.model.job import HeldBy
from muster.model.placement import DeviceShare, Placement
from muster.model.plan import Resume, Start
from muster.model.reason import MakingRoom, WaitingToResume, WaitReason
from muster.model.resources import NOTHING
from muster.schedule.policy.search import Standing
from muster.schedule.room.index import Room
from muster.schedule.room.ledger import by_node
from muster.schedule.room.slices import DeviceState, choices
from muster.schedule.state.accounts import Portion
from muster.schedule.state.books import portions_of
from muster.schedule.state.follow import Hold, Memory
from muster.schedule.state.roster import Entry


def claim_is_sound(entry: Entry, standing: Standing) -> bool:
    """Are all nodes of the job's claim up, in order, and open to it?"""
    claim, spec, neighbours = entry.job.claim, entry.job.spec, standing.neighbours
    if claim is None:
        return False
    # The job's own claim must not keep it away from itself.
    neighbours.count(spec, claim.placements, is_away=True, sign=-1)
    is_sound = all(_is_sound(placement, entry, standing) for placement in claim.placements)
    neighbours.count(spec, claim.placements, is_away=True, sign=1)
    return is_sound


def started_on_claim(
    entry: Entry, hold: Hold, memory: Memory, standing: Standing
) -> Start | WaitReason:
    """The job starts on the room that was cleared for it, once all victims are gone.

    If it may not have so much any more, the room is given up.
    """
    job = entry.job
    if hold.victims:
        return MakingRoom(victims=hold.victims)
    ends_at = max(standing.ends_at(entry, each.pool) for each in hold.placements)
    start = hold._replace(ends_at=ends_at, is_claim=False)
    portions = portions_of(hold.placements, standing.snapshot.nodes, is_suspended=False)
    memory.change(job.id, None)
    standing.calendar.note(job.spec, portions, hold.ends_at, sign=-1)
    why = _refusal(entry, start, portions, standing)
    if why is not None:
        return why
    standing.calendar.note(job.spec, portions, ends_at)
    memory.change(job.id, start)
    return Start(
        job=job.id,
        attempt=job.attempt + 1,
        cluster=standing.snapshot.nodes[hold.placements[0].node].cluster,
        placements=hold.placements,
    )


def resumed(entry: Entry, memory: Memory, standing: Standing) -> Resume | WaitReason:
    """A suspended job goes on where it is, if what it left is free."""
    if isinstance(entry.job.why, HeldBy):
        return entry.job.why
    hold = memory.hold(entry.id)
    if hold is None:
        return WaitingToResume(node=None)
    for node_id, placements in by_node(hold.placements).items():
        if not _is_free(standing.ledger.rooms.get(node_id), placements):
            return WaitingToResume(node=node_id)
    # Asleep it counts with its memory; awake it must be allowed as a whole.
    portions = portions_of(hold.placements, standing.snapshot.nodes, is_suspended=False)
    memory.change(entry.id, None)
    why = _refusal(entry, hold, portions, standing)
    memory.change(entry.id, hold if why is not None else hold._replace(is_suspended=False))
    return why or Resume(job=entry.id, attempt=entry.job.attempt)


def _refusal(
    entry: Entry, hold: Hold, portions: tuple[Portion, ...], standing: Standing
) -> WaitReason | None:
    spec, quotas = entry.job.spec, standing.books.quotas
    total = sum((portion.amount for portion in portions), NOTHING)
    for placement in hold.placements:
        kind = standing.ledger.rooms[placement.node].kind
        why = standing.calendar.closed(kind, spec, entry.job_class)
        if why is not None:
            return why
    limit_ms = hold.ends_at - standing.now
    return (
        quotas.too_many_jobs(spec.queue)
        or quotas.refusal(spec.queue, portions)
        or standing.books.over_class_limit(spec, entry.job_class, total)
        or standing.calendar.refusal(spec, portions, limit_ms)
    )


def _is_sound(placement: Placement, entry: Entry, standing: Standing) -> bool:
    room = standing.ledger.rooms.get(placement.node)
    if room is None or room.node.state is not NodeState.UP:
        return False
    if not room.kind.cluster.reachable or not room.kind.pool.starts:
        return False
    healthy = {device.id for device in room.node.devices if device.healthy}
    if not all(share.device in healthy for share in placement.devices):
        return False
    if standing.calendar.closed(room.kind, entry.job.spec, entry.job_class) is not None:
        return False
    return _has_right_neighbours(placement, entry, standing)


def _has_right_neighbours(placement: Placement, entry: Entry, standing: Standing) -> bool:
    groups = (group for group in entry.job.spec.groups if group.name == placement.group)
    filters = (standing.neighbours.filter(entry.job.spec, group.where) for group in groups)
    room = standing.ledger.rooms[placement.node]
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
