import msgspec

from muster.api.jobs import JobDocument, JobPage
from muster.controller.messages import JobView
from muster.doors.rest.show_jobs import job_document
from muster.doors.rest.written import FEWEST_KEPT, Written, WrittenPage
from muster.model.job import Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Allocation, Placement
from muster.model.plan import Behind, NoRoom, Wait, WaitReason
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
    return JobView(job=known, wait=Wait(job=known.id, why=why, expected=Instant(NOW + HOUR)))


def read(text: msgspec.Raw) -> JobDocument:
    return msgspec.json.decode(text, type=JobDocument)


def test_a_job_that_waits_is_written_once() -> None:
    written, view = Written(), waiting(job())

    first = written.of(view, NOW)

    assert written.of(view, LATER) is first
    assert read(first) == job_document(view, LATER)


def test_another_wait_and_another_job_are_written_anew() -> None:
    written, view = Written(), waiting(job())
    written.of(view, NOW)
    moved = replace(view, job=replace(view.job, spec=replace(view.job.spec, priority=5)))
    sooner = JobView(job=view.job, wait=Wait(job=JobId(7), why=NO_ROOM, expected=LATER))

    for each in (moved, sooner, JobView(job=view.job)):
        assert read(written.of(each, NOW)) == job_document(each, NOW)


def test_a_reason_that_is_told_by_the_clock_is_told_anew_each_time() -> None:
    written = Written()
    view = waiting(job(), Behind(job=JobId(3), starts_at=Instant(NOW + HOUR)))

    written.of(view, NOW)

    assert read(written.of(view, LATER)) == job_document(view, LATER)
    assert job_document(view, LATER) != job_document(view, NOW)


def test_a_job_that_holds_something_is_never_old() -> None:
    written, known = Written(), job(state=JobState.RUNNING)
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

    written.of(view, NOW)

    assert read(written.of(view, LATER)).gpu_seconds == 300


def test_jobs_that_are_over_are_forgotten_when_many_are_kept() -> None:
    written = Written()
    views = [waiting(job(number)) for number in range(1, FEWEST_KEPT + 2)]
    before = [written.of(view, NOW) for view in views]

    written.tidy(lambda: {JobId(1)})

    assert written.of(views[0], NOW) is before[0]
    assert written.of(views[1], NOW) is not before[1]


def test_a_written_page_reads_as_a_page() -> None:
    view = waiting(job())

    page = msgspec.json.encode(WrittenPage(jobs=(Written().of(view, NOW),), next="7"))

    assert msgspec.json.decode(page, type=JobPage) == JobPage(
        jobs=(job_document(view, NOW),), next="7"
    )
