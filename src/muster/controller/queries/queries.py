"""The use cases that look: nothing changes, and most of it is answered from memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice, takewhile

from muster.backends.base import Backend, OutputQuery
from muster.controller.loop.controller import Controller
from muster.controller.loop.counters import Counts
from muster.controller.messages import (
    Caller,
    Fleet,
    Health,
    JobDetail,
    JobQuery,
    JobsPage,
    JobView,
    LogQuery,
    Rehearsal,
)
from muster.controller.queries.questions import Questions
from muster.controller.queries.rehearsals import Rehearsals
from muster.controller.queries.running import RunningAttempts
from muster.controller.queries.selection import select_jobs
from muster.controller.rights import demand, grants_of, has_role, may_change
from muster.controller.use_cases.tokens import token_of
from muster.controller.world.journal import Clock, Journal, KeepingStore
from muster.controller.world.transaction import Change
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.explanation import Explanation
from muster.model.forbidden import NoRole, NotYourJob
from muster.model.history import Attempt, AuditEntry, Ended
from muster.model.job import WAITING, HeldBy, Job, JobSpec, JobState
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.plan import Backlog, NoEstimate, Plan, Wait
from muster.model.running import Measured, Output, TerminalStream
from muster.model.site import Grant, Role, Site, Token
from muster.model.snapshot import Finished, Snapshot
from muster.model.steps import Step
from muster.model.value import ClusterName, Instant, JobId, NodeId
from muster.schedule.explain.explanation import explain
from muster.schedule.explain.words import decided
from muster.stores.base import (
    Batch,
    EndedPage,
    EventQuery,
    HistoryQuery,
    Stored,
)

PLANNED = WAITING - {JobState.HELD}
"""Jobs in these states are in the next plan; a held job needs none."""

PLAN_PATIENCE_S = 20.0
"""So long an explanation waits for the first plan that knows its job."""


class Queries:
    """What doors show."""

    def __init__(
        self,
        journal: Journal,
        controller: Controller,
        backends: Mapping[ClusterName, Backend],
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._record = journal.record
        self._store: KeepingStore = journal.store
        self._controller = controller
        self._running = RunningAttempts(backends)
        self._clock = clock
        self._rehearsing = Rehearsals(journal, controller.parts.planner, clock)
        self._questions = Questions()

    # People.

    def me(self, caller: Caller) -> tuple[Grant, ...]:
        """What the caller may do, before a token makes less of it."""
        return grants_of(caller, self._record.site)

    def caller_of(self, secret: str, door: str) -> Caller:
        """Whoever has this token's secret."""
        token = token_of(secret, self._record.tokens, self._clock())
        return Caller(user=token.user, door=door, token=token)

    def tokens(self, caller: Caller) -> tuple[Token, ...]:
        """One's own tokens; administrators see all."""
        is_admin = has_role(caller, self._record.site, Role.ADMIN)
        return tuple(
            token
            for _, token in sorted(self._record.tokens.items())
            if is_admin or token.user == caller.user
        )

    def may_see(self, caller: Caller, job: Job) -> bool:
        """May the caller see what the job runs and writes?"""
        return may_change(caller, self._record.site, job)

    # Jobs.

    def view(self, job: Job) -> JobView:
        """A live job."""
        allocation = self._record.allocations.get(job.id)
        is_waiting = job.state in WAITING
        return JobView(
            job=job,
            allocation=allocation,
            wait=self._controller.last_plan.waits.get(job.id) if is_waiting else None,
            prospect=self.backlog().get(job.id) if is_waiting else None,
            started_at=None if allocation is None else allocation.started_at,
            pretend=self._is_pretend(allocation),
        )

    def backlog(self) -> Backlog:
        """Where the jobs stand that wait after the last plan."""
        controller = self._controller
        return controller.last_plan.backlog(controller.parts.planner.backlog)

    def jobs(self, caller: Caller, query: JobQuery) -> JobsPage:
        """Live jobs in the order of their ids, a page of them."""
        self._demand_viewer(caller)
        found = select_jobs(self._candidates(query), query, self._record.allocations)
        page = tuple([self.view(job) for job in islice(found, query.limit)])
        is_last = next(found, None) is None
        return JobsPage(jobs=page, next=None if is_last else page[-1].job.id)

    def job(self, caller: Caller, job_id: JobId) -> JobDetail:
        """One job, live or over, with what it ran and its attempts."""
        self._demand_viewer(caller)
        live = self._record.jobs.get(job_id)
        view = self.view(live) if live is not None else _view_of(self._ended(job_id))
        launch = self._launch(view.job) if self.may_see(caller, view.job) else None
        return JobDetail(view=view, attempts=self._store.attempts((job_id,)), launch=launch)

    def is_live(self, job: JobId) -> bool:
        """Has this job not ended?"""
        return job in self._record.jobs

    def ended(self, caller: Caller, query: HistoryQuery) -> EndedPage:
        """Jobs that are over."""
        self._demand_viewer(caller)
        return self._store.ended(query)

    def attempts(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Attempt, ...]:
        self._demand_viewer(caller)
        return self._store.attempts(jobs)

    def steps(self, caller: Caller, jobs: tuple[JobId, ...]) -> tuple[Step, ...]:
        """All steps of these jobs, running or over, by job, attempt and number."""
        self._demand_viewer(caller)
        return self._store.steps(jobs)

    def running_steps(self, caller: Caller) -> tuple[Step, ...]:
        """The steps that are not over, by job and number."""
        self._demand_viewer(caller)
        with self._record.lock:
            return self._record.steps.running()

    def launches(self, caller: Caller, jobs: Iterable[Job]) -> dict[JobId, Launch]:
        """What those of these jobs run that the caller may see, each by its own id."""
        self._demand_viewer(caller)
        keys = {job.id: _launch_key(job) for job in jobs if self.may_see(caller, job)}
        kept = self._store.launches(tuple(dict.fromkeys(keys.values())))
        return {job: kept[key] for job, key in keys.items() if key in kept}

    def finished(self, spec: JobSpec) -> Mapping[JobId, Finished]:
        """How the jobs came out that a request depends on, as far as they are over."""
        live = self._record.jobs
        named = {each.job for each in spec.after if each.job is not None}
        gone = tuple(sorted(each for each in named if each not in live))
        return self._store.finished(gone) if gone else {}

    # Why.

    def explain(self, caller: Caller, job_id: JobId) -> Explanation:
        """Everything about why a job is where it is. May take as long as a plan takes."""
        self._demand_viewer(caller)
        last_plan, record = self._controller.last_plan, self._record

        def is_known() -> bool:
            job = record.jobs.get(job_id)
            return job is None or job.state not in PLANNED or job_id in last_plan.waits

        if not self._controller.is_leading:
            self._controller.look()
        last_plan.wait_until(is_known, PLAN_PATIENCE_S)
        job = record.jobs.get(job_id)
        if job is None:
            raise UnknownError(f"job {job_id} has ended or never was; see: muster show {job_id}")
        if job.state in WAITING and job_id in last_plan.waits:
            with self._questions.asked_by(caller.user):
                return self._controller.parts.planner.explain(job_id)
        return self._settled(job)

    def rehearse(
        self,
        caller: Caller,
        *,
        spec: JobSpec | None = None,
        change: Callable[[Site], Site] | None = None,
    ) -> Rehearsal:
        """What would be different if this were submitted, or these were the rules."""
        self._demand_viewer(caller)
        with self._questions.asked_by(caller.user):
            if spec is not None:
                return self._rehearsing.submit(caller, spec)
            return self._rehearsing.apply(change or _same)

    def _settled(self, job: Job) -> Explanation:
        """About a job that needs no plan: it has what it asked for, or somebody holds it."""
        snapshot, policy = self.snapshot(), self._record.site.policy
        if isinstance(job.why, HeldBy):
            held = Wait(job=job.id, why=job.why)
            text = decided(held, job, snapshot)
            return Explanation(job=job.id, decision=held, text=text, expected=NoEstimate.HELD)
        nothing = Plan(snapshot_version=snapshot.version, policy=policy)
        return explain(snapshot, nothing, job.id, {})

    # The rest.

    def snapshot(self) -> Snapshot:
        """Everything there is, at this moment."""
        return self._record.snapshot(self._clock())

    def fleet(self) -> Fleet:
        """Nodes and what holds them, at once: a snapshot takes longer, the more jobs there are."""
        return self._record.fleet(self._clock())

    def site(self) -> Site:
        return self._record.site

    def mail_program(self) -> str | None:
        """What sends mail: None if nothing does, empty if another process knows."""
        return self._controller.parts.mail_program

    def audit(
        self, caller: Caller, *, before: Instant | None, limit: int
    ) -> tuple[AuditEntry, ...]:
        demand(caller, self._record.site, Role.ADMIN, to="read the audit log")
        return self._store.audit(before=before, limit=limit)

    def events(self, caller: Caller, query: EventQuery) -> tuple[Stored, ...]:
        """Facts from the log."""
        self._demand_viewer(caller)
        return self._store.events(query)

    def follow(self, notify: Callable[[tuple[Stored, ...]], None]) -> Callable[[], None]:
        """Tell of each commit from now on, from another thread; the result ends it."""

        def pass_on(batch: Batch, _: tuple[Change, ...]) -> None:
            first = self._journal.last_event - len(batch.events) + 1
            notify(
                tuple(
                    Stored(number=first + at, event=event) for at, event in enumerate(batch.events)
                )
            )

        return self._journal.subscribers.add(pass_on)

    def output(self, caller: Caller, asked: LogQuery) -> Output:
        """A part of what a job wrote."""
        detail = self._own(caller, asked.job)
        attempt, nodes, cluster = _where(detail, asked.attempt)
        if cluster is None:
            raise UnknownError(f"job {asked.job} has not run yet, so there is nothing to read")
        return self._running.output(
            cluster,
            OutputQuery(
                job=detail.view.job,
                launch=detail.launch or Launch(),
                attempt=attempt,
                nodes=nodes,
                stderr=asked.stderr,
                task=asked.task,
                offset=asked.offset,
                limit=asked.limit,
            ),
        )

    def attach(self, caller: Caller, job_id: JobId) -> TerminalStream:
        """A stream to the terminal of a running job."""
        return self._running.attach(self._own_allocation(caller, job_id))

    def step_address(self, caller: Caller, job_id: JobId) -> str:
        """Where steps of a running job are asked for, as a URL."""
        return self._running.step_address(self._own_allocation(caller, job_id))

    def pinned_cpus(self, caller: Caller, job_id: JobId) -> Mapping[NodeId, tuple[int, ...]]:
        """The CPUs that a running job has for itself on each node, where they are known."""
        return self._running.pinned_cpus(self._own_allocation(caller, job_id))

    def usage(self, caller: Caller, job_id: JobId) -> tuple[Measured, ...]:
        """What the processes of a running job use now."""
        return self._running.usage(self._own_allocation(caller, job_id))

    def _own_allocation(self, caller: Caller, job_id: JobId) -> Allocation:
        allocation = self._own(caller, job_id).view.allocation
        if allocation is None:
            raise UnknownError(f"job {job_id} does not run; see: muster show {job_id}")
        return allocation

    def health(self) -> Health:
        """How things are."""
        last_plan = self._controller.last_plan
        return Health(
            leading=self._controller.is_leading,
            store=type(self._store).__name__.removesuffix("Store"),
            last_event=self._journal.last_event,
            plan_ms=last_plan.plan_ms,
            planned_at=last_plan.planned_at,
            problems=() if last_plan.problem is None else (last_plan.problem,),
        )

    def counts(self) -> Counts:
        """What happened since the start, or since somebody wanted it counted anew."""
        return self._controller.counters.counts

    def count_anew(self, caller: Caller) -> None:
        """Let the counts begin now. They are no facts: nothing is written."""
        demand(caller, self._record.site, Role.ADMIN, to="reset the counts")
        self._controller.counters.reset(self._clock())

    def _own(self, caller: Caller, job_id: JobId) -> JobDetail:
        detail = self.job(caller, job_id)
        if not self.may_see(caller, detail.view.job):
            rule = "only they and their administrators can see what it writes"
            owner = detail.view.job.spec.user
            raise ForbiddenError(NotYourJob(job=job_id, owner=owner, rule=rule))
        return detail

    def _demand_viewer(self, caller: Caller) -> None:
        # A token for one queue may look at everything that its user may look at.
        role = caller.token.role if caller.token is not None else Role.VIEWER
        if not grants_of(caller, self._record.site) or role not in Role:
            raise ForbiddenError(NoRole(user=caller.user))

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

    def _is_pretend(self, allocation: Allocation | None) -> bool:
        if allocation is None:
            return False
        node = self._record.nodes.get(allocation.placements[0].node)
        return node is not None and node.pretend

    def _ended(self, job_id: JobId) -> Ended:
        page = self._store.ended(HistoryQuery(jobs=(job_id,), limit=1))
        if not page.jobs:
            raise UnknownError(
                f"there is no job {job_id}; list jobs with: muster ps, muster history"
            )
        return page.jobs[0]

    def _launch(self, job: Job) -> Launch | None:
        return self._store.launch(_launch_key(job))


def _launch_key(job: Job) -> JobId:
    """The parts of an array share what was kept for the first."""
    return job.spec.array.array if job.spec.array else job.id


def _same(site: Site) -> Site:
    return site


def _parts(jobs: list[Job], array: JobId) -> Iterable[Job]:
    """The parts of an array: they have the ids that follow its own, and nobody else has one."""

    def is_part(job: Job) -> bool:
        return job.spec.array is not None and job.spec.array.array == array

    first = bisect_left(jobs, array, key=_id_of)
    return takewhile(is_part, (jobs[at] for at in range(first, len(jobs))))


def _id_of(job: Job) -> JobId:
    return job.id


def _view_of(ended: Ended) -> JobView:
    return JobView(job=ended.job, started_at=ended.started_at, ended_at=ended.ended_at)


def _where(
    detail: JobDetail, attempt: int | None
) -> tuple[int, tuple[NodeId, ...], ClusterName | None]:
    """Which attempt is meant, and where it ran."""
    held = detail.view.allocation
    if held is not None and attempt in {None, held.attempt}:
        nodes = tuple(dict.fromkeys(placed.node for placed in held.placements))
        return held.attempt, nodes, held.cluster
    past = [each for each in detail.attempts if attempt in {None, each.number}]
    if not past:
        return 0, (), None
    return past[-1].number, past[-1].nodes, past[-1].cluster
