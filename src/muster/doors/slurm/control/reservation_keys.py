"""The keys and flags of a reservation in Slurm's words, read as one of ours."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.pairs import Pair, listed
from muster.doors.slurm.words.users import is_user
from muster.model.cluster import AmountReserved, Every, NodesReserved, NodeState, Reservation
from muster.model.site import Site
from muster.model.value import (
    DAY,
    Duration,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)

COMING_BACK = {each.name: each for each in Every}
FLEX = "FLEX"
MAGNETIC = "MAGNETIC"
KNOWN_FLAGS = frozenset(
    {"MAINT", "IGNORE_JOBS", "OVERLAP", "SPEC_NODES", FLEX, MAGNETIC, *COMING_BACK}
)
IGNORED_FLAGS = frozenset(
    """
    ANY_NODES FIRST_CORES NO_HOLD_JOBS NO_HOLD_JOBS_AFTER NO_HOLD_JOBS_AFTER_END PART_NODES
    PURGE_COMP STATIC STATIC_ALLOC USER_DELETE
    """.split()
)
REFUSED_FLAGS = frozenset("LICENSE_ONLY REPLACE REPLACE_DOWN TIME_FLOAT".split())
"""They would make another reservation of it, and we cannot."""


def flags_of(each: Reservation) -> tuple[str, ...]:
    """All flags of a reservation in Slurm's words, but that its nodes were named."""
    found = [*each.flags]
    if not each.by_name and (each.for_queue is not None or each.for_users):
        found.append(MAGNETIC)
    if each.flexible:
        found.append(FLEX)
    if each.every is not None:
        found.append(each.every.name)
    return tuple(found)


def flagged(each: Reservation, flags: frozenset[str], zone: str) -> Reservation:
    """The reservation with these flags and no others."""
    every = every_of(flags)
    messages = flags - {"SPEC_NODES", FLEX, MAGNETIC} - COMING_BACK.keys()
    return replace(
        each,
        by_name=MAGNETIC not in flags,
        flexible=FLEX in flags,
        every=every,
        zone=each.zone if every is each.every or every is None else zone,
        flags=tuple(sorted(messages)),
    )


def every_of(flags: frozenset[str]) -> Every | None:
    """How often a reservation with these flags comes back."""
    return next((COMING_BACK[name] for name in COMING_BACK if name in flags), None)


ENDLESS = Duration(365 * DAY)
"""Slurm's own length of a reservation without end."""

UNSET = Instant(0)


@dataclass(kw_only=True)
class Draft:
    """What was written, before it is known what it makes of which reservation."""

    name: str = ""
    begins_at: Instant = UNSET
    ends_at: Instant = UNSET
    duration: Duration | None = None
    nodes: tuple[NodeId, ...] = ()
    node_count: int = 0
    pool: PoolName | None = None
    gpus: int = 0
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    zone: str = "UTC"
    warnings: str = ""
    changes: list[Callable[[Reservation], Reservation]] = field(
        default_factory=list[Callable[[Reservation], Reservation]]
    )
    listing: Listing | None = None

    @property
    def every(self) -> Every | None:
        """How often it comes back."""
        return every_of(self.flags)

    def changed(self, known: Reservation) -> Reservation:
        """An update of one that is there."""
        for each in self.changes:
            known = each(known)
        if known.ends_at <= known.begins_at:
            raise _none("Start time cannot be after end time", is_new=False)
        return known

    def made(self, name: str, site: Site, taken: frozenset[NodeId]) -> Reservation:
        """The new one; nodes that others have are not chosen for it."""
        queue = QueuePath(self.accounts[0]) if self.accounts else None
        if queue is not None and queue not in site.queues:
            text = "Invalid account or account/partition combination specified"
            raise SlurmError(f"Error creating the reservation: {text}")
        pool = self.pool or (self.listing.default_pool if self.listing else PoolName(""))
        if pool not in site.pools:
            raise SlurmError("Error creating the reservation: Invalid partition name specified")
        begins_at, ends_at = self.begins_at, self.ends_at
        plain: Reservation
        if self.gpus:
            milli = 1_000 * self.gpus
            plain = AmountReserved(
                name=name, pool=pool, gpu_milli=milli, begins_at=begins_at, ends_at=ends_at
            )
        else:
            nodes = self.nodes or self._chosen(pool, taken)
            plain = NodesReserved(name=name, nodes=nodes, begins_at=begins_at, ends_at=ends_at)
        plain = replace(plain, for_queue=queue, for_users=tuple(map(UserName, self.users)))
        return flagged(plain, self.flags, self.zone)

    def _chosen(self, pool: PoolName, taken: frozenset[NodeId]) -> tuple[NodeId, ...]:
        nodes = self.listing.nodes.values() if self.listing else ()
        free = [
            node.id
            for node in nodes
            if node.pool == pool and node.state is NodeState.UP and node.id not in taken
        ]
        if len(free) < self.node_count:
            raise SlurmError(
                "Error creating the reservation: Requested nodes are busy",
                "Note, unless nodes are directly requested a reservation must exist in a "
                "single partition.",
                "If no partition is requested the default partition is assumed.",
            )
        return tuple(sorted(free, key=by_number)[: self.node_count])


def drafted(pairs: tuple[Pair, ...], call: Call, door: Door, *, is_new: bool) -> Draft:
    """Read every key; SlurmError in Slurm's words for what cannot be."""
    draft = Draft(listing=Listing(call, door), zone=call.zone_name)
    for pair in pairs:
        read = KEYS.get(pair.name)
        if read is None:
            raise _none(f"Unknown parameter {pair.text}", is_new=is_new)
        read(_KeyReader(pair=pair, draft=draft, door=door, call=call, is_new=is_new))
    if is_new:
        _complete(draft)
    return draft


def _complete(draft: Draft) -> None:
    if not draft.begins_at:
        raise _none("A start time must be given", is_new=True)
    if not draft.ends_at and draft.duration is None:
        raise _none("An end time or duration must be given", is_new=True)
    if not draft.ends_at:
        draft.ends_at = Instant(draft.begins_at + (draft.duration or 0))
    if draft.ends_at <= draft.begins_at:
        raise _none("Start time cannot be after end time", is_new=True)
    if not (draft.nodes or draft.node_count or draft.gpus):
        text = "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified"
        raise _none(text, is_new=True)
    if not (draft.users or draft.accounts):
        raise _none("Either Users/Groups and/or Accounts must be specified", is_new=True)


def _none(why: str, *, is_new: bool) -> SlurmError:
    if is_new:
        return SlurmError(f"scontrol: error: {why}.  No reservation created.")
    end = "slurm_update error: No error"
    return SlurmError(f"scontrol: error: {why}.  No reservation update.", end)


@dataclass(frozen=True, kw_only=True)
class _KeyReader:
    """One key with all that reading it needs."""

    pair: Pair
    draft: Draft
    door: Door
    call: Call
    is_new: bool

    def wrong(self, why: str) -> SlurmError:
        return _none(why, is_new=self.is_new)

    def invalid(self, text: str) -> SlurmError:
        verb = "creating" if self.is_new else "updating"
        lines = [f"Error {verb} the reservation: {text}"]
        return SlurmError(*lines, *([] if self.is_new else [f"slurm_update error: {text}"]))

    def instant(self, what: str) -> Instant:
        try:
            return times.instant(self.pair.value, self.door.now, self.call.zone)
        except times.BadTimeError as bad:
            place = f"Invalid time specification (pos={bad.place}): {self.pair.value}"
            error = self.wrong(f"Invalid {what} time {self.pair.text}")
            raise SlurmError(place, *error.lines) from bad

    def number(self, what: str) -> int:
        if not self.pair.value.isdecimal():
            raise self.wrong(f"Invalid {what} {self.pair.text}")
        return int(self.pair.value)

    def change(self, **fields: object) -> None:
        """What an update makes of the reservation that is there."""
        self.draft.changes.append(lambda known: replace(known, **fields))


def _name(word: _KeyReader) -> None:
    word.draft.name = word.pair.value


def _start(word: _KeyReader) -> None:
    word.draft.begins_at = word.instant("start")
    begins_at = word.draft.begins_at

    def change(known: Reservation) -> Reservation:
        span = known.ends_at - known.begins_at
        return replace(known, begins_at=begins_at, ends_at=Instant(begins_at + span))

    word.draft.changes.append(change)


def _end(word: _KeyReader) -> None:
    word.draft.ends_at = word.instant("end")
    word.change(ends_at=word.draft.ends_at)


def _duration(word: _KeyReader) -> None:
    pair = word.pair
    try:
        span = times.limit(pair.value)
    except times.BadTimeError as bad:
        raise word.wrong(f"Invalid duration {pair.text}") from bad
    word.draft.duration = ENDLESS if span is None else span
    given = word.draft.duration

    def change(known: Reservation) -> Reservation:
        more = {"+": known.ends_at + given, "-": known.ends_at - given}
        return replace(known, ends_at=Instant(more.get(pair.sign, known.begins_at + given)))

    word.draft.changes.append(change)


def _nodes(word: _KeyReader) -> None:
    known = word.door.queries.nodes.all()
    pair = word.pair
    names = tuple(sorted(known)) if pair.value.upper() == "ALL" else expanded(pair.value)
    if not set(names) <= known.keys():
        raise word.invalid("Invalid node name specified")
    word.draft.nodes = tuple(map(NodeId, names))

    def change(each: Reservation) -> Reservation:
        if not isinstance(each, NodesReserved):
            raise word.invalid("Requested reservation is invalid")
        wanted = listed(each.nodes, replace(pair, value=",".join(names)))
        return replace(each, nodes=tuple(map(NodeId, wanted)))

    word.draft.changes.append(change)


def _node_count(word: _KeyReader) -> None:
    word.draft.node_count = word.number("node count")
    if not word.is_new:
        raise word.wrong("NodeCnt cannot be changed here: name the Nodes")


def _pool(word: _KeyReader) -> None:
    word.draft.pool = PoolName(word.pair.value)
    if word.draft.pool not in word.door.queries.nodes.pools():
        raise word.invalid("Invalid partition name specified")


def _tres(word: _KeyReader) -> None:
    """`TRES=node=2,gres/gpu=4`: nodes, or GPUs of a partition, which Slurm does not have."""
    for each in word.pair.value.split(","):
        kind, _, count = each.partition("=")
        if not count.isdecimal():
            raise word.wrong(f"Invalid TRES {word.pair.text}")
        if kind.lower() == "node":
            word.draft.node_count = int(count)
        elif kind.lower() == "gres/gpu":
            word.draft.gpus = int(count)
        else:
            raise SlurmError(f"scontrol: error: TRES type '{kind}' not supported with reservations")
    if not word.is_new:
        gpu_milli = 1_000 * word.draft.gpus
        word.draft.changes.append(lambda known: _with_gpus(known, gpu_milli, word))


def _with_gpus(known: Reservation, gpu_milli: int, word: _KeyReader) -> Reservation:
    if isinstance(known, NodesReserved) or not gpu_milli:
        raise word.invalid("Requested reservation is invalid")
    return replace(known, gpu_milli=gpu_milli)


def _cores(word: _KeyReader) -> None:
    """Whole nodes only: as many as have so many cores."""
    cores = word.number("core count")
    nodes = word.door.queries.nodes.all().values()
    most = max((node.cpu_milli // 1_000 for node in nodes), default=1)
    word.draft.node_count = ceil(cores / max(1, most))
    word.draft.warnings += "scontrol: warning: CoreCnt: whole nodes are reserved by Muster\n"


def _users(word: _KeyReader) -> None:
    names = [each for each in word.pair.value.split(",") if each]
    known = word.door.queries.site().users
    if any(each not in known and not is_user(each) for each in names):
        raise word.invalid("Invalid user id")
    word.draft.users = tuple(names)
    pair = word.pair
    word.draft.changes.append(
        lambda each: replace(each, for_users=tuple(map(UserName, listed(each.for_users, pair))))
    )


def _accounts(word: _KeyReader) -> None:
    names = tuple(each for each in word.pair.value.split(",") if each)
    if len(names) > 1 or word.pair.sign:
        raise word.wrong("Muster reserves for one account: name the one above them")
    queues = word.door.queries.site().queues
    if any(each not in queues for each in names):
        raise word.invalid("Invalid account or account/partition combination specified")
    word.draft.accounts = names
    word.change(for_queue=QueuePath(names[0]) if names else None)


def _flags(word: _KeyReader) -> None:
    given = [each.upper() for each in word.pair.value.split(",") if each]
    for each in given:
        if each in REFUSED_FLAGS:
            raise word.wrong(f"Flag {each} is not supported by Muster")
        if each in IGNORED_FLAGS:
            word.draft.warnings += f"scontrol: warning: flag {each} is ignored by Muster\n"
        elif each not in KNOWN_FLAGS:
            raise word.wrong(f"Error parsing flags {word.pair.value}")
    word.draft.flags = frozenset(given)
    if len(word.draft.flags & COMING_BACK.keys()) > 1:
        raise word.wrong(f"A reservation comes back in one way, not as {word.pair.value}")
    # An update adds flags, whether a `+` is written or not.
    pair = replace(word.pair, value=",".join(given), sign=word.pair.sign or "+")
    zone = word.draft.zone
    word.draft.changes.append(lambda known: _reflagged(known, pair, zone))


def _reflagged(known: Reservation, pair: Pair, zone: str) -> Reservation:
    given, old = set(pair.value.split(",")), flags_of(known)
    if pair.sign == "+" and given & COMING_BACK.keys():
        old = tuple(each for each in old if each not in COMING_BACK)
    return flagged(known, frozenset(listed(old, pair)), zone)


def _unsupported(word: _KeyReader) -> None:
    name = word.pair.text.partition("=")[0].rstrip("+-")
    raise word.wrong(f"{name} is not supported by Muster")


KEYS: dict[str, Callable[[_KeyReader], None]] = {
    "reservation": _name,
    "reservationname": _name,
    "starttime": _start,
    "endtime": _end,
    "duration": _duration,
    "nodes": _nodes,
    "nodecnt": _node_count,
    "nodecount": _node_count,
    "corecnt": _cores,
    "partition": _pool,
    "partitionname": _pool,
    "tres": _tres,
    "users": _users,
    "user": _users,
    "accounts": _accounts,
    "account": _accounts,
    "flags": _flags,
    "groups": _unsupported,
    "features": _unsupported,
    "burstbuffer": _unsupported,
    "licenses": _unsupported,
    "watts": _unsupported,
    "maxstartdelay": _unsupported,
    "skip": _unsupported,
}
