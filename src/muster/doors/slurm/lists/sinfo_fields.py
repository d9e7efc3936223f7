"""The columns of sinfo: by letter for `-o`, by name for `-O`."""

from collections.abc import Callable

from muster.doors.slurm.call import VERSION
from muster.doors.slurm.control.partitions import state_of
from muster.doors.slurm.lists import node_rows
from muster.doors.slurm.lists.node_rows import NodeGroup, NodeRow
from muster.doors.slurm.lists.preemption import preempt_mode
from muster.doors.slurm.words import times
from muster.doors.slurm.words.formats import Field, by_name
from muster.doors.slurm.words.users import uid_of

Get = Callable[[NodeGroup], str]


def _constant(text: str) -> Get:
    return lambda _: text


def _of_first(get: Callable[[NodeRow], str], otherwise: str = "(null)") -> Get:
    return lambda group: get(group.rows[0]) if group.rows else otherwise


def _reason_at(group: NodeGroup) -> str:
    at = group.rows[0].node.drained_at if group.rows else None
    return "Unknown" if at is None else times.instant_text(at, zone=group.listing.zone)


def _reason_by(group: NodeGroup) -> str:
    return (group.rows[0].node.drained_by if group.rows else None) or "Unknown"


def _reason_by_whom(group: NodeGroup) -> str:
    user = _reason_by(group)
    return user if user == "Unknown" else f"{user}({uid_of(user)})"


def _state(group: NodeGroup) -> str:
    return node_rows.state_text(group, short=False)


def _held(group: NodeGroup) -> str:
    return node_rows.least(group, lambda row: row.used.memory_mib)


AVAILABLE = {"UP": "up", "DOWN": "down", "DRAIN": "drain", "INACTIVE": "inactive"}

LETTERS: dict[str, Field[NodeGroup]] = {
    "a": Field(header="AVAIL", get=lambda g: AVAILABLE[state_of(g.pool)]),
    "A": Field(header="NODES(A/I)", get=lambda g: node_rows.node_states(g, all_four=False)),
    "b": Field(header="ACTIVE_FEATURES", get=_of_first(node_rows.features)),
    "B": Field(header="MAX_CPUS_PER_NODE", get=_constant("UNLIMITED")),
    "c": Field(header="CPUS", get=lambda g: node_rows.least(g, lambda row: row.cpus)),
    "C": Field(header="CPUS(A/I/O/T)", get=node_rows.cpu_states),
    "d": Field(header="TMP_DISK", get=_constant("0")),
    "D": Field(header="NODES", get=lambda g: str(len(g.rows))),
    "e": Field(
        header="FREE_MEM",
        get=lambda g: node_rows.least(
            g, lambda row: max(0, row.node.memory_mib - row.used.memory_mib)
        ),
    ),
    "E": Field(
        header="REASON",
        get=lambda group: (group.rows[0].node.reason if group.rows else "") or "none",
    ),
    "f": Field(header="AVAIL_FEATURES", get=_of_first(node_rows.features)),
    "F": Field(header="NODES(A/I/O/T)", get=node_rows.node_states),
    "g": Field(header="GROUPS", get=lambda group: ",".join(group.pool.groups) or "all"),
    "G": Field(header="GRES", get=_of_first(node_rows.gres)),
    "h": Field(header="OVERSUBSCRIBE", get=_constant("NO")),
    "H": Field(header="TIMESTAMP", get=_reason_at),
    "I": Field(header="PRIO_JOB_FACTOR", get=_constant("1")),
    "l": Field(header="TIMELIMIT", get=node_rows.limit_text),
    "L": Field(header="DEFAULTTIME", get=lambda g: node_rows.limit_text(g, default=True)),
    "m": Field(header="MEMORY", get=lambda g: node_rows.least(g, lambda row: row.node.memory_mib)),
    "M": Field(header="PREEMPT_MODE", get=lambda g: preempt_mode(g.listing.site)),
    "n": Field(header="HOSTNAMES", get=node_rows.node_list),
    "N": Field(header="NODELIST", get=node_rows.node_list),
    "o": Field(header="NODE_ADDR", get=node_rows.node_list),
    "O": Field(header="CPU_LOAD", get=_constant("N/A")),
    "p": Field(header="PRIO_TIER", get=_constant("1")),
    "P": Field(header="PARTITION", get=node_rows.partition_text),
    "r": Field(header="ROOT", get=_constant("no")),
    "R": Field(header="PARTITION", get=lambda g: node_rows.partition_text(g, star=False)),
    "s": Field(header="JOB_SIZE", get=_constant("1-infinite")),
    "S": Field(header="ALLOCNODES", get=_constant("all")),
    "t": Field(header="STATE", get=lambda g: node_rows.state_text(g, short=True)),
    "T": Field(header="STATE", get=_state),
    "u": Field(header="USER", get=_reason_by),
    "U": Field(header="USER", get=_reason_by_whom),
    "v": Field(header="VERSION", get=_constant(VERSION.rpartition(" ")[2])),
    "V": Field(header="CLUSTER", get=_constant("N/A")),
    "w": Field(header="WEIGHT", get=_constant("1")),
    "X": Field(header="SOCKETS", get=_constant("1")),
    "Y": Field(header="CORES", get=lambda g: node_rows.least(g, lambda row: row.cpus)),
    "z": Field(header="S:C:T", get=lambda g: f"1:{node_rows.least(g, lambda row: row.cpus)}:1"),
    "Z": Field(header="THREADS", get=_constant("1")),
}

OF_ONE_NODE = frozenset("bEfGHtTuU")
"""Letters of which nodes in one row must have the same."""

_BY_LETTER = {
    "AllocNodes": "S",
    "Available": "a",
    "Cluster": "V",
    "Cores": "Y",
    "CPUs": "c",
    "CPUsLoad": "O",
    "CPUsState": "C",
    "DefaultTime": "L",
    "Disk": "d",
    "Features": "f",
    "features_act": "b",
    "FreeMem": "e",
    "Gres": "G",
    "Groups": "g",
    "MaxCPUsPerNode": "B",
    "Memory": "m",
    "NodeAddr": "o",
    "NodeAI": "A",
    "NodeAIOT": "F",
    "NodeHost": "n",
    "NodeList": "N",
    "Nodes": "D",
    "OverSubscribe": "h",
    "Partition": "P",
    "PartitionName": "R",
    "PreemptMode": "M",
    "PriorityJobFactor": "I",
    "PriorityTier": "p",
    "Reason": "E",
    "Root": "r",
    "Size": "s",
    "SocketCoreThread": "z",
    "Sockets": "X",
    "StateCompact": "t",
    "StateLong": "T",
    "Threads": "Z",
    "Time": "l",
    "TimeStamp": "H",
    "User": "u",
    "UserLong": "U",
    "Version": "v",
    "Weight": "w",
}

NAMES: dict[str, Field[NodeGroup]] = by_name(
    {name: LETTERS[letter] for name, letter in _BY_LETTER.items()}
    | {
        "GresUsed": Field(header="GRES_USED", get=_of_first(node_rows.gres_used)),
        "Port": Field(header="PORT", get=_constant("0")),
        "StateComplete": Field(header="STATECOMPLETE", get=_state),
        "AllocMem": Field(header="ALLOCMEM", get=_held),
        "Comment": Field(header="COMMENT", get=_constant("(null)")),
        "Extra": Field(header="EXTRA", get=_constant("(null)")),
    }
)

NAMES_OF_ONE_NODE = frozenset(
    name.lower() for name, letter in _BY_LETTER.items() if letter in OF_ONE_NODE
) | {"gresused", "allocmem", "freemem", "statecomplete"}
