"""Who may do what, asked before anything else is looked at, as Slurm does."""

from collections.abc import Callable

from muster.controller import rights
from muster.doors.config.diff import described
from muster.doors.slurm.call import Door
from muster.doors.slurm.words.errors import SlurmError
from muster.model.errors import ForbiddenError, MusterError
from muster.model.job import Job
from muster.model.site import Role, Site

STRANGER = "Invalid user id"
DENIED = "Access/permission denied"


def may_change(door: Door, job: Job) -> bool:
    """May the caller change this job? That they tried, and may not, is written down."""
    may = rights.may_change(door.caller, door.queries.site(), job)
    if not may:
        door.service.note_refusal(door.caller, "change a job", f"job {job.id} is not theirs")
    return may


def may_be_user(door: Door, job: Job) -> bool:
    """The same of what only the job's user may: to start steps in it, to see what it runs."""
    may = door.queries.jobs.owns(door.caller, job)
    if not may:
        door.service.note_refusal(door.caller, "act as a job's user", f"job {job.id}")
    return may


def demand_admin(door: Door, *lines: str) -> None:
    """SlurmError with these words unless the caller is an administrator."""
    if not rights.has_role(door.caller, door.queries.site(), Role.ADMIN):
        door.service.note_refusal(door.caller, "act as an administrator", lines[0])
        raise SlurmError(*lines)


def change_rules(change: Callable[[Site], Site], door: Door, begin: str) -> None:
    """SlurmError that begins with these words if it may not be, or cannot."""
    try:
        door.service.apply(door.caller, change, describe=described).result()
    except SlurmError:
        raise
    except ForbiddenError as error:
        raise SlurmError(f"{begin}: {STRANGER}") from error
    except MusterError as error:
        raise SlurmError(f"{begin}: {error}") from error
