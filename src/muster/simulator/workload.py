"""What comes: requests in the order of their coming, and how long each would take."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path

from muster.api.jobs import JobDocument
from muster.backends.fate import Fate, Lasts
from muster.model.errors import MusterError
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk, MpsShare
from muster.model.job import Ask, Cancelled, EndReason, Exited, Job, JobSpec, TaskGroup
from muster.model.placement import Allocation
from muster.model.value import SECOND, Duration, Instant, QueuePath, UserName, Value, replace
from muster.simulator.run import Arrival
from muster.simulator.traces.files import Row, lines, rows
from muster.simulator.traces.traced import Outcome, TracedJob

LABEL = "trace.row"
"""Carries a job's place in the workload, so that its fate is found whatever its name is."""

COLUMNS = "submit_s,duration_s,gpus,cpus,memory_gib,tasks,user,queue,name,limit_s,outcome"
"""Of our own tables; the first three must be there."""

TABLES = ("openb", "philly", "helios", "itp", "muri")
"""Formats whose files are tables with a line of titles."""

TEXTS = ("swf", "sacct", "kubernetes")
"""Formats that are read line by line."""

FORMATS = (*TABLES, *TEXTS, "csv", "history")

NOBODY, ANY_QUEUE = "somebody", "default"


class BadTraceError(MusterError):
    """A trace cannot be read; the message says where and what is wanted."""


class Workload(Value):
    """Requests and their fates."""

    arrivals: tuple[Arrival, ...]
    lasts: Lasts


def jobs_in(path: Path, form: str) -> Iterator[TracedJob]:
    """The jobs of a file of this format; gzip and zip are unpacked."""
    if form == "csv":
        return table_jobs(rows(lines(path)))
    module = import_module(f"muster.simulator.traces.{form}")
    return module.jobs(rows(lines(path)) if form in TABLES else lines(path))


def workload(jobs: Iterable[TracedJob]) -> Workload:
    """The workload of these jobs, put in the order of their coming."""
    ordered = sorted(jobs, key=lambda job: job.submitted_at)
    arrivals = tuple(
        Arrival(at=job.submitted_at, spec=_spec(job, place)) for place, job in enumerate(ordered)
    )
    return Workload(arrivals=arrivals, lasts=_lasts([_fate(job) for job in ordered]))


def faster(given: Workload, speed: float) -> Workload:
    """The same jobs, coming so many times as fast."""
    if speed == 1 or not given.arrivals:
        return given
    begin = given.arrivals[0].at
    arrivals = tuple(
        replace(each, at=Instant(begin + round((each.at - begin) / speed)))
        for each in given.arrivals
    )
    return replace(given, arrivals=arrivals)


def table_jobs(table: Iterable[Row]) -> Iterator[TracedJob]:
    """Jobs of a table with at least `submit_s`, `duration_s` and `gpus`."""
    for number, row in enumerate(table, start=2):
        if number == 2:
            _demand_columns(row)
        try:
            yield _job({name: cell for name, cell in row.items() if cell})
        except (ValueError, KeyError) as wrong:
            raise BadTraceError(f"line {number} cannot be read: {wrong}") from wrong


def past_jobs(documents: Iterable[JobDocument]) -> Iterator[TracedJob]:
    """Jobs of an installation that ran and are over."""
    for job in documents:
        if job.started_at is None or job.ended_at is None:
            continue
        tasks = max(1, job.task_count)
        count, milli = _gpus(job.gpus / tasks)
        began, limit = _instant(job.started_at), job.time_limit
        yield TracedJob(
            name=job.name or "job",
            submitted_at=_instant(job.submitted_at),
            duration=Duration(max(1, _instant(job.ended_at) - began)),
            tasks=tasks,
            cpu_milli=round(1_000 * job.cpus / tasks),
            memory_mib=round(job.memory_mib / tasks),
            gpus=count,
            gpu_milli=milli,
            user=job.user,
            queue=job.queue,
            outcome=Outcome(job.state),
            started_at=began,
            limit=None if limit is None else Duration(limit * SECOND),
        )


def _demand_columns(row: Row) -> None:
    if not {"submit_s", "duration_s", "gpus"} <= row.keys():
        raise BadTraceError(
            f"a table of jobs has columns of {COLUMNS}; the first three must be there"
        )
    if strange := row.keys() - set(COLUMNS.split(",")):
        raise BadTraceError(f"there is no column {min(strange)!r}; there are {COLUMNS}")


def _job(cells: Mapping[str, str]) -> TracedJob:
    count, milli = _gpus(float(cells["gpus"]))
    limit = cells.get("limit_s")
    return TracedJob(
        name=cells.get("name", "job"),
        submitted_at=Instant(round(float(cells["submit_s"]) * SECOND)),
        duration=Duration(max(1, round(float(cells["duration_s"]) * SECOND))),
        tasks=int(cells.get("tasks", 1)),
        cpu_milli=round(1_000 * float(cells.get("cpus", max(1, count)))),
        memory_mib=round(1_024 * float(cells.get("memory_gib", 0))),
        gpus=count,
        gpu_milli=milli,
        user=cells.get("user", ""),
        queue=cells.get("queue", ""),
        outcome=Outcome(cells.get("outcome", Outcome.COMPLETED)),
        limit=None if limit is None else Duration(round(float(limit) * SECOND)),
    )


def _gpus(amount: float) -> tuple[int, int]:
    """How many, and how much of each in thousandths; more than one that is not whole is more."""
    milli = round(1_000 * amount)
    if 0 < milli < WHOLE_GPU_MILLI:
        return 1, milli
    return -(-milli // WHOLE_GPU_MILLI), WHOLE_GPU_MILLI


def _spec(job: TracedJob, place: int) -> JobSpec:
    gpus = None
    if job.gpus:
        part = MpsShare(milli=job.gpu_milli) if job.gpu_milli < WHOLE_GPU_MILLI else None
        gpus = GpuAsk(count=job.gpus, slice=part, models=job.models)
    each = Ask(cpu_milli=job.cpu_milli, memory_mib=job.memory_mib, gpus=gpus)
    return JobSpec(
        name=job.name,
        user=UserName(job.user or NOBODY),
        queue=QueuePath(job.queue or ANY_QUEUE),
        groups=(TaskGroup(count=job.tasks, each=each),),
        time_limit=job.limit,
        labels={LABEL: str(place)},
    )


def _fate(job: TracedJob) -> Fate:
    if job.duration is None:
        raise BadTraceError(f"the trace does not say how long {job.name} took")
    return Fate(work=Duration(max(1, job.duration)), end=_end(job))


def _end(job: TracedJob) -> EndReason:
    match job.outcome:
        case Outcome.COMPLETED:
            return Exited(code=0)
        case Outcome.FAILED:
            return Exited(code=1)
        case Outcome.CANCELLED:
            return Cancelled(by=UserName(job.user or NOBODY))


def _lasts(fates: Sequence[Fate]) -> Lasts:
    def lasts(job: Job, _: Allocation) -> Fate:
        return fates[int(job.spec.labels[LABEL])]

    return lasts


def _instant(text: str) -> Instant:
    return Instant(round(1_000 * datetime.fromisoformat(text).timestamp()))
