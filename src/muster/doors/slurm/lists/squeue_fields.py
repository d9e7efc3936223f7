"""The columns of squeue: by letter for `-o`, by name for `-O`."""

from collections.abc import Callable

from muster.doors.slurm.lists import job_facts, jobs
from muster.doors.slurm.lists.job_facts import dependency_text, least_memory_mib, per_gpu
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.words import states, times
from muster.doors.slurm.words.formats import Field, by_name
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.sizes import memory_text
from muster.doors.slurm.words.users import group_of, uid_of

Get = Callable[[JobRow], str]


def _constant(text: str) -> Get:
    return lambda _: text


def _limit(row: JobRow) -> str:
    limit = jobs.time_limit(row)
    return "UNLIMITED" if limit is None else times.short_text(limit)


def _left(row: JobRow) -> str:
    limit = jobs.time_limit(row)
    if limit is None:
        return "UNLIMITED"
    return times.short_text(type(limit)(max(0, limit - jobs.elapsed(row))))


def _first_node(row: JobRow) -> str:
    there = jobs.nodes(row)
    return there[0] if there else "n/a"


LETTERS: dict[str, Field[JobRow]] = {
    "a": Field(header="ACCOUNT", get=lambda row: row.job.spec.queue),
    "A": Field(header="JOBID", get=jobs.plain_id),
    "b": Field(header="TRES_PER_NODE", get=jobs.tres_per_node),
    "B": Field(header="EXEC_HOST", get=_first_node),
    "c": Field(header="MIN_CPUS", get=lambda row: str(jobs.cpus_per_node(row))),
    "C": Field(header="CPUS", get=lambda row: str(jobs.cpus(row))),
    "d": Field(header="MIN_TMP_DISK", get=_constant("0")),
    "D": Field(header="NODES", get=lambda row: str(jobs.node_count(row))),
    "e": Field(header="END_TIME", get=lambda row: jobs.at_text(row, jobs.ends_at(row))),
    "E": Field(header="DEPENDENCY", get=dependency_text),
    "f": Field(header="FEATURES", get=lambda row: row.label("features") or "(null)"),
    "F": Field(header="ARRAY_JOB_ID", get=jobs.array_id),
    "g": Field(header="GROUP", get=lambda row: group_of(row.job.spec.user)[0]),
    "G": Field(header="GROUP", get=lambda row: str(group_of(row.job.spec.user)[1])),
    "h": Field(
        header="OVER_SUBSCRIBE",
        get=lambda row: "NO" if row.job.spec.groups[0].where.exclusive else "OK",
    ),
    "H": Field(header="SOCKETS_PER_NODE", get=_constant("*")),
    "i": Field(header="JOBID", get=jobs.id_text),
    "I": Field(header="CORES_PER_SOCKET", get=_constant("*")),
    "j": Field(header="NAME", get=lambda row: row.job.spec.name),
    "J": Field(header="THREADS_PER_CORE", get=_constant("*")),
    "k": Field(header="COMMENT", get=lambda row: row.label("comment") or "(null)"),
    "K": Field(header="ARRAY_TASK_ID", get=jobs.index_text),
    "l": Field(header="TIME_LIMIT", get=_limit, whole=True),
    "L": Field(header="TIME_LEFT", get=_left, whole=True),
    "m": Field(
        header="MIN_MEMORY",
        get=lambda row: memory_text(least_memory_mib(row), convert=row.listing.convert),
    ),
    "M": Field(header="TIME", get=lambda row: times.short_text(jobs.elapsed(row)), whole=True),
    "n": Field(
        header="REQ_NODES",
        get=lambda row: compressed(row.job.spec.groups[0].where.nodes),
        whole=True,
    ),
    "N": Field(header="NODELIST", get=jobs.node_list, whole=True),
    "o": Field(header="COMMAND", get=lambda row: row.launch.script_line or "(null)"),
    "O": Field(header="CONTIGUOUS", get=_constant("0")),
    "p": Field(header="PRIORITY", get=lambda row: f"{jobs.priority(row) / 2**32:.14f}"),
    "P": Field(header="PARTITION", get=jobs.partition),
    "q": Field(header="QOS", get=lambda row: row.job.spec.job_class),
    "Q": Field(header="PRIORITY", get=lambda row: str(jobs.priority(row))),
    "r": Field(header="REASON", get=jobs.reason),
    "R": Field(header="NODELIST(REASON)", get=jobs.where_or_why, whole=True),
    "S": Field(header="START_TIME", get=lambda row: jobs.at_text(row, jobs.expected_at(row))),
    "t": Field(header="ST", get=lambda row: row.state.value),
    "T": Field(header="STATE", get=lambda row: row.state.name),
    "u": Field(header="USER", get=lambda row: row.job.spec.user),
    "U": Field(header="UID", get=lambda row: str(uid_of(row.job.spec.user))),
    "v": Field(header="RESERVATION", get=lambda row: row.job.spec.reservation or "(null)"),
    "V": Field(header="SUBMIT_TIME", get=lambda row: jobs.at_text(row, row.job.submitted_at)),
    "w": Field(header="WCKEY", get=lambda row: row.label("wckey") or "(null)"),
    "W": Field(header="LICENSES", get=_constant("(null)")),
    "x": Field(
        header="EXC_NODES", get=lambda row: compressed(row.job.spec.groups[0].where.not_nodes)
    ),
    "X": Field(header="CORE_SPEC", get=_constant("N/A")),
    "y": Field(header="NICE", get=lambda row: str(-row.job.spec.priority)),
    "Y": Field(header="SCHEDNODES", get=_constant("(null)"), whole=True),
    "z": Field(header="S:C:T", get=_constant("*:*:*")),
    "Z": Field(header="WORK_DIR", get=lambda row: row.launch.workdir or "(null)"),
}

_SAME_AS_LETTER = {
    "Account": "a",
    "ArrayJobID": "F",
    "ArrayTaskID": "K",
    "BatchHost": "B",
    "Command": "o",
    "Comment": "k",
    "Contiguous": "O",
    "CoreSpec": "X",
    "Dependency": "E",
    "EndTime": "e",
    "Feature": "f",
    "GroupID": "G",
    "GroupName": "g",
    "JobArrayID": "i",
    "JobID": "A",
    "Licenses": "W",
    "MinCpus": "c",
    "MinMemory": "m",
    "MinTmpDisk": "d",
    "Name": "j",
    "Nice": "y",
    "NodeList": "N",
    "NumCPUs": "C",
    "NumNodes": "D",
    "OverSubscribe": "h",
    "Shared": "h",
    "Partition": "P",
    "Priority": "p",
    "PriorityLong": "Q",
    "QOS": "q",
    "Reason": "r",
    "ReasonList": "R",
    "ReqNodes": "n",
    "Reservation": "v",
    "SchedNodes": "Y",
    "SCT": "z",
    "StartTime": "S",
    "State": "T",
    "StateCompact": "t",
    "SubmitTime": "V",
    "TimeLeft": "L",
    "TimeLimit": "l",
    "TimeUsed": "M",
    "UserID": "U",
    "UserName": "u",
    "WCKey": "w",
    "WorkDir": "Z",
    "tres-per-node": "b",
    "Gres": "b",
    "Cores": "I",
    "Sockets": "H",
    "Threads": "J",
}

_ONLY_BY_NAME: dict[str, Field[JobRow]] = {
    "AccrueTime": Field(
        header="ACCRUE_TIME", get=lambda row: jobs.at_text(row, job_facts.accrues_since(row))
    ),
    "Cluster": Field(header="CLUSTER", get=lambda row: row.listing.cluster),
    "cpus-per-task": Field(
        header="CPUS_PER_TASK", get=lambda row: row.label("cpus-per-task") or "1"
    ),
    "Deadline": Field(header="DEADLINE", get=lambda row: jobs.at_text(row, row.job.spec.deadline)),
    "EligibleTime": Field(
        header="ELIGIBLE_TIME", get=lambda row: jobs.at_text(row, job_facts.eligible_at(row))
    ),
    "exit_code": Field(header="EXIT_CODE", get=lambda row: str(states.exit_status(row.job))),
    "LastSchedEval": Field(
        header="LAST_SCHED_EVAL", get=lambda row: jobs.at_text(row, row.listing.now)
    ),
    "MaxCPUs": Field(header="MAX_CPUS", get=lambda row: str(jobs.cpus(row))),
    "MaxNodes": Field(header="MAX_NODES", get=lambda row: str(jobs.most_nodes(row))),
    "mem-per-tres": Field(header="MEM_PER_TRES", get=lambda row: per_gpu(row) or "N/A"),
    "NTPerNode": Field(
        header="NTASKS_PER_NODE", get=lambda row: row.label("ntasks-per-node") or "0"
    ),
    "NumTasks": Field(header="TASKS", get=lambda row: str(jobs.task_count(row))),
    "PendingTime": Field(
        header="PENDING_TIME",
        get=lambda row: str(
            max(0, (jobs.started_at(row) or row.listing.now) - row.job.submitted_at) // 1_000
        ),
    ),
    "Requeue": Field(header="REQUEUE", get=lambda row: str(int(row.job.spec.retry.requeue))),
    "RestartCnt": Field(header="RESTART_COUNT", get=lambda row: str(max(0, row.job.attempt - 1))),
    "STDERR": Field(header="STDERR", get=lambda row: job_facts.output_file(row, stderr=True)),
    "STDIN": Field(header="STDIN", get=job_facts.input_file),
    "STDOUT": Field(header="STDOUT", get=job_facts.output_file),
    "tres-alloc": Field(header="TRES_ALLOC", get=lambda row: jobs.tres(row, typed=True)),
    "tres-per-job": Field(
        header="TRES_PER_JOB", get=lambda row: row.label("tres-per-job") or "N/A"
    ),
    "tres-per-task": Field(
        header="TRES_PER_TASK", get=lambda row: row.label("tres-per-task") or "N/A"
    ),
}

_ALWAYS_THE_SAME = """
    admin_comment ADMIN_COMMENT (null)      AllocNodes ALLOC_NODES localhost
    AllocSID ALLOC_SID 0                    AssocID ASSOC_ID 0
    BatchFlag BATCH_FLAG 1                  BoardsPerNode BOARDS_PER_NODE 0
    BurstBuffer BURST_BUFFER (null)         BurstBufferState BURST_BUFFER_STATE (null)
    ClusterFeature CLUSTER_FEATURES (null)  Container CONTAINER (null)
    cpus-per-tres CPUS_PER_TRES N/A         DelayBoot DELAY_BOOT 0:00
    DerivedEC DERIVED_EC 0                  HetJobID HET_JOB_ID N/A
    HetJobIDSet HET_JOB_ID_SET N/A          HetJobOffset HET_JOB_OFFSET N/A
    MCSLabel MCSLABEL (null)
    MinTime TIME_MIN 0:00                   Network NETWORK (null)
    NTPerBoard NTASKS_PER_BOARD 0           NTPerCore NTASKS_PER_CORE N/A
    NTPerSocket NTASKS_PER_SOCKET N/A       Origin ORIGIN NA
    OriginRaw ORIGIN_RAW NA                 PreemptTime PREEMPT_TIME N/A
    Prefer PREFER (null)                    Profile PROFILE NotSet
    Reboot REBOOT 0                         ReqSwitch REQ_SWITCH 0
    ResizeTime RESIZE_TIME N/A              SiblingsActive ACTIVE_SIBLINGS NA
    SiblingsActiveRaw ACTIVE_SIBLINGS_RAW NA SiblingsViable VIABLE_SIBLINGS NA
    SiblingsViableRaw VIALBLE_SIBLINGS_RAW NA SPerBoard SOCKETS_PER_BOARD 0
    system_comment SYSTEM_COMMENT (null)    tres-bind TRES_BIND N/A
    tres-freq TRES_FREQ N/A                 tres-per-socket TRES_PER_SOCKET N/A
    Wait4Switch WAIT4SWITCH 0:00
"""
"""Name, header and text of what no job here can have otherwise; one header is misspelt by Slurm."""


def _fixed() -> dict[str, Field[JobRow]]:
    words = iter(_ALWAYS_THE_SAME.split())
    return {
        name: Field(header=header, get=_constant(text))
        for name, header, text in zip(words, words, words, strict=True)
    }


NAMES: dict[str, Field[JobRow]] = by_name(
    {name: LETTERS[letter] for name, letter in _SAME_AS_LETTER.items()} | _ONLY_BY_NAME | _fixed()
)
