"""Live jobs: from memory. Every question about other people's jobs says who asks."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile
from operator import attrgetter

from muster.controller.messages import Caller, JobDetail, JobQuery, JobsPage, JobView
from muster.controller.queries.labels import JobLabels
from muster.controller.queries.selection import select_jobs
from muster.controller.queries.sight import Masks, Sight
from muster.controller.queries.waits import CurrentWaits
from muster.controller.rights import demand_owner, demand_viewer, may_change, owns
from muster.controller.world.journal import Journal, KeepingStore
from muster.model.errors import UnknownError
from muster.model.history import Ended
from muster.model.job import EndReason, HeldBy, Job, JobState, Preempted
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.plan import Wait
from muster.model.pod import PodStatus
from muster.model.reason import ForOthers
from muster.model.snapshot import Finished
from muster.model.steps import Step
from muster.model.value import JobId, replace
from muster.model.words import NO_LABELS
from muster.stores.base import HistoryQuery


class JobQueries:
    """Jobs as people see them."""

    def __init__(self, journal: Journal, waits: CurrentWaits) -> None:
        self._record = journal.record
        self._store: KeepingStore = journal.store
        self._waits = waits
        self._masks = Masks()
        self.labels = JobLabels(journal)

    def page(self, caller: Caller, query: JobQuery) -> JobsPage:
        """Live jobs in the order of their ids, a page of them."""
        demand_viewer(caller, self._record.site)
        found = self._selected(caller, query)
        page = tuple([self.view(job) for job in islice(found, query.limit)])
        is_last = next(found, None) is None
        return JobsPage(jobs=page, next=None if is_last else page[-1].job.id)

    def view(self, job: Job) -> JobView:
        """A live job with what it holds, or waits for as far as the last plan knows it."""
        allocation, wait = self._record.allocations.get(job.id), self._waits.of(job)
        named = _named(job, wait)
        labels = self.labels.known(named) if named else NO_LABELS
        # Long lists are of jobs that wait and hold nothing: those take the short way.
        if allocation is None:
            return JobView(job=job, wait=wait, labels=labels)
        node = self._record.nodes.get(allocation.placements[0].node)
        return JobView(
            job=job,
            allocation=allocation,
            wait=wait,
            labels=labels,
            started_at=allocation.started_at,
            pretend=node is not None and node.pretend,
        )

    def detail(self, caller: Caller, job_id: JobId) -> JobDetail:
        """One job, live or over, with what it ran and its attempts."""
        demand_viewer(caller, self._record.site)
        live = self._record.jobs.get(job_id)
        view = self.view(live) if live is not None else _view_of(self._ended(job_id))
        may_see = self.may_see(caller, view.job)
        launch = self.whole_launch(view.job) if may_see else None
        view = replace(view, job=self.sight(caller).job(view.job))
        if launch is not None and not self.owns(caller, view.job):
            launch = launch.for_others()
        attempts = self._store.attempts((job_id,))
        named = (*_named(view.job, view.wait), *(by for each in attempts for by in _by(each.why)))
        view = replace(view, labels=self.labels.found(named))
        return JobDetail(view=view, attempts=attempts, launch=launch)

    def find(self, caller: Caller, job_id: JobId) -> Job | None:
        """The job, if it is live."""
        demand_viewer(caller, self._record.site)
        job = self._record.jobs.get(job_id)
        return None if job is None else self.sight(caller).job(job)

    def matching(self, caller: Caller, query: JobQuery) -> Iterator[Job]:
        """All live jobs that the query names, whatever its limit, in the order of their ids."""
        demand_viewer(caller, self._record.site)
        return self._selected(caller, query)

    def running(self, caller: Caller) -> tuple[tuple[Job, Allocation], ...]:
        """Jobs that hold something, with what they hold."""
        demand_viewer(caller, self._record.site)
        with self._record.lock:
            held = list(self._record.allocations.items())
        shown = self.sight(caller).job
        jobs = ((self._record.jobs.get(job), allocation) for job, allocation in held)
        return tuple((shown(job), allocation) for job, allocation in jobs if job is not None)

    def live(self, job_id: JobId) -> Job | None:
        """The job as it is, for those who keep its pod."""
        return self._record.jobs.get(job_id)

    def pod_job(self, uid: str) -> JobId | None:
        """The job of a pod that ended lately."""
        return self._record.pod_jobs.get(uid)

    def pod_status(self, job_id: JobId, task: int = 0) -> PodStatus | None:
        """How the containers of a pod are, as far as its backend reported it."""
        seen = self._record.pods.get((job_id, task))
        return None if seen is None else seen.status

    def is_live(self, job_id: JobId) -> bool:
        """Has this job not ended?"""
        return job_id in self._record.jobs

    def count_by_state(self) -> Counter[JobState]:
        """How many live jobs there are in each state."""
        with self._record.lock:
            every = list(self._record.jobs.values())
        return Counter(map(attrgetter("state"), every))

    def next_id(self) -> JobId:
        """The id of the job that is submitted next."""
        return JobId(self._record.next_job)

    def may_see(self, caller: Caller, job: Job) -> bool:
        """May the caller see what the job writes and uses?"""
        return may_change(caller, self._record.site, job)

    def owns(self, caller: Caller, job: Job) -> bool:
        """May the caller see what the job runs, and act as its user?"""
        return owns(caller, self._record.site, job)

    def demand_owner(self, caller: Caller, job: Job, to: str) -> None:
        """Raise ForbiddenError unless the caller may act as the job's user."""
        demand_owner(caller, self._record.site, job, to)

    def whole_launch(self, job: Job) -> Launch | None:
        """What a job runs, for those who may see it: ask who that is before."""
        return self._store.launch(_launch_key(job))

    def launches(self, caller: Caller, jobs: Iterable[Job]) -> dict[JobId, Launch]:
        """What of these jobs' launches the caller may see, each by its own id."""
        demand_viewer(caller, self._record.site)
        seen = {job.id: job for job in jobs if self.may_see(caller, job)}
        keys = {name: _launch_key(job) for name, job in seen.items()}
        kept = self._store.launches(tuple(dict.fromkeys(keys.values())))
        return {
            name: kept[key] if self.owns(caller, seen[name]) else kept[key].for_others()
            for name, key in keys.items()
            if key in kept
        }

    def running_steps(self, caller: Caller) -> tuple[Step, ...]:
        """The steps that are not over, by job and number."""
        demand_viewer(caller, self._record.site)
        with self._record.lock:
            steps = self._record.steps.running()
        return tuple(self.sight(caller).steps(steps, self._record.jobs))

    def sight(self, caller: Caller) -> Sight:
        """What the caller sees of jobs."""
        return Sight(caller, self._record.site, self._masks)

    def outcome(self, job_id: JobId) -> Finished | None:
        """How a job came out that a live job depends on; None while it goes on."""
        return self._record.finished.get(job_id)

    def _selected(self, caller: Caller, query: JobQuery) -> Iterator[Job]:
        """Masked before they are chosen: a filter must not find what is not shown."""
        seen = self.sight(caller).jobs(self._candidates(query))
        return select_jobs(seen, query, self._record.allocations)

    def _candidates(self, query: JobQuery) -> Iterable[Job]:
        jobs = self._record.jobs
        if query.jobs:
            after = query.after or 0
            return (jobs[each] for each in sorted(set(query.jobs)) if each in jobs and each > after)
        with self._record.lock:
            every = list(jobs.values())
        if query.after is not None:
            every = every[bisect_right(every, query.after, key=_id_of) :]
        if query.arrays:
            return chain.from_iterable(_parts(every, each) for each in sorted(set(query.arrays)))
        return every

    def _ended(self, job_id: JobId) -> Ended:
        page = self._store.ended(HistoryQuery(jobs=(job_id,), limit=1))
        if not page.jobs:
            raise UnknownError(
                f"there is no job {job_id}; list jobs with: muster ps, muster history"
            )
        return page.jobs[0]


def _named(job: Job, wait: Wait | None) -> tuple[JobId, ...]:
    """The jobs that it waits for, or else the one for which it made room."""
    if wait is not None:
        return wait.why.names if isinstance(wait.why, ForOthers) else ()
    return _by(job.why)


def _by(why: EndReason | HeldBy | None) -> tuple[JobId, ...]:
    return (why.by,) if isinstance(why, Preempted) else ()


def _launch_key(job: Job) -> JobId:
    """The parts of an array share what was kept for the first."""
    return job.spec.array.array if job.spec.array else job.id


def _parts(jobs: list[Job], array: JobId) -> Iterable[Job]:
    """The parts of an array: their ids follow its own, with no other job between them."""

    def is_part(job: Job) -> bool:
        return job.spec.array is not None and job.spec.array.array == array

    first = bisect_left(jobs, array, key=_id_of)
    return takewhile(is_part, (jobs[at] for at in range(first, len(jobs))))


def _id_of(job: Job) -> JobId:
    return job.id


def _view_of(ended: Ended) -> JobView:
    return JobView(job=ended.job, started_at=ended.started_at, ended_at=ended.ended_at)
