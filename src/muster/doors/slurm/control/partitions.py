"""Partitions as scontrol changes them: the pools of the site, as far as pools have the same."""

from collections.abc import Callable

from muster.doors.slurm.call import Door, Reply
from muster.doors.slurm.permissions import STRANGER, change_rules, demand_admin
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.pairs import Pair, listed
from muster.model.cluster import Pool
from muster.model.site import Site
from muster.model.value import ClassName, Duration, PoolName, QueuePath, UserName, replace

Change = Callable[[Pool], Pool]

STATES = {"UP": (True, True), "DOWN": (True, False), "DRAIN": (False, True)} | {
    "INACTIVE": (False, False)
}
"""What a state means: are jobs accepted, and do they start?"""


def state_of(pool: Pool) -> str:
    """UP, DOWN, DRAIN or INACTIVE."""
    both = (pool.accepts, pool.starts)
    return next(name for name, means in STATES.items() if means == both)


def updated(name: str, pairs: tuple[Pair, ...], door: Door) -> Reply:
    """`update PartitionName=gpu State=DOWN MaxTime=1-0`."""
    if not pairs:
        raise SlurmError("scontrol: error: No changes specified")
    pool = PoolName(name)
    changes = _changes(pairs, door)

    def change(site: Site) -> Site:
        known = site.pools.get(pool)
        if known is None:
            raise SlurmError("slurm_update error: Invalid partition name specified")
        return _with(site, pool, changes.applied(known), is_default=changes.is_default)

    change_rules(change, door, "slurm_update error")
    return Reply(err=changes.warnings)


def created(name: str, pairs: tuple[Pair, ...], door: Door) -> Reply:
    """A pool beside the others. Nodes belong to one pool each, and say themselves to which."""
    pool = PoolName(name)
    if any(pair.name == "nodes" and pair.value for pair in pairs):
        raise SlurmError(
            "Error creating the partition: Requested operation not supported on this system",
            "scontrol: error: a node is in one pool: give it another with `muster up --pool`",
        )
    changes = _changes(pairs, door)

    def change(site: Site) -> Site:
        if pool in site.pools or not name:
            raise SlurmError("Error creating the partition: Invalid partition name specified")
        cluster = min(door.queries.nodes.clusters())
        new = Pool(name=pool, cluster=cluster)
        return _with(site, pool, changes.applied(new), is_default=changes.is_default)

    change_rules(change, door, "Error creating the partition")
    return Reply(err=changes.warnings)


def deleted(name: str, word: str, door: Door) -> Reply:
    """A pool that has no nodes and for which no job waits."""
    begin = f"delete_partition {word}"
    demand_admin(door, f"{begin}: {STRANGER}")
    pool = PoolName(name)

    def change(site: Site) -> Site:
        if pool not in site.pools:
            raise SlurmError(f"{begin}: Invalid partition name specified")
        if any(node.pool == pool for node in door.queries.nodes.all().values()):
            raise SlurmError(f"{begin}: Partition is in use")
        pools = {each: value for each, value in site.pools.items() if each != pool}
        default = None if site.default_pool == pool else site.default_pool
        return replace(site, pools=pools, default_pool=default)

    change_rules(change, door, begin)
    return Reply()


def _with(site: Site, name: PoolName, pool: Pool, *, is_default: bool | None) -> Site:
    default = site.default_pool
    if is_default is not None:
        default = name if is_default else (None if default == name else default)
    return replace(site, pools={**site.pools, name: pool}, default_pool=default)


class _PoolChanges:
    """What is made of a pool, key by key."""

    def __init__(self) -> None:
        self.made: list[Change] = []
        self.warnings = ""
        self.is_default: bool | None = None

    def applied(self, pool: Pool) -> Pool:
        for each in self.made:
            pool = each(pool)
        return pool


def _changes(pairs: tuple[Pair, ...], door: Door) -> _PoolChanges:
    found = _PoolChanges()
    for pair in pairs:
        name = pair.text.partition("=")[0]
        if pair.name in IGNORED:
            found.warnings += f"scontrol: warning: {name} is ignored by Muster\n"
        elif pair.name == "default":
            found.is_default = _truth(pair)
        elif pair.name == "nodes":
            found.made.append(_nodes(pair, door))
        elif (make := KEYS.get(pair.name)) is not None:
            found.made.append(make(pair))
        else:
            raise SlurmError(
                f"scontrol: error: Update of this parameter is not supported: {pair.text}",
                "",
                "scontrol: error: Request aborted",
                "slurm_update error: No error",
            )
    return found


def _nodes(pair: Pair, door: Door) -> Change:
    """Only as it is: nodes say themselves to which pool they belong."""
    known = door.queries.nodes.all()
    names = expanded(pair.value)
    if any(name not in known for name in names):
        raise SlurmError("slurm_update error: Invalid node name specified")

    def change(pool: Pool) -> Pool:
        there = {node.id for node in known.values() if node.pool == pool.name}
        if there != set(names):
            raise SlurmError("slurm_update error: Requested operation not supported on this system")
        return pool

    return change


def _state(pair: Pair) -> Change:
    means = STATES.get(pair.value.upper())
    if means is None:
        raise SlurmError(
            f"scontrol: error: Invalid input: {pair.text}",
            "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE",
            "slurm_update error: No error",
        )
    accepts, starts = means
    return lambda pool: replace(pool, accepts=accepts, starts=starts)


def _span(pair: Pair) -> Duration | None:
    if pair.value.upper() in {"NONE", "DEFAULT"}:
        return None
    try:
        return times.limit(pair.value)
    except times.BadTimeError as bad:
        raise SlurmError(
            f"scontrol: error: Invalid input {pair.text}", "slurm_update error: No error"
        ) from bad


def _max_time(pair: Pair) -> Change:
    span = _span(pair)
    return lambda pool: replace(pool, max_time=span)


def _default_time(pair: Pair) -> Change:
    span = _span(pair)
    return lambda pool: replace(pool, default_time=span)


def _names(pair: Pair, old: tuple[str, ...]) -> tuple[str, ...]:
    """`ALL` and an empty value allow all users."""
    return () if pair.value.upper() in {"ALL", ""} and not pair.sign else listed(old, pair)


def _accounts(pair: Pair) -> Change:
    return lambda pool: replace(pool, queues=tuple(map(QueuePath, _names(pair, pool.queues))))


def _qos(pair: Pair) -> Change:
    return lambda pool: replace(pool, classes=tuple(map(ClassName, _names(pair, pool.classes))))


def _users(pair: Pair) -> Change:
    return lambda pool: replace(pool, users=tuple(map(UserName, _names(pair, pool.users))))


def _groups(pair: Pair) -> Change:
    return lambda pool: replace(pool, groups=_names(pair, pool.groups))


def _truth(pair: Pair) -> bool:
    if pair.value.upper() not in {"YES", "NO", "1", "0"}:
        raise SlurmError(
            f"scontrol: error: Invalid input: {pair.text}",
            "scontrol: error: Acceptable Default values are YES and NO",
            "slurm_update error: No error",
        )
    return pair.value.upper() in {"YES", "1"}


KEYS: dict[str, Callable[[Pair], Change]] = {
    "allowaccounts": _accounts,
    "allowgroups": _groups,
    "allowqos": _qos,
    "allowusers": _users,
    "defaulttime": _default_time,
    "maxtime": _max_time,
    "state": _state,
}
"""Honoured. AllowUsers is not in Slurm: its sites ask for it."""

IGNORED = frozenset(
    """
    allocnodes alternate cpubind defmempercpu defmempernode defmempergpu disablerootjobs
    exclusiveuser gracetime hidden jobdefaults lln maxcpuspernode maxmempercpu maxmempernode
    maxnodes minnodes oversubscribe overtimelimit powerdownonidle preemptmode priority
    priorityjobfactor prioritytier qos reqresv resumetimeout rootonly shared suspendtime
    suspendtimeout tresbillingweights
    """.split()
)
"""Slurm accepts them; here classes and queues have what they are about, which is said aloud."""
