"""What comes: requests in the order of their coming, and how long each would take."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from muster.api.jobs import JobDocument
from muster.backends.fate import Fate, Lasts
from muster.model.errors import MusterError
from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk, MpsShare
from muster.model.job import Ask, Exited, Job, JobSpec, TaskGroup
from muster.model.placement import Allocation
from muster.model.value import ClassName, Duration, Instant, QueuePath, UserName, Value, replace
from muster.simulator.run import Arrival

LABEL = "trace.row"
"""Carries a job's place in the workload, so that its fate is found whatever its name is."""

COLUMNS = "submit_s,duration_s,gpus,cpus,memory_gib,tasks,user,queue,name,limit_s,exit_code"


class BadTraceError(MusterError):
    """A trace cannot be read; the message says where and what is wanted."""


class Workload(Value):
    """Requests and their fates."""

    arrivals: tuple[Arrival, ...]
    lasts: Lasts


class Row(Value):
    """One job as a trace tells of it. Amounts are per task; time_limit: as its user told it."""

    submit: Instant
    lasts: Duration
    cpu_milli: int = 1_000
    memory_mib: int = 0
    gpu_milli: int = 0
    tasks: int = 1
    user: str = "somebody"
    queue: str = "default"
    job_class: str = "normal"
    name: str = "job"
    time_limit: Duration | None = None
    exit_code: int = 0


def workload(rows: Iterable[Row]) -> Workload:
    """The workload of these jobs, put in the order of their coming."""
    ordered = sorted(rows, key=lambda row: row.submit)
    arrivals = tuple(
        Arrival(at=row.submit, spec=_spec(row, place)) for place, row in enumerate(ordered)
    )
    fates = [Fate(work=row.lasts, end=Exited(code=row.exit_code)) for row in ordered]
    return Workload(arrivals=arrivals, lasts=_lasts(fates))


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


def rows_from_csv(text: str) -> Iterator[Row]:
    """A table with at least `submit_s`, `duration_s` and `gpus`."""
    table = csv.DictReader(io.StringIO(text))
    titles = set(table.fieldnames or ())
    if not {"submit_s", "duration_s", "gpus"} <= titles:
        raise BadTraceError(f"the table has columns of {COLUMNS}; the first three must be there")
    if strange := titles - set(COLUMNS.split(",")):
        raise BadTraceError(f"there is no column {min(strange)!r}; there are {COLUMNS}")
    for number, cells in enumerate(table, start=2):
        try:
            yield _row({name: cell for name, cell in cells.items() if cell})
        except ValueError as wrong:
            raise BadTraceError(f"line {number}: {wrong}") from wrong


def rows_from_history(documents: Iterable[JobDocument]) -> Iterator[Row]:
    """Jobs of an installation that ran and are over."""
    for job in documents:
        if job.started_at is None or job.ended_at is None:
            continue
        tasks = max(1, job.task_count)
        yield Row(
            submit=_instant(job.submitted_at),
            lasts=Duration(max(1, _instant(job.ended_at) - _instant(job.started_at))),
            cpu_milli=round(1_000 * job.cpus / tasks),
            memory_mib=round(job.memory_mib / tasks),
            gpu_milli=round(1_000 * job.gpus / tasks),
            tasks=tasks,
            user=job.user,
            queue=job.queue,
            job_class=job.job_class,
            name=job.name or "job",
            time_limit=None if job.time_limit is None else Duration(1_000 * job.time_limit),
            exit_code=job.exit_code or 0,
        )


def _row(cells: Mapping[str, str]) -> Row:
    gpu_milli = round(1_000 * float(cells["gpus"]))
    gpus = max(1, gpu_milli // 1_000)
    limit = cells.get("limit_s")
    return Row(
        submit=Instant(round(1_000 * float(cells["submit_s"]))),
        lasts=Duration(max(1, round(1_000 * float(cells["duration_s"])))),
        cpu_milli=round(1_000 * float(cells.get("cpus", gpus))),
        memory_mib=round(1_024 * float(cells.get("memory_gib", 0))),
        gpu_milli=gpu_milli,
        tasks=int(cells.get("tasks", 1)),
        user=cells.get("user", "somebody"),
        queue=cells.get("queue", "default"),
        name=cells.get("name", "job"),
        time_limit=None if limit is None else Duration(round(1_000 * float(limit))),
        exit_code=int(cells.get("exit_code", 0)),
    )


def _spec(row: Row, place: int) -> JobSpec:
    each = Ask(cpu_milli=row.cpu_milli, memory_mib=row.memory_mib, gpus=_gpus(row.gpu_milli))
    return JobSpec(
        name=row.name,
        user=UserName(row.user),
        queue=QueuePath(row.queue),
        job_class=ClassName(row.job_class),
        groups=(TaskGroup(count=row.tasks, each=each),),
        time_limit=row.time_limit,
        labels={LABEL: str(place)},
    )


def _gpus(milli: int) -> GpuAsk | None:
    """Whole GPUs, or a part of one; more than one and not whole is rounded up."""
    if not milli:
        return None
    if milli < WHOLE_GPU_MILLI:
        return GpuAsk(count=1, slice=MpsShare(milli=milli))
    return GpuAsk(count=-(-milli // WHOLE_GPU_MILLI))


def _lasts(fates: Sequence[Fate]) -> Lasts:
    def lasts(job: Job, _: Allocation) -> Fate:
        return fates[int(job.spec.labels[LABEL])]

    return lasts


def _instant(text: str) -> Instant:
    return Instant(round(1_000 * datetime.fromisoformat(text).timestamp()))
