"""What is, in memory. One thread changes it, after the change is durable; any thread may look."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from threading import Lock

from muster.controller.messages import Fleet
from muster.controller.world.groups import Pools, UserGroups
from muster.controller.world.levels import LearnedLevels
from muster.controller.world.predictions import Predictions
from muster.controller.world.request_keys import RequestKeys
from muster.controller.world.reservations import current_windows
from muster.controller.world.usage import UsageLedger, capacity
from muster.model.cluster import Cluster, Node, Pool
from muster.model.event import PodSeen
from muster.model.history import Ended, Finished
from muster.model.job import WAITING, Ask, Job
from muster.model.kept_object import KeptObject, ObjectKey, Shelf
from muster.model.levels import PLAIN_LEVELS, Levels
from muster.model.placement import Allocation
from muster.model.site import Site, Token
from muster.model.snapshot import Snapshot, UsualAsk
from muster.model.steps import Step
from muster.model.value import ClusterName, Instant, JobId, NodeId, PoolName, replace
from muster.model.versioned import VersionHistory
from muster.stores.base import Batch, LiveState

FEWEST_SEEN = 64
"""So many tasks must have been seen before they count as usual."""

KINDS_KEPT = 128
"""So many kinds of asks are remembered."""


class UsualAsks:
    """What people ask for. What is usual is worked out again when twice as much was seen."""

    def __init__(self, usual: tuple[UsualAsk, ...]) -> None:
        self.usual = usual
        self.unwritten = False
        self._counts: dict[Ask, int] = {each.each: each.count for each in usual}
        self._total = sum(self._counts.values())
        self._next = max(FEWEST_SEEN, 2 * self._total)

    def count(self, job: Job) -> None:
        """Somebody asked for this."""
        for group in job.spec.groups:
            self._counts[group.each] = self._counts.get(group.each, 0) + group.count
            self._total += group.count
        if self._total >= self._next:
            self._publish()

    def _publish(self) -> None:
        often = sorted(self._counts.items(), key=lambda item: (-item[1], repr(item[0])))
        self._counts = dict(often[:KINDS_KEPT])
        self.usual = tuple(UsualAsk(each=each, count=count) for each, count in often[:KINDS_KEPT])
        self._total = sum(self._counts.values())
        self._next = 2 * self._total
        self.unwritten = True


POD_UID = "kubernetes/uid"
"""The label by which a job says which pod it is."""

MOST_PODS = 50_000
"""Of so many pods the last status is remembered."""


class LiveSteps:
    """The steps of attempts that hold something, by job and number."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._of: dict[JobId, dict[int, Step]] = {}
        for step in steps:
            self._of.setdefault(step.job, {})[step.number] = step

    def of(self, job: JobId) -> Mapping[int, Step]:
        return self._of.get(job, {})

    def running(self) -> tuple[Step, ...]:
        """Those that are not over, by job and number; the caller holds the record's lock."""
        return tuple(
            step
            for _, of_job in sorted(self._of.items())
            for _, step in sorted(of_job.items())
            if step.ended_at is None
        )

    def apply(self, batch: Batch) -> None:
        """Steps leave with their attempt, also when the next one came in the same batch."""
        if not self._of and not batch.steps:
            return
        placed = {each.job: each.attempt for each in batch.allocations}
        for job, attempt in placed.items():
            if any(step.attempt != attempt for step in islice(self.of(job).values(), 1)):
                del self._of[job]
        for step in batch.steps:
            if placed.get(step.job, step.attempt) == step.attempt:
                self._of.setdefault(step.job, {})[step.number] = step
        for job in batch.freed:
            self._of.pop(job, None)


ClusterLevels = Mapping[ClusterName, tuple[str, ...]]
"""The levels of the topology that clusters tell of, of those that do."""


class Record:
    """The live world: frozen values in dictionaries that only `apply` changes."""

    def __init__(self, state: LiveState, finished: Mapping[JobId, Finished], site: Site) -> None:
        self.lock = Lock()
        self.version = state.version
        self.next_job = state.next_job
        self.last_event = state.last_event
        self.site = state.site or site
        self.jobs: dict[JobId, Job] = {job.id: job for job in sorted(state.jobs, key=_by_id)}
        self.allocations: dict[JobId, Allocation] = {each.job: each for each in state.allocations}
        self.steps = LiveSteps(state.steps)
        # Of pods that run or did lately: their backends report it again after a restart.
        self.pods: dict[tuple[JobId, int], PodSeen] = {}
        self.pod_jobs: dict[str, JobId] = {}
        self.clusters: dict[ClusterName, Cluster] = {each.name: each for each in state.clusters}
        self.nodes: dict[NodeId, Node] = {each.id: each for each in state.nodes}
        self.tokens: dict[str, Token] = {each.id: each for each in state.tokens}
        self.objects: dict[ObjectKey, KeptObject] = {each.key: each for each in state.objects}
        # The same by where they stand, to count those of one kind without looking at all.
        self.shelves: dict[Shelf, dict[ObjectKey, KeptObject]] = {}
        for each in state.objects:
            self.shelves.setdefault(each.key.shelf, {})[each.key] = each
        self.finished: dict[JobId, Finished] = dict(finished)
        # By the job that others depend on, those others.
        self._dependents: dict[JobId, set[JobId]] = {}
        for job in self.jobs.values():
            self._follow_dependencies(None, job)
        self.jobs_of_user = Counter(job.spec.user for job in self.jobs.values())
        self.request_keys = RequestKeys()
        self.seen = UsualAsks(state.usual)
        self.usage = UsageLedger(state.used)
        self.predictions = Predictions()
        self.levels = LearnedLevels()
        self.whole = capacity(self.nodes)
        self.nodes_version = 1
        # Of which rules, nodes and levels, and the pools that these make.
        self._pools: tuple[Pools, int, ClusterLevels, Pools] = ({}, 0, {}, {})
        self.groups = UserGroups()
        # The last version at which another process gave out room: plans from before do not stand.
        self.foreign_placement_at = -1
        # The last version that another process wrote.
        self.foreign_version = -1
        # Those few whose claims must be looked after in every cycle, and that a plan may end.
        self.claimed: set[JobId] = {job.id for job in self.jobs.values() if job.claim}
        self.endable: set[JobId] = {job.id for job in self.jobs.values() if _is_endable(job)}
        self.waiting: set[JobId] = {job.id for job in self.jobs.values() if job.state in WAITING}
        # Planners follow what changed; these keep count of it, so that planners need not search.
        self._job_versions = VersionHistory(self.jobs)
        self._allocation_versions = VersionHistory(self.allocations)
        self._node_versions = VersionHistory(self.nodes)
        self._finished_versions = VersionHistory(self.finished)
        self._count_initial()

    def _count_initial(self) -> None:
        """Count what was there before."""
        for job in self.jobs.values():
            self.predictions.mark(job)
        for allocation in self.allocations.values():
            if allocation.job in self.jobs:
                self.usage.hold(self.jobs[allocation.job], allocation, self.whole)

    def pools(self, site: Site) -> Mapping[PoolName, Pool]:
        """The pools of these rules; nodes in a pool that they do not name are in a plain one.

        A pool without levels of its own has those that its cluster tells.
        """
        levels = {each.name: each.levels for each in self.clusters.values() if each.levels}
        of_rules, version, of_clusters, found = self._pools
        if (version, of_clusters) != (self.nodes_version, levels) or of_rules is not site.pools:
            plain = {
                node.pool: Pool(name=node.pool, cluster=node.cluster)
                for node in self.nodes.values()
                if node.pool not in site.pools
            }
            found = {**site.pools, **plain} if plain else site.pools
            if levels:
                found = {name: _with_levels(each, levels) for name, each in found.items()}
            self._pools = (site.pools, self.nodes_version, levels, found)
        return self.groups.let_into(found)

    def snapshot(self, now: Instant) -> Snapshot:
        """The world as of now; unchanged values are the same objects as before."""
        self.groups.look_again(self.site.pools, self.jobs, now)
        with self.lock:
            return Snapshot(
                version=self.version,
                now=now,
                clusters=dict(self.clusters),
                pools=self.pools(self.site),
                nodes=self._node_versions.version(),
                queues=self.site.queues,
                classes=self.site.classes,
                jobs=self._job_versions.version(),
                allocations=self._allocation_versions.version(),
                reservations=current_windows(self.site.reservations, now),
                finished=self._finished_versions.version(),
                used_lately=self.usage.lately(now, self.site.policy.share),
                usual=self.seen.usual,
                levels=self.service_levels(now),
            )

    def fleet(self, now: Instant) -> Fleet:
        """The part of the world that does not grow with the queue."""
        with self.lock:
            return Fleet(
                clusters=dict(self.clusters),
                pools=self.pools(self.site),
                nodes=self._node_versions.version(),
                allocations=self._allocation_versions.version(),
                reservations=current_windows(self.site.reservations, now),
            )

    def service_levels(self, now: Instant) -> Levels:
        """The levels of service as far as they are learned; none if no rule asks for them."""
        if not self.site.policy.has_levels:
            return PLAIN_LEVELS
        self.levels.aim_at(self.site.policy.aim)
        return self.levels.levels(self.jobs, self.allocations, now)

    def apply(self, batch: Batch) -> None:
        """Change to what was written."""
        with self.lock:
            self.version = batch.version
            self.next_job = max(self.next_job, batch.next_job)
            self._apply_rules(batch)
            self._apply_nodes(batch)
            self._apply_jobs(batch)
            self.request_keys.learn(batch.audit)
            if batch.usual:
                self.seen.unwritten = False
            for token in batch.tokens:
                self.tokens[token.id] = token
            for each in batch.objects:
                self.objects[each.key] = each
                self.shelves.setdefault(each.key.shelf, {})[each.key] = each
            for removed in batch.removed:
                self.objects.pop(removed.key, None)
                self.shelves.get(removed.key.shelf, {}).pop(removed.key, None)

    def is_awaited(self, job: JobId) -> bool:
        """Does a live job depend on it?"""
        return job in self._dependents

    def dependents(self, jobs: Iterable[JobId]) -> list[Job]:
        """The live jobs that depend on one of these, by id. For the thread of the journal."""
        found = {each for job in jobs for each in self._dependents.get(job, ())}
        return [self.jobs[each] for each in sorted(found)]

    def every_job(self) -> tuple[Job, ...]:
        """All jobs of this moment: for other threads than that of the journal."""
        with self.lock:
            return tuple(self.jobs.values())

    def every_allocation(self) -> tuple[Allocation, ...]:
        """All allocations of this moment, likewise."""
        with self.lock:
            return tuple(self.allocations.values())

    def learn_finished(self, finished: Mapping[JobId, Finished]) -> None:
        """How jobs came out that ended before any live job depended on them."""
        with self.lock:
            for job, came_out in finished.items():
                self._finished_versions.set(job, came_out)

    def _apply_rules(self, batch: Batch) -> None:
        if batch.site is not None:
            self.site = batch.site
        for cluster in batch.clusters:
            self.clusters[cluster.name] = cluster

    def _apply_nodes(self, batch: Batch) -> None:
        for node in batch.nodes:
            self._node_versions.set(node.id, node)
        for name in batch.gone:
            self._node_versions.drop(name)
        if batch.nodes or batch.gone:
            self.whole = capacity(self.nodes)
            self.nodes_version += 1

    def _apply_jobs(self, batch: Batch) -> None:
        for row in batch.used:
            self.usage.rows[row.queue, row.user] = row
        for job in batch.jobs:
            before = self.jobs.get(job.id)
            if before is None:
                self.seen.count(job)
                self.jobs_of_user[job.spec.user] += 1
            self._follow_dependencies(before, job)
            self._job_versions.set(job.id, job)
            self._mark(job)
            self.predictions.mark(job)
        for allocation in batch.allocations:
            self._allocation_versions.set(allocation.job, allocation)
        for job_id in batch.freed:
            self._allocation_versions.drop(job_id)
        self._apply_holds(batch)
        self.steps.apply(batch)
        self._apply_pods(batch)
        for ended in batch.ended:
            if uid := ended.job.spec.labels.get(POD_UID):
                self.pod_jobs[uid] = ended.job.id
            self._end(ended)

    def _apply_pods(self, batch: Batch) -> None:
        for event in batch.events:
            if isinstance(event, PodSeen):
                self.pods.pop((event.job, event.task), None)
                self.pods[event.job, event.task] = event
        for known in (self.pods, self.pod_jobs):
            while len(known) > MOST_PODS:
                known.pop(next(iter(known)))  # pyright: ignore[reportArgumentType]

    def _apply_holds(self, batch: Batch) -> None:
        """Those whose job or allocation is another one, each once, while the ended are there."""
        touched = {job.id for job in batch.jobs}
        touched.update([allocation.job for allocation in batch.allocations])
        touched.update(batch.freed)
        touched.update([ended.job.id for ended in batch.ended])
        for job_id in touched:
            job = self.jobs.get(job_id)
            if job is not None:
                self.usage.hold(job, self.allocations.get(job_id), self.whole)

    def _learn(self, ended: Ended) -> None:
        """Waiting jobs like this one are predicted again, if much more is known now."""
        self.levels.learn(ended)
        alike = self.predictions.learn(ended)
        waiting = (self.jobs[each] for each in alike if each in self.jobs)
        for job in self.predictions.refreshed(waiting):
            self._job_versions.set(job.id, job)

    def _mark(self, job: Job) -> None:
        _put(self.waiting, job.id, belongs=job.state in WAITING)
        _put(self.claimed, job.id, belongs=job.claim is not None)
        _put(self.endable, job.id, belongs=_is_endable(job))

    def _end(self, ended: Ended) -> None:
        self.claimed.discard(ended.job.id)
        self.endable.discard(ended.job.id)
        self.waiting.discard(ended.job.id)
        if self._job_versions.drop(ended.job.id) is None:
            return
        self.jobs_of_user[ended.job.spec.user] -= 1
        if not self.jobs_of_user[ended.job.spec.user]:
            del self.jobs_of_user[ended.job.spec.user]
        self._learn(ended)
        if ended.job.id in self._dependents:
            self._finished_versions.set(ended.job.id, ended.outcome)
        for other in dependencies_of(ended.job):
            self._depends_no_longer(ended.job.id, other)

    def _follow_dependencies(self, before: Job | None, after: Job) -> None:
        old = before.spec.after if before is not None else ()
        if old is after.spec.after:
            return
        new = dependencies_of(after)
        for other in new:
            self._dependents.setdefault(other, set()).add(after.id)
        for other in dependencies_of(before) if before is not None else ():
            if other not in new:
                self._depends_no_longer(after.id, other)

    def _depends_no_longer(self, job: JobId, other: JobId) -> None:
        dependents = self._dependents.get(other, set())
        dependents.discard(job)
        if not dependents:
            self._dependents.pop(other, None)
            if other in self.finished:
                self._finished_versions.drop(other)


def dependencies_of(job: Job) -> tuple[JobId, ...]:
    """The jobs that this one depends on."""
    return tuple(each.job for each in job.spec.after if each.job is not None)


def _put(marked: set[JobId], job_id: JobId, *, belongs: bool) -> None:
    if belongs:
        marked.add(job_id)
    else:
        marked.discard(job_id)


def _by_id(job: Job) -> JobId:
    return job.id


def _is_endable(job: Job) -> bool:
    """May it end without having run: by its deadline, or because it waits for what cannot be?"""
    return job.spec.deadline is not None or job.spec.cancel_if_hopeless


def _with_levels(pool: Pool, levels: ClusterLevels) -> Pool:
    known = levels.get(pool.cluster, ())
    return replace(pool, levels=known) if known and not pool.levels else pool
