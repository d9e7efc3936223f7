"""What becomes of jobs that hold GPUs and do not use them: off unless a class says so."""

from enum import StrEnum

from muster.model.value import HOUR, MINUTE, Duration, Value

INTERACTIVE_FOR = Duration(8 * HOUR)
"""So long a job with a terminal may hold one GPU and think."""


class IdleAction(StrEnum):
    """What is done after the warning. LOWER: others may have its place before all else."""

    WARN = "warn"
    LOWER = "lower"
    REQUEUE = "requeue"
    CANCEL = "cancel"


class IdleRule(Value, gc=False):
    """When all GPUs of a job have been idle for `after`, this is done; never without a warning.

    after: None where nothing is done. warn_before: so long before its user is told.
    spares_interactive: a job with a terminal and one GPU is left alone for its first hours.
    """

    after: Duration | None = None
    warn_before: Duration = Duration(15 * MINUTE)
    do: IdleAction = IdleAction.WARN
    spares_interactive: bool = True
