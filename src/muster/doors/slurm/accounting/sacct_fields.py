"""The fields of sacct: what each shows of a job, of its script, and of a step."""

from collections.abc import Callable
from functools import partial

from muster.doors.slurm.accounting import jobstats, values
from muster.doors.slurm.accounting.records import AcctRow
from muster.doors.slurm.lists import job_facts, jobs
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.usage import average
from muster.doors.slurm.words import times
from muster.doors.slurm.words.formats import Field
from muster.doors.slurm.words.users import group_of, uid_of
from muster.model.value import Duration

Get = Callable[[AcctRow], str]


def _constant(text: str) -> Get:
    return lambda _: text


_nothing = _constant("")


def _apart(of_job: Get, of_script: Get, of_step: Get) -> Get:
    """In the order of kinds."""
    gets = (of_job, of_script, of_step)
    return lambda acct: gets[acct.kind](acct)


def _of_job(get: Get) -> Get:
    """Steps have none of it."""
    return lambda acct: "" if acct.kind else get(acct)


def _of_row(get: Callable[[JobRow], str]) -> Get:
    """Of the job alone, as other lists have it."""
    return lambda acct: "" if acct.kind else get(acct.row)


def _of_steps(get: Get) -> Get:
    """The script counts as a step."""
    return lambda acct: get(acct) if acct.kind else ""


def _span(get: Callable[[AcctRow], Duration]) -> Get:
    """A span that ends before it begins is none."""
    return lambda acct: times.long_text(found) if (found := get(acct)) >= 0 else "INVALID"


def _seconds(get: Callable[[AcctRow], Duration]) -> Get:
    return lambda acct: str(max(0, get(acct)) // 1_000)


def _elapsed(acct: AcctRow) -> Duration:
    return acct.elapsed


def _waited_cpu(acct: AcctRow) -> Duration:
    return Duration(values.waited(acct) // 1_000 * 1_000 * values.cpus(acct))


def _frequency() -> Get:
    """Users cannot ask for one: this is what Slurm shows without one."""
    return _apart(_constant("Unknown"), _constant("0"), _constant("Unknown"))


def _class_number(acct: AcctRow) -> str:
    names = sorted(acct.row.listing.site.classes)
    name = acct.row.job.spec.job_class
    return str(names.index(name) + 1) if name in names else ""


def _flags(acct: AcctRow) -> str:
    """One planner starts everything."""
    return "StartRecieved" if acct.started_at is None else "SchedMain,StartRecieved"


def _node_of(which: Callable[..., str]) -> Get:
    return _of_steps(lambda acct: which(acct, values.where_measured(acct)))


def _task_of(which: Callable[..., str]) -> Get:
    return _of_steps(lambda acct: which(acct, "0"))


_in, _out = values.usage_in, values.usage_out
_in_at, _out_at = values.usage_in_at, values.usage_out_at
_on_node, _in_task = _of_steps(values.where_measured), _of_steps(values.which_measured)

_FIELDS: tuple[tuple[str, int, Get], ...] = (
    ("Account", 10, lambda acct: acct.row.job.spec.queue),
    ("AdminComment", 15, _of_row(lambda row: jobstats.comment(row.listing.report_of(row.job)))),
    ("AllocCPUS", 10, values.cpus_text),
    ("AllocNodes", 10, values.allocated_nodes),
    ("AllocTRES", 10, values.allocated),
    ("AssocID", 7, _nothing),
    ("AveCPU", 10, _of_steps(values.average_cpu)),
    ("AveCPUFreq", 10, _of_steps(_constant("0"))),
    ("AveDiskRead", 14, _of_steps(values.disk_read)),
    ("AveDiskWrite", 14, _of_steps(values.disk_written)),
    ("AvePages", 10, _of_steps(values.pages)),
    ("AveRSS", 10, _of_steps(values.resident)),
    ("AveVMSize", 10, _nothing),
    ("BlockID", 16, _nothing),
    ("Cluster", 10, lambda acct: acct.row.listing.cluster),
    ("Comment", 14, _of_row(lambda row: row.label("comment") or "")),
    ("Constraints", 19, _of_row(lambda row: row.label("features") or "")),
    ("ConsumedEnergy", 14, _of_steps(_constant("0"))),
    ("ConsumedEnergyRaw", 17, _of_steps(_constant("0"))),
    ("Container", 19, _of_row(lambda row: row.launch.image or "")),
    ("CPUTime", 10, _span(values.cpu_time)),
    ("CPUTimeRAW", 10, _seconds(values.cpu_time)),
    ("DBIndex", 10, lambda acct: str(acct.row.job.id)),
    ("DerivedExitCode", 15, _of_job(values.derived_exit_text)),
    ("Elapsed", 10, _span(_elapsed)),
    ("ElapsedRaw", 10, _seconds(_elapsed)),
    ("Eligible", 19, values.eligible),
    ("End", 19, lambda acct: values.at_text(acct, acct.ended_at)),
    ("ExitCode", 8, values.exit_text),
    ("Flags", 19, _of_job(_flags)),
    ("GID", 6, _of_row(lambda row: str(group_of(row.job.spec.user)[1]))),
    ("Group", 9, _of_row(lambda row: group_of(row.job.spec.user)[0])),
    ("JobID", -12, values.id_text),
    ("JobIDRaw", -12, values.raw_id),
    ("JobName", 10, values.name),
    ("Layout", 9, _apart(_nothing, _constant("Unknown"), _constant("Unknown"))),
    ("MaxDiskRead", 12, _of_steps(values.disk_read)),
    ("MaxDiskReadNode", 15, _on_node),
    ("MaxDiskReadTask", 15, _in_task),
    ("MaxDiskWrite", 12, _of_steps(values.disk_written)),
    ("MaxDiskWriteNode", 16, _on_node),
    ("MaxDiskWriteTask", 16, _in_task),
    ("MaxPages", 8, _of_steps(values.pages)),
    ("MaxPagesNode", 12, _on_node),
    ("MaxPagesTask", 14, _in_task),
    ("MaxRSS", 10, _of_steps(values.resident)),
    ("MaxRSSNode", 10, _on_node),
    ("MaxRSSTask", 10, _in_task),
    ("MaxVMSize", 10, _nothing),
    ("MaxVMSizeNode", 14, _nothing),
    ("MaxVMSizeTask", 14, _nothing),
    ("McsLabel", 12, _nothing),
    ("MinCPU", 10, _of_steps(values.average_cpu)),
    ("MinCPUNode", 10, _on_node),
    ("MinCPUTask", 10, _in_task),
    ("NCPUS", 10, values.cpus_text),
    ("NNodes", 8, lambda acct: str(values.node_count(acct))),
    ("NodeList", 15, values.node_list),
    ("NTasks", 8, _of_steps(lambda acct: str(values.tasks(acct)))),
    ("Partition", 10, _of_row(jobs.partition)),
    ("Priority", 10, _of_job(values.priority)),
    ("QOS", 10, _of_row(lambda row: row.job.spec.job_class)),
    ("QOSRAW", 6, _of_job(_class_number)),
    ("Reason", 22, _of_job(values.reason)),
    ("ReqCPUFreq", 10, _frequency()),
    ("ReqCPUFreqGov", 13, _frequency()),
    ("ReqCPUFreqMax", 13, _frequency()),
    ("ReqCPUFreqMin", 13, _frequency()),
    ("ReqCPUS", 8, values.cpus_text),
    ("ReqMem", 10, _of_job(values.memory)),
    ("ReqNodes", 8, lambda acct: str(values.node_count(acct))),
    ("ReqTRES", 10, _of_job(values.requested)),
    ("Reservation", 20, _of_job(lambda acct: acct.row.job.spec.reservation or "")),
    ("ReservationId", 8, _nothing),
    ("Reserved", 10, _of_job(_span(values.waited))),
    ("ResvCPU", 10, _of_job(_span(_waited_cpu))),
    ("ResvCPURAW", 10, _of_job(_seconds(_waited_cpu))),
    ("Start", 19, values.start),
    ("State", 10, values.state),
    ("Submit", 19, values.submit),
    ("SubmitLine", 20, _apart(values.line, _nothing, values.line)),
    ("Suspended", 10, _span(lambda acct: acct.record.suspended)),
    ("SystemComment", 15, _nothing),
    ("SystemCPU", 10, values.system_cpu),
    ("Timelimit", 10, _of_job(values.limit)),
    ("TimelimitRaw", 10, _of_job(values.raw_limit)),
    ("TotalCPU", 10, values.total_cpu),
    ("TRESUsageInAve", 14, _of_steps(partial(_in, together=average))),
    ("TRESUsageInMax", 14, _of_steps(partial(_in, together=max))),
    ("TRESUsageInMaxNode", 18, _node_of(_in_at)),
    ("TRESUsageInMaxTask", 18, _task_of(_in_at)),
    ("TRESUsageInMin", 14, _of_steps(partial(_in, together=min))),
    ("TRESUsageInMinNode", 18, _node_of(_in_at)),
    ("TRESUsageInMinTask", 18, _task_of(_in_at)),
    ("TRESUsageInTot", 14, _of_steps(_in)),
    ("TRESUsageOutAve", 15, _of_steps(partial(_out, average=True))),
    ("TRESUsageOutMax", 15, _of_steps(_out)),
    ("TRESUsageOutMaxNode", 19, _node_of(_out_at)),
    ("TRESUsageOutMaxTask", 19, _task_of(_out_at)),
    ("TRESUsageOutMin", 15, _of_steps(_out)),
    ("TRESUsageOutMinNode", 19, _node_of(_out_at)),
    ("TRESUsageOutMinTask", 19, _task_of(_out_at)),
    ("TRESUsageOutTot", 15, _of_steps(_out)),
    ("UID", 6, _of_row(lambda row: str(uid_of(row.job.spec.user)))),
    ("User", 9, _of_row(lambda row: row.job.spec.user)),
    ("UserCPU", 10, values.user_cpu),
    ("WCKey", 10, _of_row(lambda row: row.label("wckey") or "")),
    ("WCKeyID", 10, _of_job(_constant("0"))),
    ("WorkDir", 20, _of_row(lambda row: row.launch.workdir or "")),
)

_OTHER_VERSIONS: tuple[tuple[str, int, Get], ...] = (
    ("AllocGRES", 12, values.old_gres),
    ("ReqGRES", 12, values.old_gres),
    ("Planned", 10, _of_job(_span(values.waited))),
    ("PlannedCPU", 10, _of_job(_span(_waited_cpu))),
    ("PlannedCPURAW", 10, _of_job(_seconds(_waited_cpu))),
    ("Restarts", 8, _of_row(lambda row: str(max(0, row.job.attempt - 1)))),
    ("StdErr", 20, _of_row(lambda row: job_facts.output_file(row, stderr=True))),
    ("StdIn", 20, _of_row(lambda row: row.launch.stdin or "/dev/null")),
    ("StdOut", 20, _of_row(job_facts.output_file)),
)
"""Known to older and newer Slurms: read, and not listed."""

FIELDS: dict[str, Field[AcctRow]] = {
    name.lower(): Field(header=name, get=get, width=width)
    for name, width, get in (*_FIELDS, *_OTHER_VERSIONS)
}

LISTED = tuple(name for name, _, _ in _FIELDS)
