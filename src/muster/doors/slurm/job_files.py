"""The files of a job: what it reads, and where it writes."""

import os.path

from muster.backends.local.patterns import Names, filled
from muster.doors.slurm.jobs import JobRow, nodes

USUAL_OUTPUT = "slurm-%j.out"


def input_file(row: JobRow) -> str:
    """What it reads: the whole path."""
    return os.path.join(row.launch.workdir or "", row.launch.stdin or "/dev/null")


def output_file(row: JobRow, *, stderr: bool = False) -> str:
    """Where it writes: the whole path, or nothing for those who may not see it."""
    launch, job = row.launch, row.job
    wanted = (launch.stderr if stderr else None) or launch.stdout or ""
    if not wanted or not launch.workdir:
        return ""
    if wanted == USUAL_OUTPUT:
        return f"{launch.workdir}/slurm-{job.id}.out"
    part, there = job.spec.array, nodes(row)
    names = Names(
        job=job.id,
        job_name=job.spec.name,
        user=job.spec.user,
        node=there[0] if there else "",
        array=None if part is None else part.array,
        index=None if part is None else part.index,
    )
    path = filled(wanted, names)
    return path if path.startswith("/") else f"{launch.workdir}/{path}"
