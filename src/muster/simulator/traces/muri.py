"""Muri's traces (SIGCOMM'22), cut from Philly: times in milliseconds, one model for each job."""

from collections.abc import Iterable, Iterator

from muster.model.value import Duration, Instant, replace
from muster.simulator.traces.files import Row
from muster.simulator.traces.traced import TracedJob


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The jobs of a trace; the network that each trains is its user, who comes again and again."""
    for row in rows:
        yield TracedJob(
            name=f"muri-{row['job_id']}",
            submitted_at=Instant(int(row["submit_time"])),
            duration=Duration(int(row["duration"])),
            gpus=int(row["num_gpu"]),
            user=row["model_name"],
        )


def all_at_once(jobs: Iterable[TracedJob]) -> Iterator[TracedJob]:
    """The primed form of a trace: the same jobs, all there from the beginning."""
    return (replace(job, submitted_at=Instant(0)) for job in jobs)
