"""Which records belong to a time: Slurm's rule for the window that sacct looks at. Pure."""

from muster.doors.slurm.accounting.records import AcctJob
from muster.doors.slurm.words.states import State
from muster.model.value import Instant, Value

ACCOUNTED = frozenset(
    {
        State.BOOT_FAIL,
        State.CANCELLED,
        State.COMPLETED,
        State.DEADLINE,
        State.FAILED,
        State.NODE_FAIL,
        State.OUT_OF_MEMORY,
        State.PENDING,
        State.PREEMPTED,
        State.RUNNING,
        State.REQUEUED,
        State.RESIZING,
        State.REVOKED,
        State.SUSPENDED,
        State.TIMEOUT,
    }
)
"""States that can be asked for."""

_ALWAYS = Instant(2**62)


class Window(Value):
    """From `since` until `until`; states: in which it must have been then, if any are given.

    named: jobs were asked for by their ids, and are shown also when they are held back.
    """

    since: Instant
    until: Instant
    states: frozenset[State] = frozenset()
    named: bool = False

    def has(self, record: AcctJob) -> bool:
        """Does a record belong to it?"""
        if self.states:
            return any(self._was(record, state) for state in self.states)
        began_at = record.submitted_at if self.named else record.eligible_at
        return self._met(began_at, record.ended_at)

    def _was(self, record: AcctJob, state: State) -> bool:
        """What is over counts when it ended; what waits or runs, for as long as it did."""
        match state:
            case State.PENDING:
                return self._met(record.eligible_at, record.started_at or record.ended_at)
            case State.RUNNING:
                return self._met(record.started_at, record.ended_at)
            case State.SUSPENDED:
                is_so = record.row.state is State.SUSPENDED
                return is_so and self._met(record.started_at, record.ended_at)
            case _:
                ended_at = record.ended_at
                is_so = record.row.state is state
                return is_so and ended_at is not None and self.since <= ended_at <= self.until

    def _met(self, began: Instant | None, ended: Instant | None) -> bool:
        if began is None:
            return False
        return began <= self.until and self.since <= (_ALWAYS if ended is None else ended)
