import msgspec

from muster.api.jobs import JobDocument, JobPage
from muster.controller.messages import JobView
from muster.doors.line_cache import LineCache
from muster.doors.rest.listing import EncodedPage, encoded
from muster.doors.rest.show_jobs import job_document
from muster.model.job import Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Allocation, Placement
from muster.model.plan import Prospect, Wait
from muster.model.reason import Behind, NoRoom, WaitReason
from muster.model.resources import Resources
from muster.model.value import (
    HOUR,
    MINUTE,
    ClusterName,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)

NOW = Instant(1_790_000_000_000)
LATER = Instant(NOW + 5 * MINUTE)
IN_AN_HOUR = Prospect(expected=Instant(NOW + HOUR))
NO_ROOM = NoRoom(group="main", placed=0, wanted=1, nodes=3)


def job(number: int = 7, state: JobState = JobState.PENDING) -> Job:
    spec = JobSpec(
        name="train",
        user=UserName("anna"),
        queue=QueuePath("acme"),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000)),),
    )
    return Job(id=JobId(number), spec=spec, state=state, submitted_at=NOW)


def waiting(known: Job, why: WaitReason = NO_ROOM) -> JobView:
    return JobView(job=known, wait=Wait(job=known.id, why=why))


class Jobs:
    """A list of documents that is asked for several times."""

    def __init__(self) -> None:
        self._cache: LineCache[msgspec.Raw] = LineCache()

    def of(self, view: JobView, now: Instant, prospect: Prospect = IN_AN_HOUR) -> msgspec.Raw:
        backlog = {view.job.id: prospect}
        return next(encoded([view], now, job_document, backlog, self._cache))


def read(text: msgspec.Raw) -> JobDocument:
    return msgspec.json.decode(text, type=JobDocument)


def test_a_job_that_waits_is_encoded_once() -> None:
    jobs, view = Jobs(), waiting(job())

    first = jobs.of(view, NOW)

    assert jobs.of(view, LATER) is first
    assert read(first) == job_document(view, LATER, IN_AN_HOUR)


def test_another_wait_and_another_job_are_encoded_again() -> None:
    jobs, view = Jobs(), waiting(job())
    jobs.of(view, NOW)
    moved = replace(view, job=replace(view.job, spec=replace(view.job.spec, priority=5)))
    sooner = Prospect(expected=LATER)

    assert read(jobs.of(view, NOW, sooner)) == job_document(view, NOW, sooner)
    assert read(jobs.of(moved, NOW)) == job_document(moved, NOW, IN_AN_HOUR)
    planned_no_more = JobView(job=view.job)
    assert read(jobs.of(planned_no_more, NOW)) == job_document(planned_no_more, NOW)


def test_a_reason_whose_words_depend_on_the_clock_is_encoded_each_time() -> None:
    jobs = Jobs()
    view = waiting(job(), Behind(job=JobId(3), starts_at=Instant(NOW + HOUR)))

    jobs.of(view, NOW)

    assert read(jobs.of(view, LATER)) == job_document(view, LATER, IN_AN_HOUR)
    assert job_document(view, LATER) != job_document(view, NOW)


def test_a_job_that_holds_something_is_encoded_each_time() -> None:
    jobs, known = Jobs(), job(state=JobState.RUNNING)
    placement = Placement(
        group="main",
        index=0,
        node=NodeId("n1"),
        pool=PoolName("p"),
        amount=Resources(gpu_milli=1_000),
    )
    held = Allocation(
        job=known.id,
        attempt=1,
        cluster=ClusterName("here"),
        placements=(placement,),
        placed_at=NOW,
        started_at=NOW,
    )
    view = JobView(job=known, allocation=held, started_at=NOW)

    jobs.of(view, NOW)

    assert read(jobs.of(view, LATER)).gpu_seconds == 300


def test_an_encoded_page_reads_as_a_page() -> None:
    view = waiting(job())

    page = msgspec.json.encode(EncodedPage(jobs=(Jobs().of(view, NOW),), next="7"))

    assert msgspec.json.decode(page, type=JobPage) == JobPage(
        jobs=(job_document(view, NOW, IN_AN_HOUR),), next="7"
    )
