"""Why a job waits is shown only while the last plan knows the job as it is."""

from controller.desk import Desk
from muster.controller.loop.controller import LastPlan
from muster.controller.messages import JobView
from muster.controller.queries.jobs import JobQueries
from muster.controller.queries.waits import CurrentWaits
from muster.controller.use_cases.job_actions import JobAction
from muster.doors.rest.words import NEW
from muster.doors.rest.words import reason as rest_reason
from muster.doors.slurm.words.states import reason as slurm_reason
from muster.model.event import JobUpdated
from muster.model.job import Dependency, DependencyKind, HeldBy, JobState
from muster.model.plan import Plan
from muster.model.reason import DependsOn, NotBefore, WaitReason
from muster.model.value import Instant, JobId, UserName, replace

LATER = Instant(3_600_000)
MUCH_LATER = Instant(7_200_000)


class Published:
    """What queries say about the jobs of a desk after each plan that was published."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last_plan = LastPlan()
        journal = desk.simulation.journal
        self._queries = JobQueries(journal, CurrentWaits(journal, self._last_plan))

    def plan(self, made: Plan | None = None) -> None:
        """A plan of now, or one that was begun some time ago, is the last one from here on."""
        self._last_plan.settle(made or self._desk.plans()[0], self._desk.simulation.now, 1)

    def view(self, job: JobId) -> JobView:
        return self._queries.view(self._desk.job(job))

    def why(self, job: JobId) -> WaitReason | None:
        wait = self.view(job).wait
        return None if wait is None else wait.why


def test_a_job_released_while_a_plan_was_made_is_not_shown_as_held() -> None:
    desk = Desk()
    published = Published(desk)
    job = desk.submits(begin_at=LATER)
    desk.asks("root", JobAction.HOLD, job)
    begun = desk.plans()[0]
    desk.asks("root", JobAction.RELEASE, job)

    published.plan(begun)

    assert published.why(job) is None
    published.plan()
    assert published.why(job) == NotBefore(at=LATER)


def test_a_job_held_after_the_last_plan_no_longer_waits_for_what_that_said() -> None:
    desk = Desk()
    published = Published(desk)
    job = desk.submits(begin_at=LATER)
    published.plan()

    desk.asks("root", JobAction.HOLD, job)

    view = published.view(job)
    assert view.wait is None
    assert slurm_reason(view.job, None) == "JobHeldAdmin"
    shown = rest_reason(view.job, view.wait, Instant(0))
    assert shown is not None
    assert shown.kind == "held_by"
    published.plan()
    assert isinstance(published.why(job), HeldBy)


def test_doors_give_no_reason_until_a_plan_has_seen_the_job_as_it_is() -> None:
    desk = Desk()
    published = Published(desk)
    job = desk.submits(begin_at=LATER)
    desk.asks("root", JobAction.HOLD, job)
    published.plan()
    assert isinstance(published.why(job), HeldBy)

    desk.asks("root", JobAction.RELEASE, job)

    view = published.view(job)
    assert view.job.state is JobState.PENDING
    assert slurm_reason(view.job, None if view.wait is None else view.wait.why) == "None"
    assert rest_reason(view.job, view.wait, Instant(0)) == NEW


def test_a_job_with_another_begin_time_does_not_wait_for_the_old_one() -> None:
    desk = Desk()
    published = Published(desk)
    job = desk.submits(begin_at=LATER)
    published.plan()
    assert published.why(job) == NotBefore(at=LATER)

    spec = replace(desk.job(job).spec, begin_at=MUCH_LATER)
    desk.applies(JobUpdated(at=desk.simulation.now, job=job, spec=spec, by=UserName("ada")))

    assert published.why(job) is None
    published.plan()
    assert published.why(job) == NotBefore(at=MUCH_LATER)


def test_a_job_does_not_wait_for_one_that_has_ended() -> None:
    desk = Desk(gpus=1)
    published = Published(desk)
    first = desk.submits(lasts=60)
    after = Dependency(job=first, kind=DependencyKind.AFTER_OK)
    second = desk.submits(after=(after,))
    unrelated = desk.submits(begin_at=LATER)
    published.plan()
    assert published.why(second) == DependsOn(job=first, kind=DependencyKind.AFTER_OK)

    desk.asks("ada", JobAction.CANCEL, first)

    assert published.why(second) is None
    assert published.why(unrelated) == NotBefore(at=LATER)
    published.plan()
    assert published.why(second) == DependsOn(job=first, kind=DependencyKind.AFTER_OK, never=True)


def test_a_job_does_not_wait_for_the_start_of_one_that_has_started() -> None:
    desk = Desk(gpus=1)
    published = Published(desk)
    first = desk.submits(lasts=600)
    second = desk.submits(after=(Dependency(job=first, kind=DependencyKind.AFTER),))
    published.plan()
    assert isinstance(published.why(second), DependsOn)

    desk.lets_pass(10)

    assert desk.state(first) is JobState.RUNNING
    assert published.why(second) is None


def test_what_a_plan_said_of_other_jobs_stays() -> None:
    desk = Desk()
    published = Published(desk)
    jobs = [desk.submits(begin_at=LATER) for _ in range(3)]
    published.plan()

    desk.asks("root", JobAction.HOLD, jobs[1])

    assert [published.why(each) for each in jobs] == [
        NotBefore(at=LATER),
        None,
        NotBefore(at=LATER),
    ]
