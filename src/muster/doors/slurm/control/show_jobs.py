"""Jobs as `scontrol show job` writes them.

Waiting jobs often differ in little more than their ids: what they have in common is written once,
with holes for the rest.
"""

import re
from typing import NamedTuple

from muster.doors.mail_words import words_of
from muster.doors.slurm.control.show_lines import block
from muster.doors.slurm.lists import job_facts, jobs
from muster.doors.slurm.lists.job_facts import dependency_text, least_memory, per_gpu
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.preemption import preempts
from muster.doors.slurm.words import states, times
from muster.doors.slurm.words.hostlist import compressed, ranges_text
from muster.doors.slurm.words.states import State
from muster.doors.slurm.words.users import group_of, uid_of
from muster.model.placement import Allocation
from muster.model.value import NodeId

SHOWN = (
    "admin-comment",
    "comment",
    "cpus-per-task",
    "features",
    "max-nodes",
    "mem-per-cpu",
    "mem-per-gpu",
    "nodes",
    "ntasks",
    "ntasks-per-node",
    "tres-per-job",
    "tres-per-node",
    "tres-per-task",
)
"""The labels that are shown."""

_HOLE = re.compile("\0([0-9])")


class JobFacts(NamedTuple):
    """What differs between jobs that ask for the same."""

    number: str
    priority: str
    submitted: str
    eligible: str
    accrues: str
    start: str
    end: str
    stdout: str
    stderr: str


HOLES = JobFacts(*(f"\0{place}" for place in range(len(JobFacts._fields))))


class Patterns:
    """Writes jobs, those that wait for the same by a pattern."""

    def __init__(self, *, details: bool, oneliner: bool) -> None:
        self._details = details
        self._oneliner = oneliner
        self._known: dict[tuple[object, ...], list[str]] = {}

    def text(self, row: JobRow) -> str:
        """One job."""
        facts = facts_of(row)
        if row.state is not State.PENDING or row.job.attempt or _is_part(row):
            return self._written(row, facts)
        key = _kind(row)
        pattern = self._known.get(key)
        if pattern is None:
            pattern = self._known[key] = _HOLE.split(self._written(row, HOLES))
        filled = pattern.copy()
        filled[1::2] = [facts[int(place)] for place in pattern[1::2]]
        return "".join(filled)

    def _written(self, row: JobRow, facts: JobFacts) -> str:
        return block(job_lines(row, facts, details=self._details), oneliner=self._oneliner)


def facts_of(row: JobRow) -> JobFacts:
    """What is this job's own."""
    job = row.job
    stdout = job_facts.output_file(row)
    return JobFacts(
        number=str(job.id),
        priority=str(jobs.priority(row)),
        submitted=jobs.at_text(row, job.submitted_at),
        eligible=jobs.at_text(row, job_facts.eligible_at(row), "Unknown"),
        accrues=jobs.at_text(row, job_facts.accrues_since(row), "Unknown"),
        start=jobs.at_text(row, jobs.expected_at(row), "Unknown"),
        end=jobs.at_text(row, jobs.ends_at(row), "Unknown"),
        stdout=stdout,
        stderr=stdout if row.launch.stderr is None else job_facts.output_file(row, stderr=True),
    )


def job_lines(row: JobRow, facts: JobFacts, *, details: bool) -> list[str]:
    """One job, in Slurm's order."""
    return [
        *_who(row, facts),
        *_when(row, facts, details=details),
        *_where(row, details=details),
        *_files(row, facts),
    ]


def _is_part(row: JobRow) -> bool:
    return row.component is not None or row.job.spec.array is not None


def _kind(row: JobRow) -> tuple[object, ...]:
    """All else that is shown of a job that waits."""
    spec, launch = row.job.spec, row.launch
    labels = spec.labels
    whose = (spec.name, spec.user, spec.queue, spec.job_class, spec.priority, spec.mail)
    asked = (spec.groups, spec.pools, spec.time_limit, spec.deadline, spec.reservation, spec.after)
    messages = (row.job.state, jobs.reason(row), spec.retry.requeue)
    runs = (launch.workdir, launch.stdin, launch.script_line)
    return (*whose, *asked, *messages, *runs, *map(labels.get, _LABELS))


_LABELS = tuple(jobs.LABEL + name for name in SHOWN)


def _who(row: JobRow, facts: JobFacts) -> list[str]:
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
        f"JobId={facts.number}{array}{het} JobName={spec.name}",
        *([f"HetJobIdSet={job.id}"] if het else []),
        f"UserId={spec.user}({uid_of(spec.user)}) GroupId={group}({gid}) MCS_label=N/A",
        (
            f"Priority={facts.priority} Nice={-spec.priority} "
            f"Account={spec.queue} QOS={spec.job_class}"
        ),
        (
            f"JobState={row.state.name} Reason={jobs.reason(row).replace(' ', '_')} "
            f"Dependency={dependency_text(row)}"
        ),
        (
            f"Requeue={int(spec.retry.requeue)} Restarts={max(0, job.attempt - 1)} BatchFlag=1 "
            f"Reboot=0 ExitCode={states.exit_code(job) if row.state not in states.LIVE else '0:0'}"
        ),
    ]


def _when(row: JobRow, facts: JobFacts, *, details: bool) -> list[str]:
    spec, most = row.job.spec, jobs.time_limit(row)
    limit = "UNLIMITED" if most is None else times.long_text(most)
    may_yield = jobs.nodes(row) and preempts(row.listing.site)
    preempt = [f"PreemptEligibleTime={facts.start} PreemptTime=None"] if may_yield else []
    return [
        *(["DerivedExitCode=0:0"] if details else []),
        f"RunTime={times.long_text(jobs.elapsed(row))} TimeLimit={limit} TimeMin=N/A",
        f"SubmitTime={facts.submitted} EligibleTime={facts.eligible}",
        f"AccrueTime={facts.accrues}",
        (
            f"StartTime={facts.start} EndTime={facts.end} "
            f"Deadline={jobs.at_text(row, spec.deadline)}"
        ),
        *preempt,
        (
            f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={jobs.at_text(row, row.listing.now)} "
            "Scheduler=Main"
        ),
    ]


def _where(row: JobRow, *, details: bool) -> list[str]:
    spec, there = row.job.spec, jobs.nodes(row)
    where = spec.groups[0].where
    per_task = jobs.cpus_per_task(row)
    per_node = row.label("ntasks-per-node") or "0"
    each = max((group.each.cpu_milli // 1_000 for group in spec.groups), default=1)
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
            f"NumNodes={_node_range(row)} NumCPUs={jobs.cpus(row)} "
            f"NumTasks={jobs.task_count(row)} CPUs/Task={per_task} ReqB:S:C:T=0:0:*:*"
        ),
        f"TRES={jobs.tres(row, typed=True)}",
        f"Socks/Node=* NtasksPerN:B:S:C={per_node}:0:*:* CoreSpec=*",
        *(_held(row) if details else []),
        f"MinCPUsNode={max(1, each)} {least_memory(row)} MinTmpDiskNode=0",
        f"Features={features} DelayBoot=00:00:00",
        *([f"Reservation={spec.reservation}"] if spec.reservation else []),
        (
            f"OverSubscribe={'NO' if where.exclusive else 'OK'} Contiguous=0 Licenses=(null) "
            "Network=(null)"
        ),
    ]


def _node_range(row: JobRow) -> str:
    """As long as it waits, with the most that it may have."""
    count, most = jobs.node_count(row), jobs.most_nodes(row)
    return f"{count}-{most}" if most and row.state is State.PENDING else str(count)


def _held(row: JobRow) -> list[str]:
    """Which devices on which node: `-d`."""
    held = row.view.allocation
    if held is None:
        return []
    total = ",".join(f"gpu:{kind}:{many}" for kind, many in sorted(jobs.gpu_types(row).items()))
    alike: dict[str, list[str]] = {}
    for name in jobs.nodes(row):
        alike.setdefault(_held_there(row, held, name), []).append(name)
    lines = [f"  Nodes={compressed(names)} {text}" for text, names in alike.items()]
    return [f"JOB_GRES={total or '(null)'}", *lines]


def _held_there(row: JobRow, held: Allocation, name: str) -> str:
    placed = [each for each in held.placements if each.node == name]
    node = row.listing.nodes.get(placed[0].node)
    index = {each.id: (each.index, each.model) for each in node.devices} if node else {}
    devices = [
        index[share.device] for each in placed for share in each.devices if share.device in index
    ]
    gres = ""
    if devices:
        kind = row.listing.gpu_type(devices[0][1])
        numbers = ranges_text(sorted({number for number, _ in devices}))
        gres = f"gpu:{kind}:{len(devices)}(IDX:{numbers})"
    cpus = max(1, sum(each.amount.cpu_milli for each in placed) // 1_000)
    memory = sum(each.amount.memory_mib for each in placed)
    return f"CPU_IDs={_cpu_ids(row, placed[0].node, cpus)} Mem={memory} GRES={gres}"


def _cpu_ids(row: JobRow, node: NodeId, count: int) -> str:
    """As the machine numbers them; where that is not known, as if they were the node's first."""
    known = row.listing.cpus_of(row.job.id).get(node, ())
    return ranges_text(known if len(known) == count else range(count))


def _files(row: JobRow, facts: JobFacts) -> list[str]:
    per_job, per_task = row.label("tres-per-job"), row.label("tres-per-task")
    memory = per_gpu(row)
    gres = jobs.tres_per_node(row)
    comment, admins = row.label("comment"), row.label("admin-comment")
    occasions = words_of(row.job.spec.mail)
    to = row.job.spec.mail.to or row.job.spec.user
    return [
        f"Command={row.launch.script_line or '(null)'}",
        f"WorkDir={row.launch.workdir or '(null)'}",
        *([f"AdminComment={admins} "] if admins else []),
        *([f"Comment={comment} "] if comment else []),
        f"StdErr={facts.stderr}",
        f"StdIn={job_facts.input_file(row)}",
        f"StdOut={facts.stdout}",
        "Power=",
        *([f"MemPerTres={memory}"] if memory else []),
        *([f"TresPerJob={per_job}"] if per_job else []),
        *([] if gres == "N/A" else [f"TresPerNode={gres}"]),
        *([f"TresPerTask={per_task}"] if per_task else []),
        *([f"MailUser={to} MailType={','.join(occasions).upper()}"] if occasions else []),
        "",
    ]
