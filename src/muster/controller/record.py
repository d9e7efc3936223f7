"""What is, in memory. One thread changes it, after the change is durable; any thread may look."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from threading import Lock

from muster.controller.asked import Fleet
from muster.controller.foresight import Foresight
from muster.controller.people import People, Pools
from muster.controller.standings import Standings
from muster.controller.using import Using, capacity
from muster.controller.windows import windows
from muster.model.cluster import Cluster, Node, Pool
from muster.model.edition import Press
from muster.model.history import Ended
from muster.model.job import WAITING, Ask, Job
from muster.model.levels import PLAIN_LEVELS, Levels
from muster.model.placement import Allocation
from muster.model.site import Site, Token
from muster.model.snapshot import Finished, Snapshot, UsualAsk
from muster.model.steps import Step
from muster.model.value import ClusterName, Instant, JobId, NodeId, PoolName
from muster.stores.base import Batch, LiveState

FEWEST_SEEN = 64
"""So many tasks must have been seen before they count as usual."""

KINDS_KEPT = 128
"""So many kinds of asks are remembered."""


class Seen:
    """What people ask for. What is usual is told anew only when twice as much was seen."""

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
            self._tell()

    def _tell(self) -> None:
        often = sorted(self._counts.items(), key=lambda item: (-item[1], repr(item[0])))
        self._counts = dict(often[:KINDS_KEPT])
        self.usual = tuple(UsualAsk(each=each, count=count) for each, count in often[:KINDS_KEPT])
        self._total = sum(self._counts.values())
        self._next = 2 * self._total
        self.unwritten = True


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

    def take(self, batch: Batch) -> None:
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


class Record:
    """The live world: frozen values in dictionaries that only `take` and `settle` change."""

    def __init__(self, state: LiveState, finished: Mapping[JobId, Finished], site: Site) -> None:
        self.lock = Lock()
        self.version = state.version
        self.next_job = state.next_job
        self.last_event = state.last_event
        self.site = state.site or site
        self.jobs: dict[JobId, Job] = {job.id: job for job in sorted(state.jobs, key=_by_id)}
        self.allocations: dict[JobId, Allocation] = {each.job: each for each in state.allocations}
        self.steps = LiveSteps(state.steps)
        self.clusters: dict[ClusterName, Cluster] = {each.name: each for each in state.clusters}
        self.nodes: dict[NodeId, Node] = {each.id: each for each in state.nodes}
        self.tokens: dict[str, Token] = {each.id: each for each in state.tokens}
        self.finished: dict[JobId, Finished] = dict(finished)
        self._awaited = Counter(each for job in self.jobs.values() for each in awaited_by(job))
        self.seen = Seen(state.usual)
        self.using = Using(state.used)
        self.foresight = Foresight()
        self.standings = Standings()
        self.whole = capacity(self.nodes)
        self.nodes_version = 1
        # Of which rules and nodes, and the pools that these make.
        self._pools: tuple[Pools, int, Pools] = ({}, 0, {})
        self.people = People()
        # The last version at which another process gave out room: plans from before do not stand.
        self.given_out_at = -1
        # The last version that another process wrote.
        self.heard_at = -1
        # Those few whose claims must be looked after in every cycle, and that a plan may end.
        self.claimed: set[JobId] = {job.id for job in self.jobs.values() if job.claim}
        self.endable: set[JobId] = {job.id for job in self.jobs.values() if _is_endable(job)}
        self.waiting: set[JobId] = {job.id for job in self.jobs.values() if job.state in WAITING}
        # Planners follow what changed; these tell them, so that they need not look for it.
        self._jobs_told = Press(self.jobs)
        self._allocations_told = Press(self.allocations)
        self._nodes_told = Press(self.nodes)
        self._take_stock()

    def _take_stock(self) -> None:
        """Count what was there before."""
        for job in self.jobs.values():
            self.foresight.mark(job)
        for allocation in self.allocations.values():
            if allocation.job in self.jobs:
                self.using.hold(self.jobs[allocation.job], allocation, self.whole)

    def pools(self, site: Site) -> Mapping[PoolName, Pool]:
        """The pools of these rules; nodes in a pool that they do not name are in a plain one."""
        of_rules, version, found = self._pools
        if of_rules is not site.pools or version != self.nodes_version:
            version = self.nodes_version
            plain = {
                node.pool: Pool(name=node.pool, cluster=node.cluster)
                for node in self.nodes.values()
                if node.pool not in site.pools
            }
            found = {**site.pools, **plain} if plain else site.pools
            self._pools = (site.pools, version, found)
        return self.people.let_into(found)

    def snapshot(self, now: Instant) -> Snapshot:
        """The world as of now; unchanged values are the same objects as before."""
        self.people.look_again(self.site.pools, self.jobs, now)
        with self.lock:
            return Snapshot(
                version=self.version,
                now=now,
                clusters=dict(self.clusters),
                pools=self.pools(self.site),
                nodes=self._nodes_told.edition(),
                queues=self.site.queues,
                classes=self.site.classes,
                jobs=self._jobs_told.edition(),
                allocations=self._allocations_told.edition(),
                reservations=windows(self.site.reservations, now),
                finished=dict(self.finished),
                used_lately=self.using.lately(now, self.site.policy.share),
                usual=self.seen.usual,
                levels=self._levels(now),
            )

    def fleet(self, now: Instant) -> Fleet:
        """The part of the world that does not grow with the queue."""
        with self.lock:
            return Fleet(
                clusters=dict(self.clusters),
                pools=self.pools(self.site),
                nodes=self._nodes_told.edition(),
                allocations=self._allocations_told.edition(),
                reservations=windows(self.site.reservations, now),
            )

    def _levels(self, now: Instant) -> Levels:
        if not self.site.policy.has_levels:
            return PLAIN_LEVELS
        self.standings.aim_at(self.site.policy.aim)
        return self.standings.levels(self.jobs, self.allocations, now)

    def take(self, batch: Batch) -> None:
        """Let what was written be so."""
        with self.lock:
            self.version = batch.version
            self.next_job = max(self.next_job, batch.next_job)
            self._take_rules(batch)
            self._take_nodes(batch)
            self._take_jobs(batch)
            if batch.usual:
                self.seen.unwritten = False
            for token in batch.tokens:
                self.tokens[token.id] = token

    def is_awaited(self, job: JobId) -> bool:
        """Does a live job depend on it?"""
        return job in self._awaited

    def _take_rules(self, batch: Batch) -> None:
        if batch.site is not None:
            self.site = batch.site
        for cluster in batch.clusters:
            self.clusters[cluster.name] = cluster

    def _take_nodes(self, batch: Batch) -> None:
        for node in batch.nodes:
            self.nodes[node.id] = node
            self._nodes_told.note(node.id)
        for name in batch.gone:
            self.nodes.pop(name, None)
            self._nodes_told.note(name)
        if batch.nodes or batch.gone:
            self.whole = capacity(self.nodes)
            self.nodes_version += 1

    def _take_jobs(self, batch: Batch) -> None:
        for row in batch.used:
            self.using.rows[row.queue, row.user] = row
        for job in batch.jobs:
            if job.id not in self.jobs:
                if job.spec.after:
                    self._awaited.update(awaited_by(job))
                self.seen.count(job)
            self.jobs[job.id] = job
            self._jobs_told.note(job.id)
            self._mark(job)
            self.foresight.mark(job)
        for allocation in batch.allocations:
            self.allocations[allocation.job] = allocation
            self._allocations_told.note(allocation.job)
        for job_id in batch.freed:
            self.allocations.pop(job_id, None)
            self._allocations_told.note(job_id)
        self._take_holds(batch)
        self.steps.take(batch)
        for ended in batch.ended:
            self._end(ended)

    def _take_holds(self, batch: Batch) -> None:
        """Those whose job or allocation is another one, each once, while the ended are there."""
        touched = {job.id for job in batch.jobs}
        touched.update([allocation.job for allocation in batch.allocations])
        touched.update(batch.freed)
        touched.update([ended.job.id for ended in batch.ended])
        for job_id in touched:
            job = self.jobs.get(job_id)
            if job is not None:
                self.using.hold(job, self.allocations.get(job_id), self.whole)

    def _learn(self, ended: Ended) -> None:
        """What is known now of jobs like this one is told to those of them that wait."""
        self.standings.learn(ended)
        alike = self.foresight.learn(ended)
        if alike and self.site.policy.foresees:
            waiting = (self.jobs[each] for each in alike if each in self.jobs)
            for job in self.foresight.refreshed(waiting):
                self.jobs[job.id] = job
                self._jobs_told.note(job.id)

    def _mark(self, job: Job) -> None:
        _put(self.waiting, job.id, belongs=job.state in WAITING)
        _put(self.claimed, job.id, belongs=job.claim is not None)
        _put(self.endable, job.id, belongs=_is_endable(job))

    def _end(self, ended: Ended) -> None:
        self.claimed.discard(ended.job.id)
        self.endable.discard(ended.job.id)
        self.waiting.discard(ended.job.id)
        self._jobs_told.note(ended.job.id)
        if self.jobs.pop(ended.job.id, None) is None:
            return
        self._learn(ended)
        if ended.job.id in self._awaited:
            self.finished[ended.job.id] = Finished(
                state=ended.job.state, started_at=ended.started_at, ended_at=ended.ended_at
            )
        for other in awaited_by(ended.job):
            self._awaited[other] -= 1
            if self._awaited[other] <= 0:
                del self._awaited[other]
                self.finished.pop(other, None)


def awaited_by(job: Job) -> tuple[JobId, ...]:
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
