"""What is known about every kind of wait and of end: a row of facts, which each reason carries."""

from enum import StrEnum

from muster.model.value import Value


class Mover(StrEnum):
    """What must happen before a job can start, and so whose move it is."""

    LINE = "jobs ahead"
    """Those ahead of it in the line for its pool leave or start: it stands in line for room."""

    LIMIT = "jobs under the same limit"
    """Enough of those that count against the same limit end."""

    OTHER_JOB = "another job"
    """Jobs that the reason names come to something."""

    CLOCK = "the clock"
    """Nothing: time alone ends the wait."""

    HOLDER = "who holds it"
    """The one who holds it releases it."""

    USER = "its user"
    """The request changes: the job cannot start as it is."""

    ADMIN = "an administrator"
    """The cluster or its rules change."""


class Remedy(StrEnum):
    """What a job could ask for instead, in the order in which it is tried."""

    SMALLER = "smaller"
    ANY_NODE = "any node"
    OTHER_POOL = "other pool"
    OTHER_QUEUE = "other queue"


class Facts(Value):
    """A row: all that planner, explanations and screens ask about a reason beside its words.

    slurm: Slurm's word for it, which squeue shows as REASON.
    remedies: which changes of the request might help.
    eligible: could it start if there were room? Slurm counts a job's age from then on.
    dated: the sentence says how long it is until something, and so changes as time passes.
    """

    slurm: str
    mover: Mover
    remedies: frozenset[Remedy] = frozenset()
    eligible: bool = True
    dated: bool = False


class EndFacts(Value):
    """A row: what an attempt came to that ended for a reason, in Slurm's words.

    slurm_state: the state that Slurm leaves such a job in.
    slurm: its word for why, where it has one.
    """

    slurm_state: str
    slurm: str = "None"
