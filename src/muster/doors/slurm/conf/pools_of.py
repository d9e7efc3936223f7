"""Partitions as pools; those that share their nodes with others, as job classes. Pure.

A node is in one pool. A partition over nodes that others have too is another set of rules for the
same machines, and that is what a job class is.
"""

from collections.abc import Callable, Iterable, Mapping

from muster.doors.slurm.conf.found import Notes
from muster.doors.slurm.conf.lines import ConfLine, defaults_applied
from muster.doors.slurm.conf.policy_of import mode_of, span, whole
from muster.doors.slurm.words.hostlist import expanded
from muster.model.cluster import Pool
from muster.model.queue import JobClass, PreemptMode
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    PoolName,
    QueuePath,
    UserName,
    Value,
    replace,
)

CLUSTER = ClusterName("local")
ENDLESS = Duration(0)

KNOWN = frozenset(
    "partitionname nodes maxtime timelimit defaulttime allowaccounts allowqos allowgroups "
    "allowusers denyaccounts denyqos prioritytier priority preemptmode default state".split()
)
NEUTRAL = frozenset({"no", "none", "0", "unlimited", "off"})


class Partition(Value):
    """One partition, with its nodes by name."""

    name: str
    nodes: tuple[str, ...]
    fields: Mapping[str, str]


class Sorted(Value):
    """Partitions that have nodes of their own, and those that only share others'."""

    own: tuple[Partition, ...]
    over: tuple[Partition, ...]
    pool_of: Mapping[str, PoolName]


def partitions_of(lines: Iterable[ConfLine], nodes: tuple[str, ...]) -> tuple[Partition, ...]:
    """All partitions; `Nodes=ALL` has every node."""
    found: list[Partition] = []
    for line in defaults_applied(list(lines), "partitionname"):
        fields = dict(line.fields)
        given = fields.get("nodes", "")
        names = nodes if given.upper() == "ALL" else expanded(given)
        found.extend(
            Partition(name=name, nodes=names, fields=fields)
            for name in expanded(fields["partitionname"])
        )
    return tuple(found)


def sorted_out(partitions: tuple[Partition, ...], notes: Notes) -> Sorted:
    """Large partitions first: who finds all of its nodes taken has none of its own."""
    by_size = sorted(partitions, key=lambda each: (-len(each.nodes), partitions.index(each)))
    pool_of: dict[str, PoolName] = {}
    own: list[Partition] = []
    over: list[Partition] = []
    for each in by_size:
        free = [name for name in each.nodes if name not in pool_of]
        if each.nodes and not free:
            over.append(each)
            continue
        if len(free) < len(each.nodes):
            notes(
                f"PartitionName={each.name}",
                f"{len(each.nodes) - len(free)} of its nodes are in other pools: a node is in one",
            )
        own.append(each)
        pool_of |= dict.fromkeys(free, PoolName(each.name))
    return Sorted(own=tuple(own), over=tuple(over), pool_of=pool_of)


class Guests(Value):
    """What lists of guests are read with: accounts by name, and the classes."""

    queues: Mapping[str, QueuePath]
    classes: frozenset[str]


def pool_from(partition: Partition, guests: Guests, levels: tuple[str, ...], notes: Notes) -> Pool:
    """The pool of a partition that has nodes of its own."""
    fields, about = partition.fields, f"PartitionName={partition.name}"
    _note_the_rest(partition, notes)
    longest = fields.get("maxtime") or fields.get("timelimit")
    return Pool(
        name=PoolName(partition.name),
        cluster=CLUSTER,
        levels=levels,
        default_time=span(fields, "defaulttime", ENDLESS) or None,
        accepts=_state(fields) not in {"DRAIN", "INACTIVE"},
        starts=_state(fields) not in {"DOWN", "INACTIVE"},
        max_time=_limit(longest),
        users=tuple(map(UserName, _words(fields.get("allowusers", "")))),
        groups=tuple(_words(fields.get("allowgroups", ""))),
        queues=_queues(fields, guests, lambda text: notes(about, text)),
        classes=_classes(fields, guests, lambda text: notes(about, text)),
    )


def default_of(partitions: Iterable[Partition]) -> PoolName | None:
    """The pool of jobs that name no partition."""
    chosen = (each for each in partitions if each.fields.get("default", "no").lower() == "yes")
    found = next(chosen, None)
    return None if found is None else PoolName(found.name)


def class_from(partition: Partition, usual: JobClass, notes: Notes) -> JobClass:
    """The class that stands for a partition over other partitions' nodes."""
    fields = partition.fields
    notes(
        f"PartitionName={partition.name}",
        f"has no nodes of its own and became class {partition.name}: "
        f"submit with --qos={partition.name} in place of --partition={partition.name}",
    )
    mode = mode_of(fields.get("preemptmode", ""))
    longest = fields.get("maxtime") or fields.get("timelimit")
    return replace(
        usual,
        name=ClassName(partition.name),
        priority=_tier(fields),
        preemptible=fields.get("preemptmode", "").upper() != "OFF" and usual.preemptible,
        preempt_mode=mode or usual.preempt_mode,
        max_time=_limit(longest),
    )


def tiers_preempt(classes: Iterable[JobClass]) -> tuple[JobClass, ...]:
    """With preempt/partition_prio a higher tier stops the jobs of every lower one."""
    known = tuple(classes)
    return tuple(
        replace(
            each,
            preempts=tuple(
                other.name
                for other in known
                if other.preemptible and other.priority < each.priority
            ),
        )
        for each in known
    )


def default_mode(options: Mapping[str, str]) -> PreemptMode | None:
    """PreemptMode of the whole cluster; None: OFF."""
    return mode_of(options.get("preemptmode", "OFF"))


def _state(fields: Mapping[str, str]) -> str:
    return fields.get("state", "UP").upper()


def _tier(fields: Mapping[str, str]) -> int:
    return whole(fields, "prioritytier", whole(fields, "priority", 1))


def _limit(text: str | None) -> Duration | None:
    if text is None or text.lower() in {"infinite", "unlimited", "none", "-1"}:
        return None
    return span({"MaxTime": text}, "MaxTime", ENDLESS)


def _queues(
    fields: Mapping[str, str], guests: Guests, note: Callable[[str], None]
) -> tuple[QueuePath, ...]:
    allowed = _known(_words(fields.get("allowaccounts", "")), guests.queues, "account", note)
    denied = _words(fields.get("denyaccounts", ""))
    if not allowed and denied:
        allowed = [name for name in guests.queues if name not in denied]
    return tuple(guests.queues[name] for name in allowed)


def _classes(
    fields: Mapping[str, str], guests: Guests, note: Callable[[str], None]
) -> tuple[ClassName, ...]:
    allowed = _known(_words(fields.get("allowqos", "")), guests.classes, "QOS", note)
    denied = _words(fields.get("denyqos", ""))
    if not allowed and denied:
        allowed = sorted(guests.classes - set(denied))
    return tuple(map(ClassName, allowed))


def _known(
    names: list[str], known: Iterable[str], what: str, note: Callable[[str], None]
) -> list[str]:
    there = set(known)
    for name in names:
        if name not in there:
            note(f"there is no {what} {name}: import the accounts with `sacctmgr dump` as well")
    return [name for name in names if name in there]


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    return [word for word in words if word and word.upper() != "ALL"]


def _note_the_rest(partition: Partition, notes: Notes) -> None:
    about = f"PartitionName={partition.name}"
    fields = partition.fields
    if _tier(fields) != 1:
        notes(about, "PriorityTier: a pool has no priority; give a class one")
    for name in sorted(fields.keys() - KNOWN):
        if fields[name].lower() not in NEUTRAL:
            notes(about, f"{name}={fields[name]} has no counterpart")
