"""Muri's traces (SIGCOMM'22), cut from Philly: times in milliseconds, one model for each job."""

from collections.abc import Iterable, Iterator

from muster.model.value import Duration, Instant, Value, replace
from muster.simulator.traces.files import Row
from muster.simulator.traces.traced import TracedJob

STAGES = 3


class Training(Value, gc=False):
    """A job of the trace, and what it is made of.

    stages_ms: how long each resource is busy in an iteration, as the authors measured it.
    """

    job: TracedJob
    iterations: float
    iteration_ms: int
    stages_ms: tuple[float, ...]


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The jobs of a trace; the network that each trains is its user, who comes again and again."""
    return (each.job for each in trainings(rows))


def trainings(rows: Iterable[Row]) -> Iterator[Training]:
    """The jobs of a trace with their iterations."""
    for row in rows:
        job = TracedJob(
            name=f"muri-{row['job_id']}",
            submitted_at=Instant(int(row["submit_time"])),
            duration=Duration(int(row["duration"])),
            gpus=int(row["num_gpu"]),
            user=row["model_name"],
        )
        yield Training(
            job=job,
            iterations=float(row["iterations"]),
            iteration_ms=int(row["iteration_time"]),
            stages_ms=tuple(float(row[f"resource_time_{each}"]) for each in range(STAGES)),
        )


def all_at_once(jobs: Iterable[TracedJob]) -> Iterator[TracedJob]:
    """The primed form of a trace: the same jobs, all there from the beginning."""
    return (replace(job, submitted_at=Instant(0)) for job in jobs)
