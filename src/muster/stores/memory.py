"""The store that forgets with the process: for the simulator, for tests, and to try things out."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from muster.model.cluster import Cluster, Node
from muster.model.dates import KeptDate
from muster.model.errors import StaleSnapshotError
from muster.model.event import Event
from muster.model.history import Attempt, AuditEntry, Ended, Finished
from muster.model.job import Job
from muster.model.kept_object import KeptObject, ObjectKey
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.queue import is_within
from muster.model.site import Token
from muster.model.snapshot import UsedLately
from muster.model.steps import Step
from muster.model.value import ClusterName, Instant, JobId, NodeId, QueuePath, UserName, replace
from muster.stores.base import (
    Batch,
    EndedBy,
    EndedPage,
    EventQuery,
    HistoryQuery,
    LiveState,
    Stored,
)
from muster.stores.bodies import job_of, requests_in
from muster.stores.loading import live_steps
from muster.stores.marks import mark_of, page, size

CHANGES_KEPT = 10_000
"""A follower may be this many versions behind; further, it loads everything again."""


NOTHING_LIVE = LiveState()


class MemoryStore:
    """`Store`, `History` and `Leadership` in dictionaries. It always leads.

    state: what is live at the beginning.
    """

    def __init__(self, state: LiveState = NOTHING_LIVE) -> None:
        self._lock = Lock()
        self._live = _Live(state)
        self._past = _History()
        self._batches: deque[Batch] = deque(maxlen=CHANGES_KEPT)
        self._listeners: list[Callable[[], None]] = []

    def load(self) -> LiveState:
        with self._lock:
            state = self._live.state()
            held = {each.job for each in state.allocations}
            steps = live_steps(self._past.steps_of(held), state.allocations)
            return replace(state, steps=tuple(steps))

    def append(self, batch: Batch) -> None:
        with self._lock:
            if self._live.version != batch.version - 1:
                raise StaleSnapshotError(expected=batch.version - 1, found=self._live.version)
            self._past.take(batch, first_event=self._live.last_event + 1)
            self._live.take(batch)
            self._batches.append(batch)
        for wake in tuple(self._listeners):
            wake()

    def since(self, version: int) -> tuple[Batch, ...]:
        with self._lock:
            found = tuple(batch for batch in self._batches if batch.version > version)
            is_whole = not found or found[0].version == version + 1
            if not is_whole:
                raise StaleSnapshotError(expected=version, found=self._live.version)
            return tuple(
                replace(batch, launches=(), attempts=(), dates=(), audit=requests_in(batch.audit))
                for batch in found
            )

    def listen(self, wake: Callable[[], None]) -> None:
        self._listeners.append(wake)

    def launch(self, job: JobId) -> Launch | None:
        return self._past.launches.get(job)

    def launches(self, jobs: tuple[JobId, ...]) -> dict[JobId, Launch]:
        kept = self._past.launches
        return {job: kept[job] for job in jobs if job in kept}

    def close(self) -> None:
        """Nothing is open."""

    def ended(self, query: HistoryQuery) -> EndedPage:
        with self._lock:
            found = [ended for ended in self._past.ended.values() if self._past.fits(query, ended)]
        mark = mark_of(query)
        order = _by_id if query.order is EndedBy.ID else _by_end
        last = None if mark is None else (mark.ended_at, mark.job)
        if last is not None:
            bound = last[1:] if query.order is EndedBy.ID else last
            found = [ended for ended in found if order(ended) < bound]
        found.sort(key=order, reverse=True)
        return page(query, found[: size(query) + 1])

    def finished(self, jobs: tuple[JobId, ...]) -> dict[JobId, Finished]:
        with self._lock:
            found = {job: self._past.ended[job] for job in jobs if job in self._past.ended}
        return {job: ended.outcome for job, ended in found.items()}

    def attempts(self, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        with self._lock:
            of_jobs = (self._past.attempts.get(job, {}) for job in sorted(set(jobs)))
            return tuple(attempt for of_job in of_jobs for _, attempt in sorted(of_job.items()))

    def steps(self, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        with self._lock:
            return tuple(self._past.steps_of(jobs))

    def events(self, query: EventQuery) -> tuple[Stored, ...]:
        with self._lock:
            events = self._past.events
            numbers = events if query.job is None else self._past.events_of.get(query.job, ())
            found = [number for number in numbers if number > query.after]
            wanted = found[: max(1, query.limit)]
            return tuple(Stored(number=number, event=events[number]) for number in wanted)

    def audit(self, *, before: Instant | None, limit: int) -> tuple[AuditEntry, ...]:
        with self._lock:
            entries = list(enumerate(self._past.audit))
        newest = sorted(
            ((each.at, number, each) for number, each in entries if _is_before(each, before)),
            key=lambda item: item[:2],
            reverse=True,
        )
        last_at = newest[: max(1, limit)][-1][0] if newest else 0
        return tuple(entry for at, _, entry in newest if at >= last_at)

    def dates(self, *, since: Instant, limit: int) -> tuple[KeptDate, ...]:
        with self._lock:
            found = [each for each in self._past.dates.values() if each.started_at >= since]
        newest = sorted(found, key=lambda each: (each.started_at, each.job), reverse=True)
        return tuple(newest[: max(0, limit)])

    def forget(self, before: Instant, *, limit: int) -> int:
        with self._lock:
            old = [each for each in self._past.ended.values() if each.ended_at < before]
            leaving = sorted(old, key=_by_end)[: max(0, limit)]
            self._past.forget(leaving, self._live.jobs.values())
            self._past.forget_others(before)
            return len(leaving)

    def lead(self) -> bool:
        return True

    def step_down(self) -> None:
        """There is no other process that could lead."""


class _Live:
    """What is live, by name and id."""

    def __init__(self, state: LiveState) -> None:
        self.version = state.version
        self.next_job = state.next_job
        self.last_event = state.last_event
        self.jobs: dict[JobId, Job] = {each.id: each for each in state.jobs}
        self.allocations: dict[JobId, Allocation] = {each.job: each for each in state.allocations}
        self.clusters: dict[ClusterName, Cluster] = {each.name: each for each in state.clusters}
        self.nodes: dict[NodeId, Node] = {each.id: each for each in state.nodes}
        self.site = state.site
        self.used: dict[tuple[QueuePath, UserName], UsedLately] = {
            (each.queue, each.user): each for each in state.used
        }
        self.usual = state.usual
        self.tokens: dict[str, Token] = {each.id: each for each in state.tokens}
        self.objects: dict[ObjectKey, KeptObject] = {each.key: each for each in state.objects}

    def state(self) -> LiveState:
        return LiveState(
            version=self.version,
            next_job=self.next_job,
            last_event=self.last_event,
            jobs=tuple(job for _, job in sorted(self.jobs.items())),
            allocations=tuple(each for _, each in sorted(self.allocations.items())),
            clusters=tuple(each for _, each in sorted(self.clusters.items())),
            nodes=tuple(each for _, each in sorted(self.nodes.items())),
            site=self.site,
            used=tuple(each for _, each in sorted(self.used.items())),
            usual=self.usual,
            tokens=tuple(each for _, each in sorted(self.tokens.items())),
            objects=tuple(sorted(self.objects.values(), key=_by_place)),
        )

    def take(self, batch: Batch) -> None:
        self.version = batch.version
        self.next_job = batch.next_job
        self.last_event += len(batch.events)
        for job in batch.jobs:
            self.jobs[job.id] = job
        for allocation in batch.allocations:
            self.allocations[allocation.job] = allocation
        for used in batch.used:
            self.used[used.queue, used.user] = used
        self._take_rules(batch)
        for ended in batch.ended:
            self.jobs.pop(ended.job.id, None)
        for job in batch.freed:
            self.allocations.pop(job, None)
        for node in batch.gone:
            self.nodes.pop(node, None)

    def _take_rules(self, batch: Batch) -> None:
        """What changes seldom."""
        for cluster in batch.clusters:
            self.clusters[cluster.name] = cluster
        for node in batch.nodes:
            self.nodes[node.id] = node
        for token in batch.tokens:
            self.tokens[token.id] = token
        self.site = batch.site or self.site
        self.usual = batch.usual or self.usual
        for each in batch.objects:
            self.objects[each.key] = each
        for removed in batch.removed:
            self.objects.pop(removed.key, None)


class _History:
    """What has ended, and what is read only on request."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.events_of: dict[JobId, list[int]] = {}
        self.ended: dict[JobId, Ended] = {}
        self.attempts: dict[JobId, dict[int, Attempt]] = {}
        self.steps: dict[JobId, dict[tuple[int, int], Step]] = {}
        self.launches: dict[JobId, Launch] = {}
        self.audit: list[AuditEntry] = []
        self.dates: dict[JobId, KeptDate] = {}

    def take(self, batch: Batch, *, first_event: int) -> None:
        for number, event in enumerate(batch.events, first_event):
            self.events[number] = event
            job = job_of(event)
            if job is not None:
                self.events_of.setdefault(job, []).append(number)
        for attempt in batch.attempts:
            self.attempts.setdefault(attempt.job, {})[attempt.number] = attempt
        for step in batch.steps:
            self.steps.setdefault(step.job, {})[step.attempt, step.number] = step
        for ended in batch.ended:
            self.ended[ended.job.id] = ended
        for each in batch.launches:
            self.launches[each.job] = each.launch
        self.audit.extend(batch.audit)
        self.dates.update({each.job: each for each in batch.dates})

    def fits(self, query: HistoryQuery, ended: Ended) -> bool:
        """Does this job pass every filter that is given?"""
        job, spec = ended.job, ended.job.spec
        array = None if spec.array is None else spec.array.array
        tests = (
            not query.jobs or job.id in query.jobs,
            not query.arrays or array in query.arrays,
            not query.users or spec.user in query.users,
            not query.queues or any(is_within(spec.queue, queue) for queue in query.queues),
            not query.nodes or not self._nodes(job.id).isdisjoint(query.nodes),
            not query.states or job.state in query.states,
            query.name is None or spec.name == query.name,
            query.ended_from is None or ended.ended_at >= query.ended_from,
            query.ended_to is None or ended.ended_at < query.ended_to,
        )
        return all(tests)

    def forget(self, leaving: list[Ended], live: Iterable[Job]) -> None:
        """Drop these; the launch of an array stays until the last of its jobs leaves."""
        for ended in leaving:
            del self.ended[ended.job.id]
            self.attempts.pop(ended.job.id, None)
            self.steps.pop(ended.job.id, None)
            self.dates.pop(ended.job.id, None)
            for number in self.events_of.pop(ended.job.id, []):
                del self.events[number]
        others = [*live, *(each.job for each in self.ended.values())]
        used = {key for other in others for key in _launches_of(other)}
        for key in {key for ended in leaving for key in _launches_of(ended.job)} - used:
            self.launches.pop(key, None)

    def forget_others(self, before: Instant) -> None:
        """What happened to nodes and rules goes as well."""
        old = [
            number
            for number, event in self.events.items()
            if event.at < before and job_of(event) is None
        ]
        for number in old:
            del self.events[number]

    def steps_of(self, jobs: Iterable[JobId]) -> Iterator[Step]:
        """Their steps, by job, attempt and number."""
        of_jobs = (self.steps.get(job, {}) for job in sorted(set(jobs)))
        return (step for of_job in of_jobs for _, step in sorted(of_job.items()))

    def _nodes(self, job: JobId) -> set[NodeId]:
        return {node for each in self.attempts.get(job, {}).values() for node in each.nodes}


def _launches_of(job: Job) -> tuple[JobId, ...]:
    return (job.id,) if job.spec.array is None else (job.id, job.spec.array.array)


def _by_end(ended: Ended) -> tuple[int, ...]:
    return ended.ended_at, ended.job.id


def _by_place(each: KeptObject) -> tuple[str, ...]:
    key = each.key
    return key.group, key.resource, key.namespace, key.name


def _by_id(ended: Ended) -> tuple[int, ...]:
    return (ended.job.id,)


def _is_before(entry: AuditEntry, before: Instant | None) -> bool:
    return before is None or entry.at < before
