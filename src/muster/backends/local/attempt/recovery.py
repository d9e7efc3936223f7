"""What an attempt's folder says about its job, for a database that has lost it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muster.backends.base import Run
from muster.backends.local.attempt import spool
from muster.model.job import JobSpec
from muster.model.placement import Allocation
from muster.model.value import Instant, JobId, Value, replace

JOB = "job.json"


class KeptJob(Value):
    """A job as it was when an attempt of it began. spec: with its launch."""

    job: JobId
    spec: JobSpec
    submitted_at: Instant
    allocation: Allocation


def keep(folder: Path, run: Run) -> None:
    """Write it down beside what the supervisor reads."""
    kept = KeptJob(
        job=run.job.id,
        spec=replace(run.job.spec, launch=run.launch),
        submitted_at=run.job.submitted_at,
        allocation=run.allocation,
    )
    spool.write_text(folder / JOB, msgspec.json.encode(kept).decode())


def attempts_kept(home: Path) -> Iterator[KeptJob]:
    """Every attempt in the spool of this folder that says whose it is, by their ids."""
    place = home / spool.FOLDER
    names = os.listdir(place) if place.is_dir() else []
    for name in sorted(names, key=lambda each: spool.parts_of(each) or (0, 0)):
        if spool.parts_of(name) is None:
            continue
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            yield msgspec.json.decode((place / name / JOB).read_bytes(), type=KeptJob)


def was_used(home: Path) -> bool:
    """Have jobs been run from this folder before?"""
    return (home / spool.FOLDER / spool.TOKEN).exists()
