"""A part of a trace as jobs that two live systems are sent: sleeps, in compressed time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from bench._jct_queue import HOUR_S, limit_of
from bench._jct_trace import GPUS_PER_NODE, Park, Row

MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """What is taken of a trace, and how fast it is replayed.

    hour_s: what an hour of a job takes.
    load: arrivals are drawn together until they ask for this part of the cluster.
    longest_s: jobs of the trace that last longer would outlast the replay and are left out.
    """

    jobs: int
    hour_s: float
    load: float
    longest_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedJob:
    """A sleep: seconds since the first arrival, in compressed time."""

    number: int
    user: str
    at_s: float
    lasts_s: float
    limit_minutes: int
    nodes: int
    gpus_each: int

    @property
    def gpus(self) -> int:
        """GPUs on all of its nodes."""
        return self.nodes * self.gpus_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What both systems are sent, in the order of arrival."""

    nodes: int
    jobs: tuple[ReplayedJob, ...]
    left_out: int

    @property
    def span_s(self) -> float:
        """From the first arrival to the last."""
        return self.jobs[-1].at_s

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster."""
        return self.nodes * GPUS_PER_NODE

    @property
    def users(self) -> tuple[str, ...]:
        """Who submits, by name."""
        return tuple(sorted({job.user for job in self.jobs}))


def slice_of(park: Park, compression: Compression) -> Slice:
    """The jobs from the middle of a trace on, and what they are when time is compressed."""
    rows: list[Row] = []
    left_out = 0
    for row in park.rows[len(park.rows) // 2 :]:
        if len(rows) == compression.jobs:
            break
        if row.lasts_s > compression.longest_s:
            left_out += 1
        else:
            rows.append(row)
    factor = compression.hour_s / HOUR_S
    work_s = sum(row.lasts_s * row.gpus for row in rows) * factor
    span_s = work_s / (park.nodes * GPUS_PER_NODE * compression.load)
    pace = span_s / (rows[-1].at_s - rows[0].at_s)
    jobs = (_replayed(row, factor, (row.at_s - rows[0].at_s) * pace) for row in rows)
    return Slice(nodes=park.nodes, jobs=tuple(jobs), left_out=left_out)


def _replayed(row: Row, factor: float, at_s: float) -> ReplayedJob:
    """Slurm counts limits in whole minutes, so both sides get the next one above."""
    nodes = -(-row.gpus // GPUS_PER_NODE)
    return ReplayedJob(
        number=row.number,
        user=row.user,
        at_s=at_s,
        lasts_s=row.lasts_s * factor,
        limit_minutes=ceil(round(limit_of(row) * factor / MINUTE_S, 6)),
        nodes=nodes,
        gpus_each=-(-row.gpus // nodes),
    )


def sbatch_words(job: ReplayedJob, *, script: str, output: str) -> tuple[str, ...]:
    """How a job is submitted, to either system."""
    return (
        "sbatch",
        "--parsable",
        f"--nodes={job.nodes}",
        "--ntasks-per-node=1",
        f"--gres=gpu:{job.gpus_each}",
        f"--time={job.limit_minutes}",
        f"--job-name=job{job.number}",
        "--chdir=/",
        f"--output={output}",
        script,
        f"{job.lasts_s:.3f}",
    )


def accounts(users: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Which account of this machine submits for each user; the same again if there are few."""
    return {user: names[place % len(names)] for place, user in enumerate(sorted(users))}
