"""What jobs are called wherever they are shown: `17`, or `12_3` for a part of an array."""

from collections.abc import Iterable

from muster.controller.world.journal import Journal
from muster.controller.world.transaction import Change
from muster.model.value import JobId
from muster.model.words import Labels
from muster.stores.base import Batch, HistoryQuery

MOST_REMEMBERED = 10_000
"""Of so many parts that ended lately it is known what they are called."""


class JobLabels:
    """Knows the parts of arrays that go on or ended lately; the store has the rest."""

    def __init__(self, journal: Journal) -> None:
        self._jobs = journal.record.jobs
        self._store = journal.store
        self._lately: dict[JobId, str] = {}
        journal.subscribers.add(self._note)

    def known(self, jobs: Iterable[JobId]) -> Labels:
        """Those of parts of arrays, as far as they are known at once; others go by their id."""
        labels: dict[JobId, str] = {}
        for each in jobs:
            job = self._jobs.get(each)
            if job is not None and job.spec.array is not None:
                labels[each] = job.label
            elif each in self._lately:
                labels[each] = self._lately[each]
        return labels

    def found(self, jobs: Iterable[JobId]) -> Labels:
        """The same, also of jobs that ended long ago. The store is asked: not where others wait."""
        wanted = set(jobs)
        known = self.known(wanted)
        rest = tuple(sorted(each for each in wanted - known.keys() if each not in self._jobs))
        if not rest:
            return known
        ended = self._store.ended(HistoryQuery(jobs=rest, limit=len(rest))).jobs
        return {**known, **{each.job.id: each.job.label for each in ended if each.job.spec.array}}

    def _note(self, batch: Batch, _changes: tuple[Change, ...]) -> None:
        for ended in batch.ended:
            if ended.job.spec.array is not None:
                self._lately[ended.job.id] = ended.job.label
        while len(self._lately) > MOST_REMEMBERED:
            del self._lately[next(iter(self._lately))]
