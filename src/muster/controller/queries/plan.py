"""What was planned, why jobs wait, and what would be planned if something were different."""

from collections.abc import Callable, Mapping

from muster.controller.dates.dated import (
    DatedBacklog,
    dated,
    explained,
    is_too_late,
    too_late_text,
)
from muster.controller.loop.controller import Controller
from muster.controller.messages import Caller, Rehearsal
from muster.controller.queries.backlog import LatestBacklog
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.questions import Questions
from muster.controller.queries.rehearsals import Rehearsals
from muster.controller.queries.waits import CurrentWaits
from muster.controller.rights import demand_viewer
from muster.controller.world.journal import Clock, Journal
from muster.lifecycle.refusal import Caution, TooLateForDeadline
from muster.model.errors import UnknownError
from muster.model.explanation import Explanation, KnownTime
from muster.model.job import WAITING, HeldBy, Job, JobSpec, JobState
from muster.model.plan import Backlog, NoEstimate, Plan, Priority, Prospect, Wait
from muster.model.site import Site
from muster.model.value import Duration, Instant, JobId, replace
from muster.model.words import when
from muster.schedule.explain.explanation import explain
from muster.schedule.explain.words import decided
from muster.schedule.policy.merit import Merits, waited_since
from muster.schedule.state.accounts import WITHOUT_END
from muster.schedule.state.calendar import time_limit

PLANNED = WAITING - {JobState.HELD}
"""Jobs in these states are in the next plan; a held job needs none."""

PLAN_PATIENCE_S = 20.0
"""So long an explanation waits for the first plan that knows its job as it is."""

DATE_PATIENCE_S = 1.0
"""So long a submission with a deadline waits for its date."""

PROSPECT_PATIENCE_S = 1.0
PROSPECT_QUICK_S = 0.05
"""So long a question about one job waits for the backlog of the last plan. Programs ask about jobs
again and again: where a whole backlog takes longer than this, that is not done after every plan."""


class PlanQueries:
    """The last plan, and rehearsals of others."""

    def __init__(
        self,
        journal: Journal,
        controller: Controller,
        clock: Clock,
        *,
        jobs: JobQueries,
        waits: CurrentWaits,
    ) -> None:
        self._jobs = jobs
        self._record = journal.record
        self._controller = controller
        self._clock = clock
        self._waits = waits
        self._rehearsals = Rehearsals(journal, controller, clock)
        self._questions = Questions()
        self._merits: tuple[Site, Merits | None] = (journal.record.site, None)
        self._backlog = LatestBacklog(controller.last_plan, controller.parts.planner)

    def backlog(self, patience_s: float = 0.0) -> Backlog:
        """Position, priority and expected start of jobs that wait, as the planner has them.

        Of the last plan, if that is known or comes in time; else of an earlier one.
        """
        return DatedBacklog(self._backlog.get(patience_s), self._controller.dates.latest())

    def prospect(self, job: Job) -> Prospect | None:
        """The same of one job; None if it does not wait, or until a plan has seen it as it is."""
        if self._waits.of(job) is None:
            return None
        prospect = self._backlog.get(PROSPECT_PATIENCE_S, PROSPECT_QUICK_S).get(job.id)
        return (
            None
            if prospect is None
            else dated(prospect, self._controller.dates.latest().get(job.id))
        )

    def own_priority(self, job: Job) -> Priority:
        """What a job itself brings to its priority: all but age, fair share and guarantee."""
        level = 0
        if self._record.site.policy.order.service:
            with self._record.lock:
                levels = self._record.service_levels(self._clock())
            level = levels.level(job.spec, job.ran)
        return self._merits_now().of(job, asked_gpu_milli(job.spec), level).priority()

    def _merits_now(self) -> Merits:
        """By the rules as they are; worked out again when they change."""
        site, merits = self._merits
        if site is not self._record.site or merits is None:
            site = self._record.site
            merits = Merits(site.queues, site.classes, site.policy.order)
            self._merits = (site, merits)
        return merits

    def explain(self, caller: Caller, job_id: JobId) -> Explanation:
        """Everything about why a job is where it is. May take as long as a plan takes."""
        demand_viewer(caller, self._record.site)
        record, waits = self._record, self._waits

        def is_known() -> bool:
            job = record.jobs.get(job_id)
            return job is None or job.state not in PLANNED or waits.of(job) is not None

        if not self._controller.is_leading:
            self._controller.look()
        self._controller.last_plan.wait_until(is_known, PLAN_PATIENCE_S)
        job = record.jobs.get(job_id)
        if job is None:
            raise UnknownError(f"job {job_id} has ended or never was; see: muster show {job_id}")
        if waits.of(job) is not None:
            with self._questions.asked_by(caller.user):
                found = self._controller.parts.planner.explain(job_id)
            date = self._controller.dates.latest().get(job_id)
            told = explained(found, date, job, self._clock())
            is_seen = self._jobs.sight(caller).sees(job)
            return replace(told, time=self._known_time(job)) if is_seen else told
        return self._settled(self._jobs.sight(caller).job(job))

    def too_late(self, job_id: JobId) -> Caution | None:
        """What to say of a job with a deadline that was just submitted, if it will miss it."""
        job = self._record.jobs.get(job_id)
        if job is None or job.spec.deadline is None:
            return None
        date = self._controller.dates.soon(job_id, DATE_PATIENCE_S)
        if date is None or not is_too_late(date, job.spec):
            return None
        now, start = self._clock(), when(date.middle, self._clock())
        reason = TooLateForDeadline(deadline=job.spec.deadline, starts_at=date.middle)
        advice = (
            f"{too_late_text(job.spec, now)} It should start {start}; "
            f"see: muster explain {job.label}"
        )
        return Caution(reason=reason, advice=advice)

    def rehearse(
        self,
        caller: Caller,
        *,
        spec: JobSpec | None = None,
        change: Callable[[Site], Site] | None = None,
        jobs: Mapping[JobId, JobSpec | None] | None = None,
    ) -> Rehearsal:
        """What would be different if this were submitted, or these were the rules.

        jobs: or if jobs that run had asked for this; None: if they ended.
        """
        demand_viewer(caller, self._record.site)
        with self._questions.asked_by(caller.user):
            if spec is not None:
                return self._rehearsals.submit(caller, spec)
            if jobs is not None:
                return self._rehearsals.change_jobs(jobs)
            return self._rehearsals.apply(change or (lambda site: site))

    def _known_time(self, job: Job) -> KnownTime:
        """What decides where a job stands that waits, as far as that is time."""
        site = self._record.site
        with self._record.lock:
            found = self._record.predictions.of(job)
        limit = max(time_limit(job.spec, each, site.policy) for each in site.pools.values())
        patience = site.policy.patience
        expected = found.expected if job.expected is None else job.expected
        return KnownTime(
            expected=expected,
            # What counts is what was expected when it came in, until much more is known.
            high=max(found.high, expected),
            samples=found.samples,
            like=found.like,
            limit=None if limit >= WITHOUT_END else Duration(limit),
            first_from=Instant(waited_since(job) + patience) if patience else None,
        )

    def _settled(self, job: Job) -> Explanation:
        """About a job that needs no plan: it has what it asked for, or a user holds it."""
        snapshot, policy = self._record.snapshot(self._clock()), self._record.site.policy
        if isinstance(job.why, HeldBy):
            held = Wait(job=job.id, why=job.why)
            text = decided(held, job, snapshot)
            return Explanation(job=job.id, decision=held, text=text, expected=NoEstimate.HELD)
        nothing = Plan(snapshot_version=snapshot.version, policy=policy)
        return explain(snapshot, nothing, job.id, {})


def asked_gpu_milli(spec: JobSpec) -> int:
    """All that a request asks for, in thousandths of a GPU."""
    return sum(group.each.amount(None).gpu_milli * group.count for group in spec.groups)
