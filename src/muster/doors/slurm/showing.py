"""Jobs, nodes and partitions as `scontrol show` writes them: lines of `Name=value`."""

import platform
from math import ceil

from muster.doors.slurm import jobs, machines, states, times
from muster.doors.slurm.call import VERSION
from muster.doors.slurm.hostlist import compressed, ranges_text
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.machines import Group, NodeRow
from muster.doors.slurm.node_json import tres
from muster.doors.slurm.partitioning import state_of
from muster.doors.slurm.scene import group_of, uid_of
from muster.doors.slurm.sizes import memory_text
from muster.doors.slurm.states import State
from muster.model.cluster import NodeState

BASE_STATES = {"drained": "IDLE", "draining": "MIXED", "reserved": "IDLE+RESERVED"} | {
    "maint": "IDLE+MAINTENANCE+RESERVED"
}


def job_lines(row: JobRow, *, details: bool) -> list[str]:
    """One job, in Slurm's order."""
    return [
        *_who(row),
        *_when(row, details=details),
        *_where(row, details=details),
        *_files(row),
    ]


def node_lines(row: NodeRow, *, details: bool) -> list[str]:
    """One node."""
    node = row.node
    used = ["GresDrain=N/A", f"GresUsed={machines.gres_used(row)}"] if details else []
    state = BASE_STATES.get(row.state, row.state.upper())
    state += "+DRAIN" if node.state is NodeState.DRAINING else ""
    total = tres(row.cpus, node.memory_mib, len(node.devices))
    held = tres(row.cpus_used, row.used.memory_mib, ceil(row.used.gpu_milli / 1_000))
    release = f"{platform.system()} {platform.release()}"
    return [
        f"NodeName={node.id} Arch={platform.machine()} CoresPerSocket={row.cpus} ",
        f"CPUAlloc={row.cpus_used} CPUEfctv={row.cpus} CPUTot={row.cpus} CPULoad=N/A",
        f"AvailableFeatures={machines.features(row)}",
        f"ActiveFeatures={machines.features(row)}",
        f"Gres={machines.gres(row)}",
        *used,
        f"NodeAddr={node.id} NodeHostName={node.id} Version={VERSION.rpartition(' ')[2]}",
        f"OS={release} ",
        (
            f"RealMemory={node.memory_mib} AllocMem={row.used.memory_mib} "
            f"FreeMem={max(0, node.memory_mib - row.used.memory_mib)} Sockets=1 Boards=1"
        ),
        f"State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={node.pool} ",
        "BootTime=None SlurmdStartTime=None",
        "LastBusyTime=Unknown",
        f"CfgTRES={total}",
        f"AllocTRES={held.replace(f',billing={row.cpus_used}', '')}",
        "CapWatts=n/a",
        "CurrentWatts=0 AveWatts=0",
        "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
        *([f"Reason={node.reason}"] if node.reason else []),
    ]


def partition_lines(group: Group) -> list[str]:
    """One partition: a pool."""
    pool = group.pool
    is_default = "YES" if pool.name == group.scene.default_pool else "NO"
    default = "NONE" if pool.default_time is None else times.long_text(pool.default_time)
    most = "UNLIMITED" if pool.max_time is None else times.long_text(pool.max_time)
    cpus = sum(row.cpus for row in group.rows)
    memory = sum(row.node.memory_mib for row in group.rows)
    gpus = sum(len(row.node.devices) for row in group.rows)
    total = f"cpu={cpus},mem={memory_text(memory)},node={len(group.rows)},billing={cpus}"
    accounts, classes = ",".join(pool.queues) or "ALL", ",".join(pool.classes) or "ALL"
    users = f" AllowUsers={','.join(pool.users)}" if pool.users else ""
    return [
        f"PartitionName={pool.name}",
        f"AllowGroups=ALL AllowAccounts={accounts} AllowQos={classes}{users}",
        f"AllocNodes=ALL Default={is_default} QoS=N/A",
        f"DefaultTime={default} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={most} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={machines.node_list(group) or '(null)'}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=REQUEUE",
        (
            f"State={state_of(pool)} TotalCPUs={cpus} TotalNodes={len(group.rows)} "
            "SelectTypeParameters=NONE"
        ),
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES={total}{f',gres/gpu={gpus}' if gpus else ''}",
    ]


def block(lines: list[str], *, oneliner: bool, end: str = " ") -> str:
    """The lines as a paragraph with indented lines, or as one line, which may end in a space."""
    if oneliner:
        return " ".join(line.lstrip() for line in lines if line.strip()) + f"{end}\n"
    first, *others = lines
    return "\n".join([first, *(f"   {line}" for line in others), "", ""])


def _who(row: JobRow) -> list[str]:
    job, spec = row.job, row.job.spec
    group, gid = group_of(spec.user)
    part = spec.array
    array = ""
    if part is not None:
        most = f" ArrayTaskThrottle={part.at_once}" if part.at_once else ""
        array = f" ArrayJobId={part.array} ArrayTaskId={jobs.index_text(row)}{most}"
    het = ""
    if row.component is not None:
        het = f" HetJobId={job.id} HetJobOffset={row.component}"
    return [
        f"JobId={job.id}{array}{het} JobName={spec.name}",
        *([f"HetJobIdSet={job.id}"] if het else []),
        f"UserId={spec.user}({uid_of(spec.user)}) GroupId={group}({gid}) MCS_label=N/A",
        (
            f"Priority={jobs.priority(row)} Nice={-spec.priority} "
            f"Account={spec.queue} QOS={spec.job_class}"
        ),
        (
            f"JobState={row.state.name} Reason={jobs.reason(row)} "
            f"Dependency={jobs.dependency_text(row)}"
        ),
        (
            f"Requeue={int(spec.retry.requeue)} Restarts={max(0, job.attempt - 1)} BatchFlag=1 "
            f"Reboot=0 ExitCode={states.exit_code(job) if row.state not in states.LIVE else '0:0'}"
        ),
    ]


def _when(row: JobRow, *, details: bool) -> list[str]:
    spec, job = row.job.spec, row.job
    limit = "UNLIMITED" if spec.time_limit is None else times.long_text(spec.time_limit)
    begun = jobs.at_text(row, jobs.expected_at(row), "Unknown")
    preempt = [f"PreemptEligibleTime={begun} PreemptTime=None"] if jobs.nodes(row) else []
    return [
        *(["DerivedExitCode=0:0"] if details else []),
        f"RunTime={times.long_text(jobs.elapsed(row))} TimeLimit={limit} TimeMin=N/A",
        (
            f"SubmitTime={jobs.at_text(row, job.submitted_at)} "
            f"EligibleTime={jobs.at_text(row, job.begin_at or job.submitted_at)}"
        ),
        f"AccrueTime={jobs.at_text(row, job.submitted_at)}",
        (
            f"StartTime={begun} EndTime={jobs.at_text(row, jobs.ends_at(row), 'Unknown')} "
            f"Deadline={jobs.at_text(row, spec.deadline)}"
        ),
        *preempt,
        (
            f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={jobs.at_text(row, row.scene.now)} "
            "Scheduler=Main"
        ),
    ]


def _where(row: JobRow, *, details: bool) -> list[str]:
    spec, there = row.job.spec, jobs.nodes(row)
    where = spec.groups[0].where
    per_task = jobs.cpus_per_task(row)
    per_node = row.label("ntasks-per-node") or "0"
    each = max((group.each.cpu_milli // 1_000 for group in spec.groups), default=1)
    memory = memory_text(jobs.memory_per_node_mib(row))
    features = row.label("features") or "(null)"
    return [
        f"Partition={jobs.partition(row)} AllocNode:Sid=localhost:0",
        (
            f"ReqNodeList={compressed(where.nodes) or '(null)'} "
            f"ExcNodeList={compressed(where.not_nodes) or '(null)'}"
        ),
        f"NodeList={compressed(there) or '(null)'}"
        if row.state is not State.PENDING
        else "NodeList=",
        *([f"BatchHost={there[0]}"] if there else []),
        (
            f"NumNodes={jobs.node_count(row)} NumCPUs={jobs.cpus(row)} "
            f"NumTasks={jobs.task_count(row)} CPUs/Task={per_task} ReqB:S:C:T=0:0:*:*"
        ),
        f"TRES={jobs.tres(row, typed=True)}",
        f"Socks/Node=* NtasksPerN:B:S:C={per_node}:0:*:* CoreSpec=*",
        *(_held(row) if details else []),
        f"MinCPUsNode={max(1, each)} MinMemoryNode={memory} MinTmpDiskNode=0",
        f"Features={features} DelayBoot=00:00:00",
        *([f"Reservation={spec.reservation}"] if spec.reservation else []),
        (
            f"OverSubscribe={'NO' if where.exclusive else 'OK'} Contiguous=0 Licenses=(null) "
            "Network=(null)"
        ),
    ]


def _held(row: JobRow) -> list[str]:
    """Which devices on which node: `-d`."""
    held = row.view.allocation
    if held is None:
        return []
    total = ",".join(f"gpu:{kind}:{many}" for kind, many in sorted(jobs.gpu_types(row).items()))
    found = [f"JOB_GRES={total or '(null)'}"]
    for name in jobs.nodes(row):
        placed = [each for each in held.placements if each.node == name]
        node = row.scene.nodes.get(placed[0].node)
        index = {each.id: (each.index, each.model) for each in node.devices} if node else {}
        devices = [
            index[share.device]
            for each in placed
            for share in each.devices
            if share.device in index
        ]
        gres = ""
        if devices:
            kind = row.scene.gpu_type(devices[0][1])
            numbers = ranges_text(sorted({number for number, _ in devices}))
            gres = f"gpu:{kind}:{len(devices)}(IDX:{numbers})"
        cpus = max(1, sum(each.amount.cpu_milli for each in placed) // 1_000)
        memory = sum(each.amount.memory_mib for each in placed)
        found.append(f"  Nodes={name} CPU_IDs=0-{cpus - 1} Mem={memory} GRES={gres}")
    return found


def _files(row: JobRow) -> list[str]:
    gres = jobs.tres_per_node(row)
    comment = row.label("comment")
    return [
        f"Command={row.label('command') or '(null)'}",
        f"WorkDir={row.launch.workdir or '(null)'}",
        *([f"Comment={comment} "] if comment else []),
        f"StdErr={jobs.output_file(row, stderr=True)}",
        f"StdIn={row.launch.stdin or '/dev/null'}",
        f"StdOut={jobs.output_file(row)}",
        "Power=",
        *([] if gres == "N/A" else [f"TresPerNode={gres}"]),
        "",
    ]
