"""Jobs, nodes and partitions as `scontrol show` writes them: lines of `Name=value`."""

import platform
from collections import Counter

from muster.doors.slurm.call import VERSION
from muster.doors.slurm.control.partitions import state_of
from muster.doors.slurm.lists import node_rows
from muster.doors.slurm.lists.node_rows import NodeGroup, NodeRow
from muster.doors.slurm.lists.preemption import preempt_mode
from muster.doors.slurm.words import times
from muster.doors.slurm.words.sizes import memory_text
from muster.model.cluster import NodeState

BASE_STATES = {"drained": "IDLE", "draining": "MIXED", "reserved": "IDLE+RESERVED"} | {
    "maint": "IDLE+MAINTENANCE+RESERVED"
}


def node_lines(row: NodeRow, *, details: bool) -> list[str]:
    """One node."""
    node = row.node
    used = ["GresDrain=N/A", f"GresUsed={node_rows.gres_used(row)}"] if details else []
    state = BASE_STATES.get(row.state, row.state.upper())
    state += "+DRAIN" if node.state is NodeState.DRAINING else ""
    return [
        f"NodeName={node.id} Arch={platform.machine()} CoresPerSocket={row.cpus} ",
        f"CPUAlloc={row.cpus_used} CPUEfctv={row.cpus} CPUTot={row.cpus} CPULoad=N/A",
        f"AvailableFeatures={node_rows.features(row)}",
        f"ActiveFeatures={node_rows.features(row)}",
        f"Gres={node_rows.gres(row)}",
        *used,
        f"NodeAddr={node.id} NodeHostName={node.id} Version={VERSION.rpartition(' ')[2]}",
        f"OS={node_rows.system()} ",
        (
            f"RealMemory={node.memory_mib} AllocMem={row.used.memory_mib} "
            f"FreeMem={max(0, node.memory_mib - row.used.memory_mib)} Sockets=1 Boards=1"
        ),
        f"State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={node.pool} ",
        "BootTime=None SlurmdStartTime=None",
        "LastBusyTime=Unknown",
        f"CfgTRES={node_rows.tres(row)}",
        f"AllocTRES={node_rows.tres_used(row)}",
        "CapWatts=n/a",
        "CurrentWatts=0 AveWatts=0",
        "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
        *([f"Reason={node.reason}{_told_by(row)}"] if node.reason else []),
    ]


def _told_by(row: NodeRow) -> str:
    by, at = row.node.drained_by, row.node.drained_at
    if by is None or at is None:
        return ""
    return f" [{by}@{times.instant_text(at, row.listing.time_form, row.listing.zone)}]"


def partition_lines(group: NodeGroup) -> list[str]:
    """One partition: a pool."""
    pool = group.pool
    is_default = "YES" if pool.name == group.listing.default_pool else "NO"
    default = "NONE" if pool.default_time is None else times.long_text(pool.default_time)
    most = "UNLIMITED" if pool.max_time is None else times.long_text(pool.max_time)
    cpus = sum(row.cpus for row in group.rows)
    memory = sum(row.node.memory_mib for row in group.rows)
    gpus = sum((node_rows.gpu_types(row) for row in group.rows), Counter[str]())
    total = [f"cpu={cpus},mem={memory_text(memory)},node={len(group.rows)},billing={cpus}"]
    accounts, classes = ",".join(pool.queues) or "ALL", ",".join(pool.classes) or "ALL"
    groups = ",".join(pool.groups) or "ALL"
    users = f" AllowUsers={','.join(pool.users)}" if pool.users else ""
    return [
        f"PartitionName={pool.name}",
        f"AllowGroups={groups} AllowAccounts={accounts} AllowQos={classes}{users}",
        f"AllocNodes=ALL Default={is_default} QoS=N/A",
        f"DefaultTime={default} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={most} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={node_rows.node_list(group) or '(null)'}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        f"OverTimeLimit=NONE PreemptMode={preempt_mode(group.listing.site)}",
        (
            f"State={state_of(pool)} TotalCPUs={cpus} TotalNodes={len(group.rows)} "
            "SelectTypeParameters=NONE"
        ),
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES={','.join([*total, *node_rows.gpu_tres(gpus)])}",
    ]


def block(lines: list[str], *, oneliner: bool, end: str = " ") -> str:
    """The lines as a paragraph with indented lines, or as one line, which may end in a space."""
    if oneliner:
        return " ".join(line.lstrip() for line in lines if line.strip()) + f"{end}\n"
    first, *others = lines
    return "\n".join([first, *(f"   {line}" for line in others), "", ""])
