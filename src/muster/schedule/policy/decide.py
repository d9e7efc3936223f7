"""What becomes of one job: gate, resume, place, preempt, promise, or a reason why it waits."""

from copy import copy

from muster.model.job import JobState
from muster.model.plan import Clear, Move, Preempt, Resume, Start
from muster.model.reason import NoRoom, WaitReason
from muster.model.value import Instant, JobId
from muster.schedule.policy.backfill import Terms, behind, earliest
from muster.schedule.policy.gates import Singletons, gate
from muster.schedule.policy.place import Placed, never_fits, place
from muster.schedule.policy.preempt import Clearing, clearing, preemption
from muster.schedule.policy.resume import claim_is_sound, resumed, started_on_claim
from muster.schedule.policy.rights import Rights
from muster.schedule.policy.search import CycleState
from muster.schedule.policy.verdicts import Verdicts
from muster.schedule.state.follow import HeldRoom, PlannerState
from muster.schedule.state.roster import WaitingJob

Outcome = Move | WaitReason


class Decider:
    """Takes jobs in their order and keeps what was decided about each."""

    def __init__(self, kept: PlannerState, cycle: CycleState, verdicts: Verdicts) -> None:
        self._kept = kept
        self._cycle = cycle
        self._verdicts = verdicts
        self._singletons = Singletons(cycle.snapshot.jobs)
        self.decided: dict[JobId, Move] = {}
        self.dates: dict[JobId, Instant] = {}
        self.preempted: list[Preempt] = []

    def take(self, entry: WaitingJob) -> None:
        """Decide about one job."""
        verdicts = self._verdicts
        why = verdicts.known(entry)
        if why is not None:
            verdicts.no_room(entry, why)
            verdicts.reasons[entry.id] = why
            return
        if entry.job.claim is not None or entry.job.state is JobState.SUSPENDED:
            # It has room of its own, and may give it up.
            verdicts.given_out()
        outcome = self._outcome(entry)
        if isinstance(outcome, (Start, Resume, Clear)):
            verdicts.given_out()
            self.decided[entry.id] = outcome
        else:
            verdicts.reasons[entry.id] = outcome

    def on_trial(self, verdicts: Verdicts) -> "Decider":
        """One with these verdicts, to decide about one more job; this one does not learn of it.

        The room and the promises that it gives out are for the caller to take back.
        """
        other = copy(self)
        other._verdicts = verdicts
        other.decided, other.dates = {}, dict(self.dates)
        other.preempted = list(self.preempted)
        return other

    def _outcome(self, entry: WaitingJob) -> Outcome:
        """Gate, then resume, then start; a job that holds a claim starts on it."""
        if entry.problem is not None:
            return entry.problem
        if entry.job.state is JobState.SUSPENDED:
            return resumed(entry, self._kept, self._cycle)
        if entry.job.claim is not None and not claim_is_sound(entry, self._cycle):
            self._kept.change(entry.id, None)
        hold = self._kept.hold(entry.id)
        gated = self._gate(entry)
        if gated is not None:
            return gated
        if hold is not None:
            return started_on_claim(entry, hold, self._kept, self._cycle)
        return self._start(entry)

    def _gate(self, entry: WaitingJob) -> WaitReason | None:
        """What keeps the job beside room. A job with a claim is counted already."""
        books, job = self._cycle.books, entry.job
        has_claim = self._kept.hold(job.id) is not None
        why = None if has_claim else books.quotas.too_many_jobs(job.spec.queue)
        if why is None and entry.is_gated:
            return gate(job, self._cycle.snapshot, books.array_without(job), self._singletons)
        return why

    def _start(self, entry: WaitingJob) -> Outcome:
        """Place it; where only room is missing, preempt others, or promise it room for later."""
        placed = place(entry, self._cycle)
        if isinstance(placed, Placed):
            return self._started(entry, placed)
        if not isinstance(placed, NoRoom):
            return placed
        cleared = self._preempt(entry)
        if cleared is not None:
            return cleared
        never = never_fits(entry, self._cycle)
        why = never or behind(entry, self._cycle) or placed
        if never is not None or not self._promise(entry):
            self._verdicts.same_for_equivalents(entry, why)
        self._verdicts.no_room(entry, why)
        return why

    def _started(self, entry: WaitingJob, placed: Placed) -> Start:
        job = entry.job
        self._kept.start(HeldRoom(job, placed.placements, placed.ends_at), placed.portions)
        self._cycle.calendar.note(job.spec, placed.portions, placed.ends_at)
        return Start(
            job=job.id,
            attempt=job.attempt + 1,
            cluster=placed.cluster,
            placements=placed.placements,
        )

    def _preempt(self, entry: WaitingJob) -> Clear | None:
        """Let others leave for the job, if it may have that and it helps."""
        verdicts = self._verdicts
        if not verdicts.may_clear(entry):
            return None
        verdicts.try_clearing(entry)
        rights = Rights(entry, self._cycle)
        if not rights.any:
            return None
        verdicts.clearings_left -= 1
        spared = {measure.job for measure in self.preempted}
        found = clearing(entry, self._cycle, rights, spared)
        if found is None:
            return None
        verdicts.has_cleared(entry)
        return self._cleared(entry, found)

    def _cleared(self, entry: WaitingJob, found: Clearing) -> Clear:
        job, placed = entry.job, found.placed
        measures = [preemption(each, job.id, self._cycle) for each in found.victims]
        self.preempted += measures
        until = Instant(self._cycle.now + max(measure.grace for measure in measures))
        victims = tuple(victim.job.id for victim in found.victims)
        hold = HeldRoom(job, placed.placements, until, victims=victims, is_claim=True)
        self._kept.change(job.id, hold)
        return Clear(
            job=job.id,
            cluster=placed.cluster,
            placements=placed.placements,
            victims=victims,
            until=until,
        )

    def _promise(self, entry: WaitingJob) -> bool:
        """Promise room for later, so that jobs behind it do not take that for longer."""
        verdicts = self._verdicts
        if not verdicts.promises_left:
            return False
        is_firm = self._cycle.is_overdue(entry.job)
        # The first in line gets a date however far off it is: so no job waits for ever.
        is_first = not self.dates or is_firm
        horizon = None if is_first else self._cycle.policy.backfill_horizon
        # One bet at a time: of several, most of the room would be kept for nothing.
        at = earliest(entry, self._cycle, Terms(horizon, may_bet=is_first, is_firm=is_firm))
        if at is None:
            return False
        verdicts.promises_left -= 1
        self.dates[entry.id] = at
        verdicts.given_out()
        return True
