"""Since when a job may start, as Slurm sees it: it does not say so of what is kept back."""

from muster.doors.slurm import jobs
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.states import State
from muster.model.value import Instant


def eligible_at(row: JobRow) -> Instant | None:
    """When it may or might start; None while it is held or waits, and no time was given."""
    return row.job.begin_at if _is_kept(row) else row.job.begin_at or row.job.submitted_at


def accrues_since(row: JobRow) -> Instant | None:
    """Since when its age counts; None as long as it may not start."""
    at = eligible_at(row)
    return None if _is_kept(row) or at is None or at > row.scene.now else at


def _is_kept(row: JobRow) -> bool:
    if row.state is not State.PENDING:
        return False
    return jobs.reason(row).startswith(("Dependency", "JobHeld"))
