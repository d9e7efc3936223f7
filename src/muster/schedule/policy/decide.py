"""What becomes of one job: gate, resume, place, preempt, promise, or a reason why it waits."""

from operator import itemgetter

from muster.model.job import JobState
from muster.model.plan import Clear, Move, Preempt, Resume, Start
from muster.model.reason import ArrayFull, Behind, NeverFits, NoRoom, WaitReason
from muster.model.value import ClassName, Instant, JobId, QueuePath
from muster.schedule.policy.backfill import earliest
from muster.schedule.policy.gates import Singletons, gate
from muster.schedule.policy.place import Placed, never_fits, place
from muster.schedule.policy.preempt import Clearing, clearing, preemption
from muster.schedule.policy.resume import claim_is_sound, resumed, started_on_claim
from muster.schedule.policy.rights import Rights
from muster.schedule.policy.search import CycleState
from muster.schedule.room.index import Room
from muster.schedule.room.needs import Need
from muster.schedule.state.follow import HeldRoom, PlannerState
from muster.schedule.state.roster import Lane, Shape, WaitingJob

Outcome = Move | WaitReason

Claimants = tuple[Shape, ClassName, QueuePath, int]
"""Jobs that may take the same from the same: by shape, class, queue and level."""


class Decider:
    """Takes jobs in their order and keeps what was decided about each."""

    def __init__(self, kept: PlannerState, cycle: CycleState, number: int) -> None:
        self._kept = kept
        self._cycle = cycle
        self.number = number
        # Numbers the states of things: it rises whenever room or quota is given out.
        self.state = number << 32
        # Rises with the state, and when jobs may be passed over that were not before.
        self.revision = 0
        self._promises_left = cycle.policy.backfill_depth
        self._clearings_left = cycle.policy.preempt.tries
        self._hopeless: set[Claimants] = set()
        self._singletons = Singletons(cycle.snapshot.jobs)
        self.decided: dict[JobId, Move] = {}
        self.reasons: dict[JobId, WaitReason] = {}
        self.dates: dict[JobId, Instant] = {}
        self.preempted: list[Preempt] = []

    def passes_over(self, entry: WaitingJob) -> bool:
        """Is it plain without a closer look that the job cannot start? Then its reason is noted."""
        if entry.is_watched:
            return False
        shape = entry.shape
        if shape.blocked_in == self.number and entry.limit_ms >= shape.blocked_ms:
            return not self._promises_left and not self._may_clear(entry)
        quotas, queue = self._cycle.books.quotas, entry.lane.queue
        why = (
            quotas.too_many_jobs(queue)
            or self._array_full(entry)
            or quotas.too_much(queue, shape.least_gpu_milli)
        )
        if why is None and entry.is_capped:
            why = self._cycle.books.over_class_limit(entry.job.spec, entry.job_class, shape.least)
        if why is not None:
            self.reasons[entry.id] = why
        return why is not None

    def why(self, entry: WaitingJob) -> WaitReason:
        """Why a job waits about which nothing else was decided."""
        # Without a reason of its own it was passed over: its shape had found no room.
        return self.reasons.get(entry.id) or entry.shape.why

    def _array_full(self, entry: WaitingJob) -> ArrayFull | None:
        part = entry.job.spec.array
        if part is None or part.at_once is None:
            return None
        is_full = self._cycle.books.in_array[part.array] >= part.at_once
        return ArrayFull(array=part.array, at_once=part.at_once) if is_full else None

    def only_room_counts(self, lane: Lane) -> bool:
        """In this lane no job gets a promise any more, nor victims unless its class takes them."""
        if self._promises_left:
            return False
        return not self._clearings_left or not self._cycle.books.quotas.may_own(lane.queue)

    def take(self, entry: WaitingJob) -> None:
        """Decide about one job."""
        why = self._known(entry)
        if why is not None:
            self._block(entry, why)
            self.revision += 1
            self.reasons[entry.id] = why
            return
        if entry.job.claim is not None or entry.job.state is JobState.SUSPENDED:
            # It has room of its own, and may give it up.
            self._given_out()
        outcome = self._outcome(entry)
        if isinstance(outcome, (Start, Resume, Clear)):
            self._given_out()
            self.decided[entry.id] = outcome
        else:
            self.reasons[entry.id] = outcome

    def keeps(self, entry: WaitingJob) -> WaitReason | None:
        """Why the job and its equivalents wait, if that is plain and labels make no difference."""
        if self._cycle.neighbours.is_choosy or not entry.shape.is_single:
            return None
        why = self._known(entry)
        return why if isinstance(why, (NoRoom, NeverFits)) else None

    def block(self, entry: WaitingJob) -> None:
        """The turn of a job that `keeps` knew about has come."""
        self._block(entry, self.reasons[entry.id])

    def _known(self, entry: WaitingJob) -> WaitReason | None:
        equivalents = entry.equivalents
        if equivalents is None or equivalents.known_in != self.state:
            return None
        return None if self._cycle.neighbours.matters_to(entry.job.spec) else equivalents.why

    def _outcome(self, entry: WaitingJob) -> Outcome:
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
        placed = place(entry, self._cycle)
        if isinstance(placed, Placed):
            return self._started(entry, placed)
        if not isinstance(placed, NoRoom):
            return placed
        return self._without_room(entry, placed)

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

    def _given_out(self) -> None:
        self.state += 1
        self.revision += 1

    def _without_room(self, entry: WaitingJob, no_room: NoRoom) -> Outcome:
        self.revision += 1
        cleared = self._clear(entry)
        if cleared is not None:
            return cleared
        never = never_fits(entry, self._cycle)
        why = never or self._behind(entry) or no_room
        if never is not None or not self._promise(entry):
            self._note_equivalents(entry, why)
        self._block(entry, why)
        return why

    def _note_equivalents(self, entry: WaitingJob, why: WaitReason) -> None:
        """As long as nothing more is given out, the same keeps all others like it."""
        if entry.equivalents is not None and not self._cycle.neighbours.matters_to(entry.job.spec):
            entry.equivalents.known_in, entry.equivalents.why = self.state, why

    def _block(self, entry: WaitingJob, why: WaitReason) -> None:
        """The ledger only gets fuller, so what found no room now need not be tried again.

        Except for a job so short that it would leave in time what is promised to another.
        """
        if self._cycle.neighbours.matters_to(entry.job.spec):
            return
        shape = entry.shape
        shape.blocked_in, shape.why = self.number, why
        shape.blocked_ms = 0
        if isinstance(why, Behind):
            shape.blocked_ms = min(entry.limit_ms, why.starts_at - self._cycle.now + 1)

    def _promise(self, entry: WaitingJob) -> bool:
        if not self._promises_left:
            return False
        # The first in line gets a date however far off it is: so no job waits for ever.
        horizon = self._cycle.policy.backfill_horizon if self.dates else None
        at = earliest(entry, self._cycle, horizon=horizon)
        if at is None:
            return False
        self._promises_left -= 1
        self.dates[entry.id] = at
        self._given_out()
        return True

    def _behind(self, entry: WaitingJob) -> Behind | None:
        """Of what is promised to others, the last to fall due on which the job would fit."""
        ledger, (group, need) = self._cycle.ledger, entry.shape.groups[0]
        if len(entry.shape.groups) > 1 or group.count > 1 or need.is_picky:
            return None
        promised = [
            (room.promise.at, room.promise.job, room)
            for room in ledger.promised.values()
            if room.promise is not None
        ]
        promised.sort(key=itemgetter(0, 1), reverse=True)
        for starts_at, job, room in promised:
            if self._fits_on(room, need):
                return Behind(job=job, starts_at=starts_at)
        return None

    def _fits_on(self, room: Room, need: Need) -> bool:
        ledger = self._cycle.ledger
        if not room.is_listed or room.cpu_milli < need.cpu_milli:
            return False
        offer = ledger.catalogue.offer(room.kind, need)
        return offer is not None and any(
            ledger.remains.fit_now(room, need, gpus) for gpus in offer.gpus
        )

    def _may_clear(self, entry: WaitingJob) -> bool:
        if not self._clearings_left:
            return False
        if not entry.may_preempt and not self._cycle.is_own(entry):
            return False
        return _claimants(entry) not in self._hopeless

    def _clear(self, entry: WaitingJob) -> Clear | None:
        if not self._may_clear(entry):
            return None
        self._hopeless.add(_claimants(entry))
        rights = Rights(entry, self._cycle)
        if not rights.any:
            return None
        self._clearings_left -= 1
        spared = {measure.job for measure in self.preempted}
        found = clearing(entry, self._cycle, rights, spared)
        if found is None:
            return None
        self._hopeless.remove(_claimants(entry))
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


def _claimants(entry: WaitingJob) -> Claimants:
    spec = entry.job.spec
    return (entry.shape, spec.job_class, spec.queue, entry.level)
