"""What to change about the dearest rows of the fleet's table, each change rehearsed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from muster.controller.loop.controller import LastPlan
from muster.controller.messages import Caller, Rehearsal
from muster.controller.queries.diagnosis import DiagnosisQueries, ReportQuery
from muster.controller.queries.plan import PlanQueries, asked_gpu_milli
from muster.controller.rights import has_role
from muster.controller.watching.tally import tag_of
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.efficiency import JobReport
from muster.model.finding import Finding
from muster.model.gpu import GpuAsk, MpsShare
from muster.model.job import HOLDING, Job, JobSpec
from muster.model.policy import Policy
from muster.model.queue import Ceiling, Queue, is_within
from muster.model.site import Role, Site
from muster.model.value import Instant, JobId, QueuePath, Value, replace
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.dearest import (
    HORIZON,
    MOST_NAMED,
    Change,
    Course,
    Dear,
    Part,
    dearest,
    gained,
    sooner,
)
from muster.telemetry.diagnosis.enough import gpu_part

MOST_CHANGED = 100
"""So many of a row's jobs are changed in its rehearsal: those that waste most."""

_MORE_CPUS = 2
_MORE_RESERVATIONS = 4


class Advice(Value):
    """One of the dearest rows, what to change about it, and what a rehearsal says of that.

    jobs: that waste most, or that wait. rehearsed: in one sentence; empty where nothing could be.
    gained_milli_ms, gained_micros: within a day; sooner_ms: waited less, by all together.
    """

    dear: Dear
    text: str
    jobs: tuple[JobId, ...] = ()
    rehearsed: str = ""
    gained_milli_ms: int | None = None
    gained_micros: int | None = None
    sooner_ms: int | None = None


class _Wasting(NamedTuple):
    """A job that runs, and what of it belongs to a row."""

    job: Job
    report: JobReport
    finding: Finding


class _Asked(NamedTuple):
    """What is rehearsed: other rules, or other requests; None stands for a job that ends."""

    text: str
    rules: Callable[[Site], Site] | None = None
    jobs: Mapping[JobId, JobSpec | None] | None = None


class Advising:
    """Asks the planner about one change for each of the dearest rows."""

    def __init__(
        self,
        record: Record,
        diagnosis: DiagnosisQueries,
        plan: PlanQueries,
        last_plan: LastPlan,
        clock: Clock,
    ) -> None:
        self._record = record
        self._diagnosis = diagnosis
        self._plan = plan
        self._last_plan = last_plan
        self._clock = clock

    def advice(self, caller: Caller, query: ReportQuery) -> tuple[Advice, ...]:
        """About what the caller may see, the dearest first."""
        rows = self._diagnosis.fleet(caller, query)
        parts = (Part(row=each.row, time=each.time, micros=each.cost_micros) for each in rows)
        reports = self._diagnosis.reports(caller, replace(query, limit=len(self._record.jobs)))
        live = [each for each in reports if not each.is_over]
        return tuple(self._advised(caller, dear, live) for dear in dearest(parts))

    def _advised(self, caller: Caller, dear: Dear, live: Iterable[JobReport]) -> Advice:
        wasting = tuple(self._wasting(dear, live))
        waiting = tuple(self._waiting(caller, dear))
        named = [each.job.id for each in wasting] or [
            job.id for job in waiting if self._diagnosis.sees(caller, job)
        ]
        queues = dear.queues or _most_wanted(waiting)
        shown = replace(dear, queues=queues)
        jobs = tuple(named[:MOST_NAMED])
        asked = self._asked(dear, wasting, waiting)
        if asked is None:
            return Advice(dear=shown, text=dear.advice, jobs=jobs)
        if asked.jobs is not None and not asked.jobs:
            return Advice(dear=shown, text=asked.text, jobs=jobs)
        found = self._plan.rehearse(caller, change=asked.rules, jobs=asked.jobs)
        now = self._clock()
        others = tuple(self._courses(found, asked.jobs or {}, now))
        own = _changed_courses(found, asked.jobs or {}, wasting, now)
        more = gained((*others, *own), now)
        prices = self._record.site.pools
        price = prices[dear.pool].gpu_hour_micros if dear.pool in prices else 0
        return Advice(
            dear=shown,
            text=asked.text,
            jobs=jobs,
            rehearsed=found.text,
            gained_milli_ms=more,
            gained_micros=money.cost_micros(more, price),
            sooner_ms=sooner(others, now),
        )

    def _wasting(self, dear: Dear, live: Iterable[JobReport]) -> Iterator[_Wasting]:
        found = [
            _Wasting(job, report, finding)
            for report in live
            if (report.cluster, report.pool) == (dear.cluster, dear.pool)
            and (job := self._record.jobs.get(report.job)) is not None
            and job.state in HOLDING
            for finding in report.findings
            if finding.cause == dear.what
        ]
        found.sort(key=lambda each: (-each.finding.wasted_gpu_milli, each.job.id))
        yield from found[:MOST_CHANGED]

    def _waiting(self, caller: Caller, dear: Dear) -> Iterator[Job]:
        """Those for whom the row's GPUs are free in vain, of queues that the caller looks into."""
        site = self._record.site
        for job_id, wait in sorted(self._last_plan.waits.items()):
            job = self._record.jobs.get(job_id)
            if job is None or dear.what != f"free_{tag_of(wait.why)}":
                continue
            spec = job.spec
            may = (not spec.pools or dear.pool in spec.pools) and (
                not spec.clusters or dear.cluster in spec.clusters
            )
            if may and has_role(caller, site, Role.VIEWER, spec.queue):
                yield job

    def _asked(
        self, dear: Dear, wasting: tuple[_Wasting, ...], waiting: tuple[Job, ...]
    ) -> _Asked | None:
        policy = self._record.site.policy
        match dear.change:
            case None:
                return None
            case Change.QUOTA:
                queue = self._full_queue(waiting)
                text = f"let queue {queue} hold more than its quota" if queue else "raise quotas"
                return _Asked(text, rules=partial(_without_limit, path=queue))
            case Change.CEILING:
                text = "lift how much classes and queues allow at once"
                return _Asked(text, rules=_without_ceilings)
            case Change.PREEMPTION:
                text = "let jobs be stopped for others that had less: `policy.preempt`"
                return _Asked(text, rules=_with_preemption)
            case Change.BACKFILL:
                more = _more_reservations(policy)
                text = f"keep room for {more.backfill_depth} jobs, not {policy.backfill_depth}"
                return _Asked(f"{text}: `policy.backfill_depth`", rules=_with_reservations)
            case Change.END:
                text = "end jobs that leave their GPUs alone: `on_idle` of their classes"
                return _Asked(text, jobs={each.job.id: None for each in wasting})
            case Change.SHARES:
                text = "have them ask for the part of a GPU that they need"
                return _Asked(text, jobs=dict(_shared(wasting)))
            case Change.CPUS:
                text = f"have them ask for {_MORE_CPUS} times their CPUs"
                return _Asked(text, jobs={each.job.id: _with_cpus(each.job) for each in wasting})

    def _full_queue(self, waiting: Iterable[Job]) -> QueuePath | None:
        """Whose quota keeps most."""
        kept: Counter[QueuePath] = Counter()
        for job in waiting:
            wait = self._last_plan.waits.get(job.id)
            queue = getattr(wait.why, "queue", None) if wait is not None else None
            if isinstance(queue, str):
                kept[QueuePath(queue)] += asked_gpu_milli(job.spec)
        return min(kept, key=lambda path: (-kept[path], path)) if kept else None

    def _courses(
        self, found: Rehearsal, changed: Mapping[JobId, JobSpec | None], now: Instant
    ) -> Iterator[Course]:
        """Of all jobs but those that ask for something else."""
        moved = {each.job: each for each in found.moved}
        for job_id in sorted({*found.starts, *found.waits, *found.preempted, *moved}):
            job = self._record.jobs.get(job_id)
            if job is None or job_id in changed:
                continue
            before = moved[job_id].before if job_id in moved else None
            after = moved[job_id].after if job_id in moved else None
            if job_id in found.starts:
                after = now
            if job_id in found.waits:
                before = now
            if job_id in found.preempted:
                before, after = now, None
            yield _course(job, asked_gpu_milli(job.spec), before, after)


def _changed_courses(
    found: Rehearsal,
    changed: Mapping[JobId, JobSpec | None],
    wasting: Iterable[_Wasting],
    now: Instant,
) -> Iterator[Course]:
    for each in wasting:
        spec = changed.get(each.job.id)
        if spec is not None:
            yield _changed_course(each, spec, now, starts=each.job.id in found.starts)


def _course(job: Job, milli: int, before: Instant | None, after: Instant | None) -> Course:
    lasts = job.expected or job.spec.time_limit or HORIZON
    return Course(gpu_milli=milli, lasts=lasts, before=before, after=after)


def _changed_course(each: _Wasting, spec: JobSpec, now: Instant, *, starts: bool) -> Course:
    """What a job that asks for something else has more by it; if it cannot start, what it had."""
    held, wasted = asked_gpu_milli(each.job.spec), each.finding.wasted_gpu_milli
    if not starts:
        return _course(each.job, max(0, held - wasted), now, None)
    # With less of a GPU it does the same; with all that it held it does more.
    more = wasted if asked_gpu_milli(spec) == held else 0
    return _course(each.job, more, None, now)


def _most_wanted(waiting: Iterable[Job]) -> tuple[str, ...]:
    wanted: Counter[str] = Counter()
    for job in waiting:
        wanted[job.spec.queue] += asked_gpu_milli(job.spec)
    return tuple(sorted(wanted, key=lambda path: (-wanted[path], path))[:MOST_NAMED])


def _shared(wasting: Iterable[_Wasting]) -> Iterator[tuple[JobId, JobSpec]]:
    """Those that hold one GPU and would do with a part of it."""
    for each in wasting:
        part = gpu_part(each.report, None)
        if part is None or len(each.job.spec.groups) != 1:
            continue
        (group,) = each.job.spec.groups
        share = GpuAsk(count=1, slice=MpsShare(milli=part.milli))
        smaller = replace(group, each=replace(group.each, gpus=share))
        yield each.job.id, replace(each.job.spec, groups=(smaller,))


def _with_cpus(job: Job) -> JobSpec:
    groups = tuple(
        replace(group, each=replace(group.each, cpu_milli=_MORE_CPUS * group.each.cpu_milli))
        for group in job.spec.groups
    )
    return replace(job.spec, groups=groups)


def _without_limit(site: Site, path: QueuePath | None) -> Site:
    """The queue, and those above it, may hold and borrow what is there."""

    def freed(queue: Queue) -> Queue:
        quotas = tuple(replace(each, limit=None, borrow_limit=None) for each in queue.quotas)
        return replace(queue, quotas=quotas)

    return replace(
        site,
        queues={
            each: freed(queue) if path is not None and is_within(path, each) else queue
            for each, queue in site.queues.items()
        },
    )


def _without_ceilings(site: Site) -> Site:
    classes = {
        name: replace(each, per_user=Ceiling(), per_queue=Ceiling())
        for name, each in site.classes.items()
    }
    queues = {path: replace(each, max_jobs=None) for path, each in site.queues.items()}
    return replace(site, classes=classes, queues=queues)


def _with_preemption(site: Site) -> Site:
    preempt = replace(site.policy.preempt, by_class=True, reclaim=True, by_service=True)
    return replace(site, policy=replace(site.policy, preempt=preempt))


def _with_reservations(site: Site) -> Site:
    return replace(site, policy=_more_reservations(site.policy))


def _more_reservations(policy: Policy) -> Policy:
    return replace(
        policy,
        backfill_depth=_MORE_RESERVATIONS * max(1, policy.backfill_depth),
        backfill_horizon=_MORE_RESERVATIONS * policy.backfill_horizon,
    )
