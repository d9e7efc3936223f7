"""What is known of jobs that cannot start, so that none is looked at again in vain.

One verdict is kept for each shape (jobs that ask for the same) and each equivalence class (jobs
that in addition have the same queue, class, level and time limit). It counts for all of them until
it is overturned; `Verdict` says by what. Quotas and ceilings need no verdict: they are numbers that
are compared as quickly.
"""

from copy import copy

from muster.model.reason import ArrayFull, Behind, NeverFits, NoRoom, WaitReason
from muster.model.value import ClassName, JobId, QueuePath
from muster.schedule.policy.search import CycleState
from muster.schedule.state.roster import Lane, Shape, WaitingJob
from muster.schedule.state.verdict import Verdict

Claimants = tuple[Shape, ClassName, QueuePath, int]
"""Jobs that may take the same from the same: by shape, class, queue and level."""


class Verdicts:
    """The verdicts of one plan, and the reasons that jobs got."""

    def __init__(self, cycle: CycleState, plan: int) -> None:
        self._cycle = cycle
        self.plan = plan
        # Numbers the states of things: it rises whenever room or quota is given out.
        self.state = plan << 32
        # Rises with the state, and when jobs may be passed over that were not before.
        self.revision = 0
        self.promises_left = cycle.policy.backfill_depth
        self.clearings_left = cycle.policy.preempt.tries
        self._in_vain: set[Claimants] = set()
        self.reasons: dict[JobId, WaitReason] = {}

    def on_trial(self) -> "Verdicts":
        """The same, for one more job; these do not learn what is found out about it."""
        other = copy(self)
        other._in_vain = set(self._in_vain)
        other.reasons = {}
        return other

    # What is known

    def why(self, entry: WaitingJob) -> WaitReason:
        """Why a job waits about which nothing else was decided."""
        # Without a reason of its own it was passed over: its shape had found no room.
        return self.reasons.get(entry.id) or entry.shape.verdict.why

    def passes_over(self, entry: WaitingJob) -> bool:
        """Is it plain without a closer look that the job cannot start? Then its reason is noted."""
        if entry.is_watched:
            return False
        shape = entry.shape
        if shape.verdict.plan == self.plan and entry.limit_ms >= shape.verdict.from_ms:
            return not self.promises_left and not self.may_clear(entry)
        why = self._over_quota(entry)
        if why is not None:
            self.reasons[entry.id] = why
        return why is not None

    def only_room_counts(self, lane: Lane) -> bool:
        """In this lane no job gets a promise any more, nor victims unless its class takes them."""
        if self.promises_left:
            return False
        if not self.clearings_left:
            return True
        return not self._cycle.may_take_saved and not self._cycle.books.quotas.may_own(lane.queue)

    def known(self, entry: WaitingJob) -> WaitReason | None:
        """Why a job of the same class could not start in this very state of things."""
        equivalents = entry.equivalents
        if equivalents is None or equivalents.verdict.state != self.state:
            return None
        return (
            None if self._cycle.neighbours.matters_to(entry.job.spec) else equivalents.verdict.why
        )

    def keeps(self, entry: WaitingJob) -> WaitReason | None:
        """Why the job and its equivalents wait, if that is known and labels make no difference."""
        if self._cycle.neighbours.is_choosy or not entry.shape.is_single:
            return None
        why = self.known(entry)
        return why if isinstance(why, (NoRoom, NeverFits)) else None

    def may_clear(self, entry: WaitingJob) -> bool:
        """May others be made to leave for this job, and was that not tried in vain?"""
        if not self.clearings_left:
            return False
        may_take = entry.may_preempt or self._cycle.may_take_saved
        if not may_take and not self._cycle.is_own(entry):
            return False
        return _claimants(entry) not in self._in_vain

    # What is found out

    def given_out(self) -> None:
        """Room or quota was given out: what is known of this state of things is overturned."""
        self.state += 1
        self.revision += 1

    def no_room(self, entry: WaitingJob, why: WaitReason) -> None:
        """Nothing but room is missing: that holds for the shape until the plan ends."""
        self.revision += 1
        if self._cycle.neighbours.matters_to(entry.job.spec):
            return
        from_ms = 0
        if isinstance(why, Behind):
            from_ms = min(entry.limit_ms, why.starts_at - self._cycle.now + 1)
        elif self._cycle.ledger.promised and (len(entry.shape.groups) > 1 or entry.shape.is_picky):
            # Nobody looked whether promises are in its way: who leaves sooner may find room.
            from_ms = entry.limit_ms
        entry.shape.verdict = Verdict(why, self.plan, from_ms=from_ms)

    def same_for_equivalents(self, entry: WaitingJob, why: WaitReason) -> None:
        """As long as nothing more is given out, the same keeps all others like it."""
        if entry.equivalents is not None and not self._cycle.neighbours.matters_to(entry.job.spec):
            entry.equivalents.verdict = Verdict(why, self.plan, self.state)

    def try_clearing(self, entry: WaitingJob) -> None:
        """From now on it counts as tried in vain to let others leave for such jobs."""
        self._in_vain.add(_claimants(entry))

    def has_cleared(self, entry: WaitingJob) -> None:
        """It was not in vain."""
        self._in_vain.remove(_claimants(entry))

    def _over_quota(self, entry: WaitingJob) -> WaitReason | None:
        books, queue, shape = self._cycle.books, entry.lane.queue, entry.shape
        quotas = books.quotas
        why = (
            quotas.too_many_jobs(queue)
            or self._array_full(entry)
            or quotas.too_much(queue, shape.least_gpu_milli)
        )
        if why is None and entry.is_capped:
            return books.over_class_limit(entry.job.spec, entry.job_class, shape.least)
        return why

    def _array_full(self, entry: WaitingJob) -> ArrayFull | None:
        part = entry.job.spec.array
        if part is None or part.at_once is None:
            return None
        is_full = self._cycle.books.in_array[part.array] >= part.at_once
        return ArrayFull(array=part.array, at_once=part.at_once) if is_full else None


def _claimants(entry: WaitingJob) -> Claimants:
    spec = entry.job.spec
    return (entry.shape, spec.job_class, spec.queue, entry.level)
