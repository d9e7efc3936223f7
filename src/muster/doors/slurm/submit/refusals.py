"""Why a request was refused, in Slurm's words, and what is said of one that was not. Pure."""

from muster.controller.messages import Receipt
from muster.doors.slurm.permissions import DENIED
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.lifecycle.refusal import (
    AsksForNothing,
    BadAddress,
    BadGroups,
    BadNumber,
    CannotRun,
    DeadlineTooSoon,
    DeadlineWithoutLimit,
    MayNotSubmit,
    NoContainerTool,
    NoMailProgram,
    NoSuchJob,
    NoSuchLevel,
    NoSuchModel,
    NoSuchProfile,
    NoSuchReservation,
    NotOffered,
    NotYourReservation,
    NoUsablePool,
    PoolIsClosed,
    PoolTakesNothing,
    Reason,
    TooLarge,
    TooLateForDeadline,
    TooManyOfUser,
    TooManySubmitted,
    TooMuchOfUser,
    Unprintable,
)
from muster.model.errors import ForbiddenError, MusterError, RefusedError, UnknownError
from muster.model.forbidden import (
    CannotRaisePriority,
    CannotSubmit,
    CannotUseClass,
    SubmitsForAnother,
)
from muster.model.reason import (
    NeverFits,
    NoSuchClass,
    NoSuchPool,
    NoSuchQueue,
    OverClassLimit,
    OverLimit,
    TooLong,
)
from muster.model.value import Value

ACCOUNT = "Invalid account or account/partition combination specified"
QOS = "Invalid qos specification"
UNAVAILABLE = "Requested node configuration is not available"
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
TIME = "Requested time limit is invalid (missing or exceeds some limit)"


def refusal(request: Request, error: MusterError) -> SlurmError:
    """What sbatch and its kin say of a job that was not taken."""
    reason = error.reason if isinstance(error, ForbiddenError) else None
    if isinstance(reason, SubmitsForAnother):
        return failed(request.command, "--uid only permitted by root user", code=255)
    if isinstance(reason, CannotRaisePriority) and request.has("nice"):
        return request.submission_failed("Invalid --nice value")
    return request.submission_failed(submission_words(error))


SAID = NoMailProgram | TooLateForDeadline
"""Cautions that sbatch has no words of its own for."""


def warnings_of(command: str, receipt: Receipt) -> str:
    """Said on stderr: mail was asked for that nothing sends, or the deadline will be missed."""
    said = [each for each in receipt.cautions if isinstance(each.reason, SAID)]
    return "".join(f"{command}: warning: {each.advice}\n" for each in said)


def submission_words(error: MusterError) -> str:
    """What sbatch says after `Batch job submission failed:`."""
    if isinstance(error, RefusedError):
        return _refused(error.reason) if isinstance(error.reason, Reason) else UNAVAILABLE
    if isinstance(error, ForbiddenError):
        return _FORBIDDEN.get(type(error.reason), DENIED)
    if isinstance(error, UnknownError):
        return "Invalid job id specified"
    return "Unable to contact slurm controller (connect failure)"


_FORBIDDEN: dict[type[Value], str] = {CannotSubmit: ACCOUNT, CannotUseClass: QOS}


def _refused(why: Reason) -> str:  # noqa: C901, PLR0912 (one branch for each of Slurm's sentences)
    match why:
        case NoSuchQueue() | MayNotSubmit():
            return ACCOUNT
        case NoSuchClass():
            return QOS
        case NoSuchPool():
            return "Invalid partition name specified"
        case PoolIsClosed():
            return "User's group not permitted to use this partition"
        case PoolTakesNothing():
            return "Required partition not available (inactive or drain)"
        case NoSuchReservation():
            return "Requested reservation is invalid"
        case NotYourReservation():
            return "Access denied to requested reservation"
        case NoSuchJob():
            return "Job dependency problem"
        case TooLong() | DeadlineTooSoon() | DeadlineWithoutLimit():
            return TIME
        case TooManySubmitted() | OverLimit() | OverClassLimit():
            return POLICY
        case TooManyOfUser() | TooMuchOfUser():
            return POLICY
        case TooLarge():
            return "Pathname of a file, directory or other parameter too long"
        case Unprintable():
            return "Invalid character in a name or comment"
        case NoUsablePool() | NoSuchModel() | NoSuchProfile() | NotOffered() | NoSuchLevel():
            return UNAVAILABLE
        case NoContainerTool() | CannotRun():
            return UNAVAILABLE
        case NeverFits() | AsksForNothing() | BadGroups() | BadNumber() | BadAddress():
            return UNAVAILABLE
