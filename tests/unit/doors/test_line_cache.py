"""Lines of waiting jobs, kept from one listing to the next."""

from muster.controller.messages import JobView
from muster.doors.line_cache import FEWEST_KEPT, MOST_FORMS, LineCache, LineCaches
from muster.model.job import Job, JobSpec, JobState, TaskGroup
from muster.model.plan import Wait
from muster.model.reason import NoRoom, TooManyJobs, WaitReason
from muster.model.value import Instant, JobId, QueuePath, UserName, replace

NO_ROOM = NoRoom(group="main", placed=0, wanted=1, nodes=3)


def waiting(number: int = 7, why: WaitReason = NO_ROOM) -> JobView:
    spec = JobSpec(name="fit", queue=QueuePath("a"), user=UserName("ann"), groups=(TaskGroup(),))
    job = Job(id=JobId(number), spec=spec, submitted_at=Instant(0))
    return JobView(job=job, wait=Wait(job=job.id, why=why))


def test_a_line_is_known_while_the_job_and_its_reason_stay_the_same() -> None:
    cache: LineCache[str] = LineCache()
    view = waiting()

    assert cache.get(view) is None
    assert cache.put(view, "line") == "line"
    assert cache.get(view) == "line"
    assert cache.get(replace(view, wait=None)) is None
    full = TooManyJobs(queue=QueuePath("a"), limit=1)
    assert cache.get(JobView(job=view.job, wait=waiting(why=full).wait)) is None


def test_an_equal_job_of_another_server_has_a_line_of_its_own() -> None:
    cache: LineCache[str] = LineCache()
    cache.put(waiting(), "line")

    assert cache.get(waiting()) is None


def test_a_line_is_known_only_with_what_else_it_shows() -> None:
    cache: LineCache[str] = LineCache()
    view = waiting()
    cache.put(view, "line", Instant(5))

    assert cache.get(view, Instant(5)) == "line"
    assert cache.get(view, Instant(6)) is None


def test_lines_of_jobs_that_do_not_wait_are_not_kept() -> None:
    cache: LineCache[str] = LineCache()
    over = JobView(job=replace(waiting().job, state=JobState.COMPLETED))

    assert cache.put(over, "line") == "line"
    assert cache.get(over) is None


def test_jobs_that_have_ended_are_forgotten_when_many_are_kept() -> None:
    cache: LineCache[str] = LineCache()
    views = [waiting(number) for number in range(1, FEWEST_KEPT + 2)]
    for view in views:
        cache.put(view, "line")

    cache.forget_ended(lambda job: job == 1)

    assert cache.get(views[0]) == "line"
    assert cache.get(views[1]) is None


def test_a_form_keeps_its_lines_until_too_many_others_were_used() -> None:
    caches: LineCaches[str] = LineCaches()
    first = caches.of("first")

    for number in range(MOST_FORMS - 1):
        caches.of(number)
    assert caches.of("first") is first
    for number in range(MOST_FORMS):
        caches.of(number)
    assert caches.of("first") is not first
