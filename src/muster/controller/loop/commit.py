"""What a plan makes happen, given that the world may have moved on while it was made.

A decision stands only if its job and the nodes it names are still the same values as in the
snapshot, but for what the job is expected to take; whatever else changed meanwhile can only have
made more room, because only this gives room away. If another process did, it led for a moment, and
nothing of the plan stands. What does not stand is decided again in the next plan.
"""

from collections.abc import Iterable, Iterator

from muster.controller.loop.orders import SYSTEM_USER
from muster.controller.world.transaction import Transaction
from muster.model.event import (
    CancelAsked,
    ClaimDropped,
    DeviceCut,
    Event,
    JobClaimed,
    JobEnded,
    JobPlaced,
    JobPreempted,
    JobResized,
    JobResumed,
)
from muster.model.job import DeadlinePassed, JobState
from muster.model.placement import Claim, Placement
from muster.model.plan import Clear, Plan, Preempt, Repartition, Resize, Resume, Start
from muster.model.reason import DependsOn, MakingRoom, MissesDeadline
from muster.model.snapshot import Snapshot
from muster.model.value import DeviceId, JobId, NodeId, replace

Where = tuple[NodeId, DeviceId]


def events_of(plan: Plan, snapshot: Snapshot, transaction: Transaction) -> Iterator[Event]:
    """Facts that follow from the plan, in the order in which they must be applied."""
    if transaction.record.foreign_placement_at > snapshot.version:
        return
    still = Still(snapshot, transaction)
    starting = {each.job for each in _standing_starts(plan, still)}
    yield from _cuts(plan, starting, transaction)
    for move in plan.moves:
        match move:
            case Start() if move.job in starting:
                yield _placed(move, transaction)
            case Resume(job=job, attempt=attempt) if still.holds(job):
                yield JobResumed(at=transaction.now, job=job, attempt=attempt)
            case Clear() if _may_clear(move, still):
                yield from _clearing(move, plan, still, transaction)
            case Start() | Resume() | Clear():
                pass
    yield from _resizes(plan, still, transaction)
    yield from _dropped_claims(plan, still, transaction)
    yield from _ended_unstarted(plan, still, transaction)


class Still:
    """What is still as it was when the plan began."""

    def __init__(self, snapshot: Snapshot, transaction: Transaction) -> None:
        self._snapshot = snapshot
        self._stage = transaction

    def job(self, job: JobId) -> bool:
        known, now = self._snapshot.jobs.get(job), self._stage.job(job)
        if known is None or now is None:
            return False
        if now is known:
            return True
        # That it is expected to take another time now is no reason to decide again.
        is_learned = now.expected != known.expected
        return is_learned and replace(now, expected=known.expected) == known

    def can_leave(self, job: JobId) -> bool:
        """Is it the same, but that it may have started meanwhile? That is no reason to stay."""
        known, now = self._snapshot.jobs.get(job), self._stage.job(job)
        if known is None or now is None:
            return False
        has_started = (known.state, now.state) == (JobState.STARTING, JobState.RUNNING)
        before = replace(now, state=known.state, expected=known.expected)
        return self.job(job) or (has_started and before == known)

    def has_left(self, job: JobId) -> bool:
        """Does it hold nothing any more?"""
        return self._stage.allocation(job) is None

    def room(self, node: NodeId) -> bool:
        return self._stage.node(node) is self._snapshot.nodes.get(node)

    def rooms(self, placements: Iterable[Placement]) -> bool:
        return all(self.room(placed.node) for placed in placements)

    def holds(self, job: JobId) -> bool:
        """Is the job the same, and are the nodes where it is?"""
        allocation = self._stage.allocation(job)
        return self.job(job) and allocation is not None and self.rooms(allocation.placements)


def _standing_starts(plan: Plan, still: Still) -> list[Start]:
    """Starts that can be carried out; with a cut that cannot, all that would land on it fall."""
    starts = [
        move
        for move in plan.moves
        if isinstance(move, Start) and still.job(move.job) and still.rooms(move.placements)
    ]
    cuts = [each for each in plan.measures if isinstance(each, Repartition)]
    while True:
        standing = {each.job for each in starts}
        spoiled = {(cut.node, cut.device) for cut in cuts if cut.for_job not in standing}
        kept = [each for each in starts if spoiled.isdisjoint(_devices(each.placements))]
        if len(kept) == len(starts):
            return kept
        starts = kept


def _devices(placements: Iterable[Placement]) -> Iterator[Where]:
    return ((placed.node, share.device) for placed in placements for share in placed.devices)


def _cuts(plan: Plan, standing: set[JobId], transaction: Transaction) -> Iterator[Event]:
    for measure in plan.measures:
        if isinstance(measure, Repartition) and measure.for_job in standing:
            yield DeviceCut(
                at=transaction.now,
                node=measure.node,
                device=measure.device,
                instances=measure.instances,
            )


def _placed(start: Start, transaction: Transaction) -> JobPlaced:
    return JobPlaced(
        at=transaction.now,
        job=start.job,
        attempt=start.attempt,
        cluster=start.cluster,
        placements=start.placements,
    )


def _may_clear(clear: Clear, still: Still) -> bool:
    """Can everybody be asked to leave who is still there? Nobody else would ask them later."""
    if not still.job(clear.job) or not still.rooms(clear.placements):
        return False
    return all(still.can_leave(each) or still.has_left(each) for each in clear.victims)


def _clearing(clear: Clear, plan: Plan, still: Still, transaction: Transaction) -> Iterator[Event]:
    claim = Claim(
        cluster=clear.cluster,
        placements=clear.placements,
        victims=clear.victims,
        until=clear.until,
    )
    yield JobClaimed(at=transaction.now, job=clear.job, claim=claim)
    for measure in plan.measures:
        if not isinstance(measure, Preempt) or measure.for_job != clear.job:
            continue
        if still.can_leave(measure.job):
            yield JobPreempted(
                at=transaction.now,
                job=measure.job,
                attempt=measure.attempt,
                by=clear.job,
                mode=measure.mode,
                grace=measure.grace,
            )


def _resizes(plan: Plan, still: Still, transaction: Transaction) -> Iterator[Event]:
    for measure in plan.measures:
        if not isinstance(measure, Resize):
            continue
        if still.job(measure.job) and still.rooms(measure.placements):
            yield JobResized(
                at=transaction.now,
                job=measure.job,
                attempt=measure.attempt,
                placements=measure.placements,
            )


def _dropped_claims(plan: Plan, still: Still, transaction: Transaction) -> Iterator[Event]:
    """Room is kept only for jobs that still wait for it to become free."""
    for job in sorted(transaction.record.claimed):
        wait = plan.waits.get(job)
        if wait is not None and not isinstance(wait.why, MakingRoom) and still.job(job):
            yield ClaimDropped(at=transaction.now, job=job)


def _ended_unstarted(plan: Plan, still: Still, transaction: Transaction) -> Iterator[Event]:
    """Jobs that missed their deadline, and those that will not wait for what cannot be."""
    for job_id in sorted(transaction.record.endable):
        wait, job = plan.waits.get(job_id), transaction.job(job_id)
        if wait is None or job is None or not still.job(job_id):
            continue
        why = wait.why
        if isinstance(why, MissesDeadline):
            end = DeadlinePassed(deadline=why.deadline)
            yield JobEnded(at=transaction.now, job=job_id, attempt=job.attempt, why=end)
        if isinstance(why, DependsOn) and why.never and job.spec.cancel_if_hopeless:
            yield CancelAsked(at=transaction.now, job=job_id, by=SYSTEM_USER)
