"""Who may do what, asked before anything else is looked at, as Slurm does."""

from collections.abc import Callable

from muster.controller import rights
from muster.doors.slurm.call import Door
from muster.doors.slurm.words.errors import SlurmError
from muster.model.errors import ForbiddenError, MusterError
from muster.model.job import Job
from muster.model.site import Role, Site

STRANGER = "Invalid user id"
DENIED = "Access/permission denied"


def may_change(door: Door, job: Job) -> bool:
    return rights.may_change(door.caller, door.queries.site(), job)


def demand_admin(door: Door, *lines: str) -> None:
    """SlurmError with these words unless the caller is an administrator."""
    if not rights.has_role(door.caller, door.queries.site(), Role.ADMIN):
        raise SlurmError(*lines)


def change_rules(change: Callable[[Site], Site], door: Door, begin: str) -> None:
    """SlurmError that begins with these words if it may not be, or cannot."""
    try:
        door.service.apply(door.caller, change).result()
    except SlurmError:
        raise
    except ForbiddenError as error:
        raise SlurmError(f"{begin}: {STRANGER}") from error
    except MusterError as error:
        raise SlurmError(f"{begin}: {error}") from error
