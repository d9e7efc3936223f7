"""How a job ended, as a sentence and as an exit code."""

from muster.api.jobs import JobDocument
from muster.doors.cli.jobs.named import label_of

FINAL = frozenset({"completed", "failed", "cancelled"})


def exit_code(job: JobDocument) -> int:
    """The job's own, as a shell would give it; 1 if it never got to have one."""
    if job.state == "completed":
        return 0
    if job.signal:
        return 128 + job.signal
    return job.exit_code or 1


def end_text(job: JobDocument) -> str:
    """`job 17 completed`, `job 17 failed: exit code 3`."""
    why = f": {job.reason.text}" if job.reason is not None and job.state != "completed" else ""
    return f"job {label_of(job)} {job.state}{why}"
