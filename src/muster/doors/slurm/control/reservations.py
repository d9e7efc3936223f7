"""Reservations as scontrol makes, changes and removes them: those of the site, and no others."""

from muster.controller.messages import JobQuery
from muster.controller.world.reservations import current_window
from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.control import partitions, reservation_keys
from muster.doors.slurm.control.reservation_keys import Draft
from muster.doors.slurm.permissions import STRANGER, change_rules, demand_admin
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.pairs import Pair, words_of
from muster.model.cluster import NodesReserved, Reservation
from muster.model.site import Site
from muster.model.value import DAY, NodeId, replace

INVALID = "Requested reservation is invalid"
BUSY = (
    "Error creating the reservation: Requested nodes are busy",
    "Note, unless nodes are directly requested a reservation must exist in a single partition.",
    "If no partition is requested the default partition is assumed.",
)


def create(words: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> Reply:
    """`create reservation StartTime=now ...`, `create PartitionName=gpu2 ...`."""
    kind, equals, _ = words[0].lower().partition("=")
    if kind in {"res", "reservation", "reservationname"}:
        return _created(words if equals else words[1:], call, door)
    if kind in {"part", "partition", "partitionname"}:
        if not equals and words[1:] == ():
            raise SlurmError(f"scontrol: error: Invalid input: {kind}  Request aborted")
        pairs = words_of(words if equals else words[1:])
        name = next((pair.value for pair in pairs if pair.name.startswith("part")), "")
        others = tuple(pair for pair in pairs if not pair.name.startswith("part"))
        return partitions.created(name, others, door)
    raise SlurmError(f"scontrol: error: Invalid creation entity: {words[0]}")


def delete(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """`delete ReservationName=x`, `delete reservation x`, `delete PartitionName=p`."""
    kind, equals, name = words[0].partition("=")
    if not equals and len(words) < 2:
        text = "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'"
        raise SlurmError(f"scontrol: error: {text}")
    meant = name if equals else words[1]
    if kind.lower().startswith("part"):
        return partitions.deleted(meant, words[0], door)
    if not kind.lower().startswith("res"):
        raise SlurmError(f"Invalid deletion entity: {words[0]}")
    return _deleted(meant, words[0], door)


def updated(name: str, pairs: tuple[Pair, ...], call: Call, door: Door) -> Reply:
    """`update ReservationName=x Duration=120`, with `+=` and `-=` for lists and times."""
    begin = "Error updating the reservation"
    demand_admin(door, f"{begin}: {STRANGER}", f"slurm_update error: {STRANGER}")
    draft = reservation_keys.drafted(pairs, call, door, is_new=False)

    def change(site: Site) -> Site:
        known = next((each for each in site.reservations if each.name == name), None)
        if known is None:
            raise SlurmError(f"{begin}: {INVALID}", f"slurm_update error: {INVALID}")
        # Who changes one that comes back means the window that lists show.
        new = draft.changed(current_window(known, door.now))
        others = tuple(new if each is known else each for each in site.reservations)
        return replace(site, reservations=others)

    change_rules(change, door, begin)
    return Reply(out="Reservation updated.\n", err=draft.warnings)


def _created(words: tuple[str, ...], call: Call, door: Door) -> Reply:
    begin = "Error creating the reservation"
    draft = reservation_keys.drafted(words_of(words), call, door, is_new=True)
    demand_admin(door, f"{begin}: {STRANGER}")
    made: list[str] = []

    def change(site: Site) -> Site:
        names = {each.name for each in site.reservations}
        name = draft.name or _free_name(draft, names)
        if name in names:
            raise SlurmError(f"{begin}: Duplicate reservation name")
        new = draft.made(name, site, _taken(draft, site))
        _demand_free(new, draft, site, door)
        made.append(name)
        return replace(site, reservations=(*site.reservations, new))

    change_rules(change, door, begin)
    return Reply(out=f"Reservation created: {made[-1]}\n", err=draft.warnings)


def _free_name(draft: Draft, names: set[str]) -> str:
    whose = (*draft.users, *draft.accounts, "resv")[0]
    number = 1
    while f"{whose}_{number}" in names:
        number += 1
    return f"{whose}_{number}"


def _taken(draft: Draft, site: Site) -> frozenset[NodeId]:
    """Nodes that others have reserved for a part of the time."""
    kept = [each for each in site.reservations if isinstance(each, NodesReserved)]
    return frozenset(node for each in kept if _meets(each, draft) for node in each.nodes)


def _meets(each: NodesReserved, draft: Draft) -> bool:
    """Do they overlap, in the days in which every window was there once?"""
    mine = replace(each, begins_at=draft.begins_at, ends_at=draft.ends_at, every=draft.every)
    until = draft.begins_at + 8 * DAY
    while mine.begins_at < until:
        theirs = current_window(each, mine.begins_at)
        if theirs.begins_at < mine.ends_at and theirs.ends_at > mine.begins_at:
            return True
        if mine.every is None:
            return False
        mine = current_window(mine, mine.ends_at)
    return False


def _demand_free(new: Reservation, draft: Draft, site: Site, door: Door) -> None:
    """No node twice at one time, and none on which a job would still run when it begins."""
    if not isinstance(new, NodesReserved):
        return
    nodes = set(new.nodes)
    if not draft.flags & {"MAINT", "OVERLAP"} and nodes & _taken(draft, site):
        text = "Requested reservation overlaps with another reservation"
        raise SlurmError(f"Error creating the reservation: {text}")
    if "IGNORE_JOBS" in draft.flags:
        return
    for job, held in door.queries.jobs.running(door.caller):
        limit = job.spec.time_limit
        ends = None if limit is None else (held.started_at or held.placed_at) + limit
        stays = ends is None or ends > new.begins_at
        if stays and any(placed.node in nodes for placed in held.placements):
            raise SlurmError(*BUSY)


def _deleted(name: str, word: str, door: Door) -> Reply:
    begin = f"delete_reservation {word}"
    demand_admin(door, f"{begin}: {STRANGER}")

    def change(site: Site) -> Site:
        left = tuple(each for each in site.reservations if each.name != name)
        if len(left) == len(site.reservations):
            raise SlurmError(f"{begin}: {INVALID}")
        if any(door.queries.jobs.matching(door.caller, JobQuery(reservation=name))):
            raise SlurmError(f"{begin}: Requested reservation is in use")
        return replace(site, reservations=left)

    change_rules(change, door, begin)
    return Reply()
