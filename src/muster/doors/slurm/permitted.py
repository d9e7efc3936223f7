"""Who may do what, asked before anything else is looked at, as Slurm does."""

from muster.controller import rights
from muster.doors.slurm.call import Door
from muster.doors.slurm.trouble import SlurmError
from muster.model.job import Job
from muster.model.site import Role

STRANGER = "Invalid user id"
DENIED = "Access/permission denied"


def may_change(door: Door, job: Job) -> bool:
    return rights.may_change(door.caller, door.looking.site(), job)


def demand_admin(door: Door, *lines: str) -> None:
    """SlurmError with these words unless the caller is an administrator."""
    if not rights.has_role(door.caller, door.looking.site(), Role.ADMIN):
        raise SlurmError(*lines)
