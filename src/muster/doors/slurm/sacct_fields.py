"""The fields of sacct: of a job, and of its one step, the batch script."""

from collections.abc import Callable

from muster.doors.slurm import jobs, states, times
from muster.doors.slurm.formats import Field
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.scene import group_of, uid_of
from muster.doors.slurm.sizes import measured_text, memory_text
from muster.doors.slurm.states import State
from muster.model.history import Used
from muster.model.job import Cancelled
from muster.model.value import Duration


class AcctRow:
    """A job, or its batch step."""

    __slots__ = ("is_step", "row")

    def __init__(self, row: JobRow, *, is_step: bool = False) -> None:
        self.row = row
        self.is_step = is_step

    @property
    def used(self) -> Used | None:
        """What its processes used: known of the step, once it is over."""
        attempt = self.row.attempt
        return attempt.used if attempt is not None else None


Get = Callable[[AcctRow], str]


def _of_job(get: Callable[[JobRow], str]) -> Get:
    """Steps have none of it."""
    return lambda acct: "" if acct.is_step else get(acct.row)


def _of_both(get: Callable[[JobRow], str]) -> Get:
    return lambda acct: get(acct.row)


def _of_step(get: Callable[[AcctRow], str]) -> Get:
    return lambda acct: get(acct) if acct.is_step else ""


def _constant(text: str) -> Get:
    return lambda _: text


def _id(acct: AcctRow) -> str:
    return jobs.id_text(acct.row) + (".batch" if acct.is_step else "")


def _raw_id(acct: AcctRow) -> str:
    return f"{acct.row.job.id}{'.batch' if acct.is_step else ''}"


def _name(acct: AcctRow) -> str:
    return "batch" if acct.is_step else acct.row.job.spec.name


def _state(acct: AcctRow) -> str:
    state = acct.row.state
    if state is State.COMPLETING:
        return State.RUNNING.name
    if state is State.CONFIGURING:
        return State.PENDING.name
    why = acct.row.job.why
    if state is State.CANCELLED and not acct.is_step and isinstance(why, Cancelled):
        return f"CANCELLED by {uid_of(why.by)}"
    if state is State.TIMEOUT and acct.is_step:
        return State.CANCELLED.name
    return state.name


def _exit(acct: AcctRow) -> str:
    if acct.row.state in states.LIVE:
        return "0:0"
    if acct.is_step and acct.row.state in {State.CANCELLED, State.TIMEOUT}:
        return "0:15"
    return states.exit_code(acct.row.job)


def _cpus(acct: AcctRow) -> str:
    started = jobs.started_at(acct.row) is not None
    return str(jobs.cpus(acct.row)) if started else "0"


def _span(span: Duration) -> str:
    return times.long_text(span)


def _cpu_time(row: JobRow) -> Duration:
    return Duration(jobs.elapsed(row) * jobs.cpus(row))


def _total_cpu(acct: AcctRow) -> str:
    used = acct.used
    return times.cpu_text(Duration(0 if used is None else used.cpu_ms))


def _rss(acct: AcctRow) -> str:
    used = acct.used
    return "" if used is None else measured_text(used.max_memory_mib * 1_024)


def _limit(row: JobRow) -> str:
    limit = row.job.spec.time_limit
    return "UNLIMITED" if limit is None else times.long_text(limit)


def _raw_limit(row: JobRow) -> str:
    limit = row.job.spec.time_limit
    return "UNLIMITED" if limit is None else str(limit // 60_000)


def _memory(row: JobRow) -> str:
    mib = sum(group.each.memory_mib * group.count for group in row.job.spec.groups)
    return memory_text(mib, convert=row.scene.convert)


def _tres(*, typed: bool) -> Get:
    """In the order of names, as accounting keeps it."""

    def get(acct: AcctRow) -> str:
        if typed and jobs.started_at(acct.row) is None:
            return ""
        return ",".join(sorted(jobs.tres(acct.row, typed=typed).split(",")))

    return get


def _gres(acct: AcctRow) -> str:
    """The older spelling of what GPUs a job asked for."""
    count = jobs.gpu_count(acct.row)
    return f"gpu:{count}" if count else ""


def _nodes(row: JobRow) -> str:
    return jobs.node_list(row) or "None assigned"


def _waited(row: JobRow) -> Duration:
    begun = jobs.started_at(row) or row.view.ended_at or row.scene.now
    return Duration(max(0, begun - (row.job.begin_at or row.job.submitted_at)))


def _first_node(acct: AcctRow) -> str:
    there = jobs.nodes(acct.row)
    return there[0] if there and acct.used is not None else ""


_FIELDS: tuple[tuple[str, int, Get], ...] = (
    ("Account", 10, _of_both(lambda row: row.job.spec.queue)),
    ("AdminComment", 19, _constant("")),
    ("AllocCPUS", 10, _cpus),
    ("AllocGRES", 12, _gres),
    ("AllocNodes", 10, _of_both(lambda row: str(len(jobs.nodes(row))))),
    ("AllocTRES", 10, _tres(typed=True)),
    ("AssocID", 7, _of_job(lambda _: "0")),
    ("AveCPU", 10, _of_step(_total_cpu)),
    ("AveCPUFreq", 10, _constant("")),
    ("AveDiskRead", 14, _constant("")),
    ("AveDiskWrite", 14, _constant("")),
    ("AvePages", 10, _constant("")),
    ("AveRSS", 10, _of_step(_rss)),
    ("AveVMSize", 10, _constant("")),
    ("BlockID", 16, _constant("")),
    ("Cluster", 10, _of_both(lambda row: row.scene.cluster)),
    ("Comment", 14, _of_job(lambda row: row.label("comment") or "")),
    ("Constraints", 19, _of_job(lambda row: row.label("features") or "")),
    ("ConsumedEnergy", 14, _constant("")),
    ("ConsumedEnergyRaw", 17, _constant("")),
    ("Container", 19, _constant("")),
    ("CPUTime", 10, _of_both(lambda row: _span(_cpu_time(row)))),
    ("CPUTimeRAW", 10, _of_both(lambda row: str(_cpu_time(row) // 1_000))),
    ("DBIndex", 14, _constant("")),
    ("DerivedExitCode", 15, _of_job(lambda _: "0:0")),
    ("Elapsed", 10, _of_both(lambda row: _span(jobs.elapsed(row)))),
    ("ElapsedRaw", 10, _of_both(lambda row: str(jobs.elapsed(row) // 1_000))),
    (
        "Eligible",
        19,
        _of_both(lambda row: jobs.at_text(row, row.job.begin_at or row.job.submitted_at)),
    ),
    ("End", 19, _of_both(lambda row: jobs.at_text(row, row.view.ended_at, "Unknown"))),
    ("ExitCode", 8, _exit),
    ("Flags", 16, _of_job(lambda _: "")),
    ("GID", 6, _of_job(lambda row: str(group_of(row.job.spec.user)[1]))),
    ("Group", 9, _of_job(lambda row: group_of(row.job.spec.user)[0])),
    ("JobID", -12, _id),
    ("JobIDRaw", -12, _raw_id),
    ("JobName", 10, _name),
    ("Layout", 9, _constant("")),
    ("MaxDiskRead", 12, _constant("")),
    ("MaxDiskReadNode", 15, _constant("")),
    ("MaxDiskReadTask", 15, _constant("")),
    ("MaxDiskWrite", 12, _constant("")),
    ("MaxDiskWriteNode", 16, _constant("")),
    ("MaxDiskWriteTask", 16, _constant("")),
    ("MaxPages", 8, _constant("")),
    ("MaxPagesNode", 12, _constant("")),
    ("MaxPagesTask", 14, _constant("")),
    ("MaxRSS", 10, _of_step(_rss)),
    ("MaxRSSNode", 10, _of_step(_first_node)),
    ("MaxRSSTask", 10, _of_step(lambda acct: "" if acct.used is None else "0")),
    ("MaxVMSize", 10, _constant("")),
    ("MaxVMSizeNode", 14, _constant("")),
    ("MaxVMSizeTask", 14, _constant("")),
    ("McsLabel", 20, _constant("")),
    ("MinCPU", 10, _of_step(_total_cpu)),
    ("MinCPUNode", 10, _of_step(_first_node)),
    ("MinCPUTask", 10, _of_step(lambda acct: "" if acct.used is None else "0")),
    ("NCPUS", 10, _cpus),
    ("NNodes", 8, _of_both(lambda row: str(jobs.node_count(row)))),
    ("NodeList", 15, _of_both(_nodes)),
    ("NTasks", 8, _of_step(lambda _: "1")),
    ("Partition", 10, _of_job(jobs.partition)),
    ("Priority", 10, _of_job(lambda row: str(jobs.priority(row)))),
    ("QOS", 10, _of_job(lambda row: row.job.spec.job_class)),
    ("QOSRAW", 6, _of_job(lambda _: "1")),
    ("Reason", 22, _of_job(jobs.reason)),
    ("ReqCPUFreq", 10, _of_job(lambda _: "Unknown")),
    ("ReqCPUFreqGov", 13, _of_job(lambda _: "Unknown")),
    ("ReqCPUFreqMax", 13, _of_job(lambda _: "Unknown")),
    ("ReqCPUFreqMin", 13, _of_job(lambda _: "Unknown")),
    ("ReqCPUS", 8, _of_both(lambda row: str(jobs.cpus(row)))),
    ("ReqGRES", 12, _gres),
    ("ReqMem", 10, _of_job(_memory)),
    ("ReqNodes", 8, _of_both(lambda row: str(jobs.node_count(row)))),
    ("ReqTRES", 10, lambda acct: "" if acct.is_step else _tres(typed=False)(acct)),
    ("Reservation", 20, _of_job(lambda row: row.label("reservation") or "")),
    ("ReservationId", 17, _constant("")),
    ("Reserved", 10, _of_job(lambda row: _span(_waited(row)))),
    ("ResvCPU", 10, _of_job(lambda row: _span(Duration(_waited(row) * jobs.cpus(row))))),
    ("ResvCPURAW", 10, _of_job(lambda row: str(_waited(row) * jobs.cpus(row) // 1_000))),
    ("Start", 19, _of_both(lambda row: jobs.at_text(row, jobs.started_at(row), "Unknown"))),
    ("State", 10, _state),
    ("Submit", 19, _of_both(lambda row: jobs.at_text(row, row.job.submitted_at))),
    ("SubmitLine", 20, _of_job(lambda row: row.label("line") or "")),
    ("Suspended", 10, _of_both(lambda _: "00:00:00")),
    ("SystemComment", 20, _constant("")),
    ("SystemCPU", 10, _of_both(lambda _: "00:00:00")),
    ("Timelimit", 10, _of_job(_limit)),
    ("TimelimitRaw", 12, _of_job(_raw_limit)),
    ("TotalCPU", 10, _total_cpu),
    *(
        (f"TRESUsage{way}{what}", 14, _constant(""))
        for way in ("In", "Out")
        for what in ("Ave", "Max", "MaxNode", "MaxTask", "Min", "MinNode", "MinTask", "Tot")
    ),
    ("UID", 6, _of_job(lambda row: str(uid_of(row.job.spec.user)))),
    ("User", 9, _of_job(lambda row: row.job.spec.user)),
    ("UserCPU", 10, _total_cpu),
    ("WCKey", 10, _of_job(lambda row: row.label("wckey") or "")),
    ("WCKeyID", 8, _constant("")),
    ("WorkDir", 20, _of_job(lambda row: row.launch.workdir or "")),
)

FIELDS: dict[str, Field[AcctRow]] = {
    name.lower(): Field(header=name, get=get, width=width) for name, width, get in _FIELDS
}

OLD_SPELLINGS = frozenset({"AllocGRES", "ReqGRES"})
"""Known to older Slurms: read, and not listed."""

LISTED = tuple(name for name, _, _ in _FIELDS if name not in OLD_SPELLINGS)
