"""Why a job waits, who is in its way, when it may start, and what would help."""

from collections.abc import Callable

from muster.model.burst import Bursting
from muster.model.errors import RefusedError, StaleSnapshotError
from muster.model.explanation import Explanation, UnknownJob
from muster.model.job import WAITING, Job, JobState
from muster.model.levels import has_its_due, has_saved, ran_by, waited_by
from muster.model.plan import Backlog, Clear, Decision, NoEstimate, Plan, Resume, Start, Wait
from muster.model.snapshot import Snapshot
from muster.model.value import Duration, Instant, JobId
from muster.model.words import span
from muster.schedule.explain.alternatives import Alternatives, alternatives, always
from muster.schedule.explain.blockers import blockers
from muster.schedule.explain.words import decided, when, where
from muster.schedule.plan import Planner
from muster.schedule.state.bursting import BurstRules

NOT_ALL_TRIED = " Not every change that might help was tried, because that would have taken long."


def explain(  # noqa: PLR0913 - the sixth says how long it may take, not what is asked
    snapshot: Snapshot,
    plan: Plan,
    job: JobId,
    backlog: Backlog,
    planner: Planner | None = None,
    *,
    has_time: Callable[[], bool] = always,
) -> Explanation:
    """All there is to say about a job of the snapshot that the plan was made for.

    backlog: that of the planner after this plan. A planner of the same policy that knows this world
    saves the time of a first plan; afterwards it has planned other worlds.
    has_time: asked before each further plan that looks for alternatives.
    Raises RefusedError if there is no such job, StaleSnapshotError if the plan is for another
    snapshot.
    """
    found = snapshot.jobs.get(job)
    if found is None:
        advice = f"There is no job {job}: it never was, or it has ended. Look at the list of jobs."
        raise RefusedError(UnknownJob(job=job), advice)
    decision = plan.decision(job)
    if plan.snapshot_version != snapshot.version or (decision is None and found.state in WAITING):
        raise StaleSnapshotError(expected=plan.snapshot_version, found=snapshot.version)
    if decision is None:
        return _of_holder(snapshot, found, plan)
    expected = _expected(decision, backlog, snapshot.now)
    helping, bursting = Alternatives(()), tuple[Bursting, ...]()
    if isinstance(decision, Wait):
        bursting = BurstRules(snapshot, plan.policy).about(found)
        again = planner or Planner(plan.policy)
        helping = alternatives(snapshot, decision, expected, again, has_time)
    text = decided(decision, found, snapshot) + _service(snapshot, found, plan)
    text += "".join(f" {each.text}" for each in bursting)
    return Explanation(
        job=job,
        decision=decision,
        text=text if helping.is_complete else text + NOT_ALL_TRIED,
        blockers=_blockers(decision, found, snapshot, plan),
        expected=expected,
        alternatives=helping.found,
        bursting=bursting,
    )


def _expected(decision: Decision, backlog: Backlog, now: Instant) -> Instant | NoEstimate:
    match decision:
        case Start() | Resume():
            return now
        case Clear(until=until):
            return until
        case Wait(job=job):
            return backlog[job].expected


def _blockers(decision: Decision, job: Job, snapshot: Snapshot, plan: Plan) -> tuple[JobId, ...]:
    match decision:
        case Start() | Resume():
            return ()
        case Clear(victims=victims):
            return victims
        case Wait(why=why):
            return blockers(why, job, snapshot, plan)


def _service(snapshot: Snapshot, job: Job, plan: Plan) -> str:
    """Where the job stands by the service it had, if that counts."""
    is_saved = has_saved(job, snapshot.classes.get(job.spec.job_class))
    counts_saved = is_saved and plan.policy.preempt.by_service_if_saved
    if not plan.policy.counts_all_service and not counts_saved:
        return ""
    ran = ran_by(job, snapshot.allocations.get(job.id), snapshot.now)
    level = snapshot.levels.level(job.spec, ran)
    so_far = f"has run for {span(ran)} so far" if ran else "has not run yet"
    stands = f" It {so_far} and stands on level {level}; lower levels go first."
    return stands + _rest(snapshot, job, plan)


def _rest(snapshot: Snapshot, job: Job, plan: Plan) -> str:
    """How long the job's room is not taken by service, if it has waited."""
    allocation, percent = snapshot.allocations.get(job.id), plan.policy.preempt.waited_percent
    if allocation is None or has_its_due(job, allocation, snapshot.now, percent):
        return ""
    waited = waited_by(job, allocation, snapshot.now)
    due = span(Duration(waited * percent // 100))
    return f" It waited for {span(waited)}, and they do not stop it before it ran for {due} on end."


def _of_holder(snapshot: Snapshot, job: Job, plan: Plan) -> Explanation:
    """A job that waits for nothing: it has what it asked for."""
    allocation = snapshot.allocations.get(job.id)
    if allocation is None:
        return Explanation(
            job=job.id, decision=None, text=f"Is {job.state}.", expected=snapshot.now
        )
    began_at = allocation.placed_at if allocation.started_at is None else allocation.started_at
    verb = "Runs" if job.state is JobState.RUNNING else f"Is {job.state}"
    since = f"it started {when(began_at, snapshot.now)}"
    return Explanation(
        job=job.id,
        decision=None,
        text=f"{verb} on {where(allocation.placements)}; {since}." + _service(snapshot, job, plan),
        expected=began_at,
    )
