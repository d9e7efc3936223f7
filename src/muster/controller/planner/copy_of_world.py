"""The planner's copy of the world: changed by deltas, read as snapshots whose changes are known."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from muster.controller.planner.protocol import (
    NOTHING_GIVEN,
    Placements,
    SnapshotDelta,
    allocation_moved,
    job_made,
    job_moved,
)
from muster.model.cluster import Node
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.snapshot import Finished, Snapshot
from muster.model.value import Instant, JobId, NodeId, replace
from muster.model.versioned import VersionedMapping, VersionHistory

K = TypeVar("K")
V = TypeVar("V")


class _Table(Generic[K, V]):
    """One mapping and its versions."""

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        self._history = VersionHistory(self.values)

    def changed(self, values: Mapping[K, V], gone: Iterable[K]) -> VersionedMapping[K, V]:
        for key, value in values.items():
            self._history.set(key, value)
        for key in gone:
            self._history.drop(key)
        return self._history.version()


class CopyOfWorld:
    """What the controller described so far."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(now=Instant(0))
        self._nodes: _Table[NodeId, Node] = _Table()
        self._jobs: _Table[JobId, Job] = _Table()
        self._allocations: _Table[JobId, Allocation] = _Table()
        self._finished: _Table[JobId, Finished] = _Table()

    def apply(
        self, delta: SnapshotDelta, given: Mapping[JobId, Placements] = NOTHING_GIVEN
    ) -> Snapshot:
        """The snapshot that the delta leads to; planners look only at what changed.

        given: what the last plan gave to jobs that start.
        """
        old = self.snapshot
        self.snapshot = replace(
            old,
            version=delta.version,
            now=delta.now,
            clusters=old.clusters if delta.clusters is None else delta.clusters,
            pools=old.pools if delta.pools is None else delta.pools,
            queues=old.queues if delta.queues is None else delta.queues,
            classes=old.classes if delta.classes is None else delta.classes,
            nodes=self._nodes.changed(delta.nodes, delta.gone_nodes),
            jobs=self._jobs.changed(self._changed_jobs(delta), delta.gone_jobs),
            allocations=self._allocations.changed(
                self._changed_allocations(delta, given), delta.gone_allocations
            ),
            finished=self._finished.changed(delta.finished, delta.gone_finished),
            reservations=old.reservations if delta.reservations is None else delta.reservations,
            used_lately=delta.used_lately,
            usual=old.usual if delta.usual is None else delta.usual,
            levels=old.levels if delta.levels is None else delta.levels,
        )
        return self.snapshot

    def _changed_jobs(self, delta: SnapshotDelta) -> dict[JobId, Job]:
        known = self._jobs.values
        changed = {new.moved.id: job_made(delta.specs, new) for new in delta.new_jobs}
        for moved in delta.moved_jobs:
            changed[moved.id] = job_moved(known[moved.id].spec, moved)
        return changed

    def _changed_allocations(
        self, delta: SnapshotDelta, given: Mapping[JobId, Placements]
    ) -> dict[JobId, Allocation]:
        known, changed = self._allocations.values, dict(delta.allocations)
        for moved in delta.moved_allocations:
            changed[moved.job] = allocation_moved(known[moved.job].placements, moved)
        for moved in delta.placed_allocations:
            changed[moved.job] = allocation_moved(given[moved.job], moved)
        return changed
