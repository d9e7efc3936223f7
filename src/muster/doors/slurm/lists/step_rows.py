"""Steps that run now, as squeue, scontrol and sstat show them: a job's script counts as one."""

from collections.abc import Callable, Sequence

from muster.doors.slurm.accounting import values
from muster.doors.slurm.accounting.records import AcctJob, AcctRow, apart, rows_of_job
from muster.doors.slurm.call import Door
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.filters import Filter, JobName, live_views
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words import times
from muster.doors.slurm.words.formats import Field
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.states import State
from muster.doors.slurm.words.users import uid_of
from muster.model.steps import Step
from muster.model.value import JobId

StepRow = AcctRow
"""A row of accounting that is not over."""


def running_steps(door: Door, listing: Listing, wish: Filter | None = None) -> list[StepRow]:
    """Those that are not over, by job: the script first, then by number."""
    asked = wish or Filter(states=frozenset(State))
    steps: dict[JobId, list[Step]] = {}
    for step in door.queries.jobs.running_steps(door.caller):
        steps.setdefault(step.job, []).append(step)
    found: list[StepRow] = []
    for view in live_views(door, asked):
        whole = AcctJob(JobRow(view, listing), view.job.submitted_at)
        whole.steps = steps.get(view.job.id, ())
        if whole.started_at is None:
            continue
        for record in apart(whole):
            # The first of these rows is the job itself, which is no step.
            found += rows_of_job(record)[1:]
    return found


def is_named(row: StepRow, names: Sequence[JobName]) -> bool:
    return any(
        name.means(row.row.job) and (name.step is None or name.step == row.name) for name in names
    )


def gpus_per_node(row: StepRow) -> str:
    count = 0 if row.step is None else values.gpu_count(row)
    each = count // max(1, len(values.nodes(row)))
    return f"gres:gpu:{each}" if each else "(null)"


def _state(row: StepRow) -> str:
    return row.row.state.name if row.row.state is State.SUSPENDED else State.RUNNING.name


def _cpus(row: StepRow) -> str:
    """Of a script Slurm counts none."""
    return "0" if row.step is None else str(values.cpus(row))


def _array(row: StepRow) -> str:
    part = row.row.job.spec.array
    return "0" if part is None else str(part.array)


def _index(row: StepRow) -> str:
    part = row.row.job.spec.array
    return "N/A" if part is None else str(part.index)


def _nodes(row: StepRow) -> str:
    return compressed(values.nodes(row))


def _nothing(_: StepRow) -> str:
    return "(null)"


Get = Callable[[StepRow], str]
Column = tuple[str, Get]
_ID: Column = ("STEPID", values.id_text)
_NAME: Column = ("NAME", values.name)
_POOL: Column = ("PARTITION", lambda row: jobs.partition(row.row))
_TIME: Column = ("TIME", lambda row: times.short_text(row.elapsed))
_LIMIT: Column = ("TIME_LIMIT", lambda _: "UNLIMITED")
_START: Column = ("START_TIME", lambda row: values.at_text(row, row.started_at))
_NODES: Column = ("NODELIST", _nodes)
_TASKS: Column = ("TASKS", lambda row: str(values.tasks(row)))
_USER: Column = ("USER", lambda row: row.row.job.spec.user)
_UID: Column = ("UID", lambda row: str(uid_of(row.row.job.spec.user)))
_GPUS: Column = ("TRES_PER_JOB", gpus_per_node)

_LETTERS: dict[str, Column] = {
    "A": _TASKS,
    "b": _GPUS,
    "i": _ID,
    "j": _NAME,
    "l": _LIMIT,
    "M": _TIME,
    "N": _NODES,
    "P": _POOL,
    "S": _START,
    "u": _USER,
    "U": _UID,
}
_NAMES: dict[str, Column] = {
    "arrayjobid": ("ARRAY_JOB_ID", _array),
    "arraytaskid": ("ARRAY_TASK_ID", _index),
    "cluster": ("CLUSTER", lambda row: row.row.listing.cluster),
    "container": ("CONTAINER", _nothing),
    "cpus-per-tres": ("CPUS_PER_TRES", _nothing),
    "jobid": ("JOB_ID", lambda row: str(row.row.job.id)),
    "mem-per-tres": ("MEM_PER_TRES", _nothing),
    "nodes": _NODES,
    "numcpus": ("NUM_CPUS", _cpus),
    "numtasks": _TASKS,
    "partition": _POOL,
    "resvports": ("RESERVED_PORTS", _nothing),
    "starttime": _START,
    "stepid": _ID,
    "stepname": _NAME,
    "stepstate": ("STATE", _state),
    "timelimit": _LIMIT,
    "timeused": _TIME,
    "tres-per-job": ("TRES_PER_STEP", _nothing),
    "tres-per-node": _GPUS,
    "tres-per-socket": ("TRES_PER_SOCKET", _nothing),
    "tres-per-step": ("TRES_PER_STEP", _nothing),
    "tres-per-task": ("TRES_PER_TASK", _nothing),
    "userid": _UID,
    "username": _USER,
}


def _fields(of: dict[str, Column]) -> dict[str, Field[StepRow]]:
    return {name: Field(header=header, get=get) for name, (header, get) in of.items()}


STEP_LETTERS = _fields(_LETTERS)
STEP_NAMES = _fields(_NAMES)
"""What `squeue --steps` can show, by letters (-o) and by names (-O)."""
