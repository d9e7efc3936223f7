"""What if: the same planner asked about another world, and nothing done."""

from collections.abc import Callable, Mapping

from muster.controller.dates.client import RuledSnapshot
from muster.controller.dates.dated import sooner, warned
from muster.controller.loop.controller import Controller
from muster.controller.messages import Caller, Rehearsal
from muster.controller.planner.client import RehearsedPlans, World
from muster.controller.use_cases.site_checks import demand_workable
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.world.journal import Clock, Journal
from muster.controller.world.reservations import current_windows
from muster.model.dates import StartDate
from muster.model.job import Job, JobSpec, JobState
from muster.model.launch import NO_LAUNCH
from muster.model.plan import Plan, Preempt, Start
from muster.model.site import Site
from muster.model.value import JobId, replace
from muster.model.versioned import with_values, without
from muster.model.words import counted, listed
from muster.schedule.explain.words import decided


class Rehearsals:
    """Asks the planner about a world with one thing changed, and about the world as it is."""

    def __init__(self, journal: Journal, controller: Controller, clock: Clock) -> None:
        self._journal = journal
        self._controller = controller
        self._planner = controller.parts.planner
        self._clock = clock

    def submit(self, caller: Caller, spec: JobSpec) -> Rehearsal:
        """What would become of this request. Raises RefusedError if it would be refused."""
        # The world first: a job that ends after it was looked at is among what admission finds.
        usual, transaction = self._world(), self._journal.transaction()
        entry = Submission(caller=caller, spec=spec, kinds=NodeKinds())
        accepted = entry.admitted(entry.whose(transaction), transaction)
        job = Job(
            id=transaction.new_id(),
            spec=replace(accepted.spec, launch=NO_LAUNCH),
            submitted_at=transaction.now,
        )
        snapshot = replace(
            usual.snapshot,
            jobs=with_values(usual.snapshot.jobs, {job.id: job}),
            finished=with_values(usual.snapshot.finished, transaction.found),
        )
        changed = replace(usual, snapshot=snapshot)
        rehearsed = self._planner.rehearse(usual, changed, job.id)
        decision = rehearsed.changed.decision(job.id)
        wait = rehearsed.changed.waits.get(job.id)
        date = None if wait is None else self._date(usual, changed, job.id)
        said = "" if decision is None else decided(decision, job, changed.snapshot)
        return replace(
            _compared(rehearsed),
            job=job.id,
            wait=wait,
            expected=rehearsed.expected if date is None else date.middle,
            date=date,
            alternatives=sooner(rehearsed.alternatives, date, changed.snapshot.now),
            placements=decision.placements if isinstance(decision, Start) else rehearsed.placements,
            text=warned(said, date, job.spec, changed.snapshot.now),
        )

    def apply(self, change: Callable[[Site], Site]) -> Rehearsal:
        """What would be different at once under other rules."""
        after = change(self._journal.record.site)
        demand_workable(after, self._journal.record)
        usual = self._world()
        snapshot = replace(
            usual.snapshot,
            queues=after.queues,
            classes=after.classes,
            pools=self._journal.record.pools(after),
            reservations=current_windows(after.reservations, usual.snapshot.now),
        )
        changed = World(snapshot=snapshot, policy=after.policy)
        compared = _compared(self._planner.rehearse(usual, changed))
        before = RuledSnapshot(snapshot=usual.snapshot, site=self._journal.record.site)
        then = RuledSnapshot(snapshot=snapshot, site=after)
        moved = self._controller.dates.suppose(before, then, None).moved
        compared = replace(compared, moved=moved)
        return replace(compared, text=_told(compared))

    def change_jobs(self, changes: Mapping[JobId, JobSpec | None]) -> Rehearsal:
        """What would be different at once if jobs that run had asked for something else.

        They wait with their new requests; None: the job ends.
        """
        usual = self._world()
        jobs = usual.snapshot.jobs
        known = {job: spec for job, spec in changes.items() if job in jobs}
        others = {
            job: replace(jobs[job], spec=spec, state=JobState.PENDING)
            for job, spec in known.items()
            if spec is not None
        }
        gone = [job for job, spec in known.items() if spec is None]
        snapshot = replace(
            usual.snapshot,
            jobs=with_values(without(jobs, gone), others),
            allocations=without(usual.snapshot.allocations, known),
        )
        changed = replace(usual, snapshot=snapshot)
        compared = _compared(self._planner.rehearse(usual, changed))
        site = self._journal.record.site
        before = RuledSnapshot(snapshot=usual.snapshot, site=site)
        then = RuledSnapshot(snapshot=snapshot, site=site)
        moved = self._controller.dates.suppose(before, then, None).moved
        compared = replace(
            compared,
            starts=tuple(job for job in compared.starts if job not in gone),
            moved=tuple(each for each in moved if each.job not in known),
        )
        return replace(compared, text=_told(compared))

    def _date(self, usual: World, changed: World, job: JobId) -> StartDate | None:
        site = self._journal.record.site
        before = RuledSnapshot(snapshot=usual.snapshot, site=site)
        then = RuledSnapshot(snapshot=changed.snapshot, site=site)
        return self._controller.dates.suppose(before, then, job).date

    def _world(self) -> World:
        record = self._journal.record
        return World(snapshot=record.snapshot(self._clock()), policy=record.site.policy)


def _compared(rehearsed: RehearsedPlans) -> Rehearsal:
    usual, changed = rehearsed.usual, rehearsed.changed
    now, then = _starting(usual), _starting(changed)
    return Rehearsal(
        starts=tuple(sorted(then - now)),
        waits=tuple(sorted(now - then)),
        preempted=tuple(sorted(_preempted(changed) - _preempted(usual))),
    )


def _told(compared: Rehearsal) -> str:
    """What would be different at once, so that there is an answer also when nothing is."""
    parts = [
        f"{counted(len(jobs), 'job')} would {verb}"
        for jobs, verb in (
            (compared.starts, "start now"),
            (compared.waits, "wait that would start now"),
            (compared.preempted, "have to make room"),
        )
        if jobs
    ]
    sooner = sum(each.after < each.before for each in compared.moved)
    later = len(compared.moved) - sooner
    at_once = f"{listed(parts)}." if parts else "Nothing would start, wait or make room at once."
    return at_once + (
        f" Of those that wait, {sooner} would start sooner and {later} later."
        if compared.moved
        else ""
    )


def _starting(plan: Plan) -> set[JobId]:
    return {move.job for move in plan.moves if isinstance(move, Start)}


def _preempted(plan: Plan) -> set[JobId]:
    return {each.job for each in plan.measures if isinstance(each, Preempt)}
