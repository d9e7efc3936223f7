"""What comes: requests in the order of their coming, and how long each would take."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from itertools import islice
from pathlib import Path

from muster.api.jobs import JobDocument
from muster.backends.simulated.attempt import Behaviour, BehaviourOf
from muster.model.errors import MusterError
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.value import SECOND, Duration, Instant, QueuePath, Value, replace
from muster.simulator.run import Arrival
from muster.simulator.traces.arrivals import arrivals, lasting, spread
from muster.simulator.traces.files import Row, lines, rows
from muster.simulator.traces.traced import Outcome, TracedJob

COLUMNS = "submit_s,duration_s,gpus,cpus,memory_gib,tasks,user,queue,name,limit_s,outcome"
"""Of our own tables; the first three must be there."""

TABLES = ("openb", "philly", "helios", "itp", "muri")
"""Formats whose files are tables with a line of titles."""

TEXTS = ("swf", "sacct", "kubernetes")
"""Formats that are read line by line."""

FORMATS = (*TABLES, *TEXTS, "csv", "history")

ANY_QUEUE = "default"


class BadTraceError(MusterError):
    """A trace cannot be read; the message says where and what is wanted."""


class Workload(Value):
    """Requests and their fates."""

    arrivals: tuple[Arrival, ...]
    lasts: BehaviourOf


def jobs_in(path: Path, form: str) -> Iterator[TracedJob]:
    """The jobs of a file of this format; gzip and zip are unpacked."""
    try:
        yield from _read(path, form)
    except (KeyError, ValueError) as wrong:
        text = f"{path.name} cannot be read as {form}: {type(wrong).__name__} {wrong}"
        raise BadTraceError(f"{text}; name another --format") from wrong


def workload(jobs: Iterable[TracedJob], gpus_per_node: int | None = None) -> Workload:
    """The workload of those that ran, in the order of their coming.

    With gpus_per_node, jobs with more GPUs than that become several tasks. A job keeps its name,
    which others may have too, so that its behaviour is found by its place.
    """
    ran = [job for job in jobs if job.duration is not None]
    if gpus_per_node:
        ran = [spread(job, gpus_per_node) for job in ran]
    ran.sort(key=lambda job: job.submitted_at)
    placed = [replace(job, name=f"{place:09}") for place, job in enumerate(ran)]
    coming = tuple(
        replace(arrival, spec=replace(arrival.spec, name=job.name))
        for arrival, job in zip(
            arrivals(placed, lambda job: QueuePath(job.queue or ANY_QUEUE)), ran, strict=True
        )
    )
    return Workload(arrivals=coming, lasts=lasting(placed))


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


def checkpointing(given: Workload, every: Duration) -> Workload:
    """The same jobs, each writing a checkpoint this often, and within half a minute on request."""
    lasts = given.lasts

    def saving(job: Job, allocation: Allocation) -> Behaviour:
        behaviour = lasts(job, allocation)
        return replace(behaviour, checkpoint_every=every, saves_in=Duration(30 * SECOND))

    return replace(given, lasts=saving)


def table_jobs(table: Iterable[Row]) -> Iterator[TracedJob]:
    """Jobs of a table with at least `submit_s`, `duration_s` and `gpus`."""
    for number, row in enumerate(table, start=2):
        if number == 2:
            if not {"submit_s", "duration_s", "gpus"} <= row.keys():
                raise BadTraceError(
                    f"a table of jobs has columns of {COLUMNS}; the first three must be there"
                )
            if strange := row.keys() - set(COLUMNS.split(",")):
                raise BadTraceError(f"there is no column {min(strange)!r}; there are {COLUMNS}")
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


def _read(path: Path, form: str) -> Iterator[TracedJob]:
    if form == "csv":
        return table_jobs(rows(lines(path)))
    module = import_module(f"muster.simulator.traces.{form}")
    # Two of these come in two forms.
    if form == "philly" and ".csv" not in path.suffixes:
        return module.original(lines(path))
    if form == "helios" and any("num_chips" in row for row in islice(rows(lines(path)), 1)):
        return module.slice_jobs(rows(lines(path)))
    return module.jobs(rows(lines(path)) if form in TABLES else lines(path))


def _instant(text: str) -> Instant:
    return Instant(round(1_000 * datetime.fromisoformat(text).timestamp()))
