"""What those who run have had so far: their levels, found once while a plan is made."""

from muster.model.levels import has_its_due, ran_by
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId
from muster.schedule.state.books import Holding


class Service:
    """Levels as they are at the instant of one snapshot, and who need not leave for others.

    ranked: who might be stopped of each class, in that order, as far as somebody asked.
    """

    def __init__(self, snapshot: Snapshot, waited_percent: int) -> None:
        self._snapshot = snapshot
        self._waited_percent = waited_percent
        self._levels: dict[JobId, int] = {}
        self.ranked: dict[ClassName, list[Holding]] = {}

    def level(self, holding: Holding) -> int:
        """Where the job stands that holds this."""
        job, snapshot = holding.job, self._snapshot
        known = self._levels.get(job.id)
        if known is None:
            ran = ran_by(job, snapshot.allocations.get(job.id), snapshot.now)
            known = self._levels[job.id] = snapshot.levels.level(job.spec, ran)
        return known

    def rests(self, holding: Holding) -> bool:
        """Has the job waited so long that its room may not be taken by service yet?"""
        job, snapshot = holding.job, self._snapshot
        allocation = snapshot.allocations.get(job.id)
        return not has_its_due(job, allocation, snapshot.now, self._waited_percent)
