"""What is kept of a job beside each of its attempts, for a database that has lost it."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from muster.backends.base import Run
from muster.backends.local.attempt import spool
from muster.model.job import JobSpec
from muster.model.placement import Allocation
from muster.model.value import Instant, JobId, Value, replace

JOB = "job.json"
"""Its name in the folder of an attempt on this machine."""
SUFFIX = ".job"
"""That of those beside the notes of a cluster."""
CLUSTERS = "clusters"
"""The folder below which clusters keep what they must know."""


class KeptJob(Value):
    """A job as it was when an attempt of it began. spec: with its launch."""

    job: JobId
    spec: JobSpec
    submitted_at: Instant
    allocation: Allocation


def kept(run: Run) -> bytes:
    """What is to be written down of it."""
    job = KeptJob(
        job=run.job.id,
        spec=replace(run.job.spec, launch=run.launch),
        submitted_at=run.job.submitted_at,
        allocation=run.allocation,
    )
    return msgspec.json.encode(job)


def attempts_kept(home: Path) -> Iterator[KeptJob]:
    """Every attempt from this folder that says whose it is, on this machine and on clusters."""
    place = home / spool.FOLDER
    names = os.listdir(place) if place.is_dir() else []
    here = sorted(filter(spool.parts_of, names), key=lambda each: spool.parts_of(each) or (0, 0))
    yield from _read(place / name / JOB for name in here)
    yield from sorted(
        _read((home / CLUSTERS).rglob(f"*{SUFFIX}")),
        key=lambda each: (each.job, each.allocation.attempt),
    )


def was_used(home: Path) -> bool:
    """Have jobs been run from this folder before?"""
    return (home / spool.FOLDER / spool.TOKEN).exists()


def _read(paths: Iterable[Path]) -> Iterator[KeptJob]:
    for path in paths:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            yield msgspec.json.decode(path.read_bytes(), type=KeptJob)
