"""Who held which devices until when, between two looks: so that no millisecond is lost."""

from collections import deque

from muster.controller.watching.holdings import holdings_of
from muster.controller.world.transaction import Change
from muster.model.holding import Holding
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.value import Instant, Value, replace
from muster.stores.base import Batch


class _Over(Value):
    """An attempt that no longer holds what it held."""

    job: Job
    allocation: Allocation
    at: Instant


class Tenancies:
    """Notes in the writer's thread what ends; who looks takes it from there."""

    def __init__(self) -> None:
        self._over: deque[_Over] = deque()

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        """What ended with a commit. It must be quick: no holding is made here."""
        for change in changes:
            held = change.held
            if held is None or not _has_devices(held):
                continue
            if change.holds is None or change.holds.attempt != held.attempt:
                at = _ended_at(batch, held)
                self._over.append(_Over(job=change.after, allocation=held, at=at))

    def ended(self) -> tuple[Holding, ...]:
        """The holdings that ended since this was last asked, each with its end."""
        found: list[Holding] = []
        while self._over:
            over = self._over.popleft()
            jobs = {over.job.id: over.job}
            held = holdings_of((over.allocation,), jobs)
            found.extend(replace(each, until=over.at) for each in held)
        return tuple(found)

    def forget(self) -> None:
        """Another process leads, and looks."""
        self._over.clear()


def _has_devices(allocation: Allocation) -> bool:
    return any(placement.devices for placement in allocation.placements)


def _ended_at(batch: Batch, held: Allocation) -> Instant:
    """As it was written; else the newest thing that the batch tells of this job."""
    for attempt in batch.attempts:
        if attempt.job == held.job and attempt.number == held.attempt:
            return attempt.ended_at
    return max((event.at for event in batch.events), default=held.placed_at)
