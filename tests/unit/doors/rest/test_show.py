import pytest

from muster.api.site import QueueDocument
from muster.controller.messages import JobDetail, JobView
from muster.controller.queries.nodes import NodeQueries
from muster.controller.queries.queues import QueueQueries
from muster.controller.world.record import Record
from muster.doors.rest.show_jobs import (
    attempt_document,
    detail_document,
    job_document,
    stamp,
)
from muster.doors.rest.show_nodes import node_documents
from muster.doors.rest.show_queues import queue_document
from muster.doors.rest.words import ended, reason
from muster.doors.units import rfc3339
from muster.model.cluster import Node
from muster.model.gpu import Device, GpuAsk, Mig, MpsShare
from muster.model.history import Attempt, Used
from muster.model.job import (
    Ask,
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TaskGroup,
    TimedOut,
)
from muster.model.launch import Launch
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.plan import Prospect, Wait
from muster.model.queue import Meter, Percent, PreemptMode, Queue, Quota, Scope
from muster.model.reason import Behind, NoRoom
from muster.model.resources import Resources
from muster.model.site import Site
from muster.model.snapshot import UsedLately
from muster.model.value import (
    HOUR,
    MINUTE,
    ClusterName,
    DeviceId,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.model.words import NO_LABELS
from muster.stores.base import LiveState

NOW = Instant(1_790_000_000_000)
MODEL = GpuModel("A100-40GB")
HERE, POOL, N1 = ClusterName("here"), PoolName("a100"), NodeId("n1")


def job(number: int = 7, state: JobState = JobState.PENDING, queue: str = "acme/nlp") -> Job:
    spec = JobSpec(
        name="train",
        user=UserName("anna"),
        queue=QueuePath(queue),
        groups=(TaskGroup(each=Ask(cpu_milli=2_000, memory_mib=1_024, gpus=GpuAsk(count=2))),),
        time_limit=HOUR,
    )
    return Job(id=JobId(number), spec=spec, state=state, submitted_at=NOW)


def held(number: int, *devices: DeviceShare, gpu_milli: int) -> Allocation:
    placement = Placement(
        group="main",
        index=0,
        node=N1,
        pool=POOL,
        amount=Resources(cpu_milli=2_000, memory_mib=1_024, gpu_milli=gpu_milli),
        devices=devices,
    )
    return Allocation(
        job=JobId(number),
        attempt=1,
        cluster=HERE,
        placements=(placement,),
        placed_at=Instant(NOW - MINUTE),
        started_at=Instant(NOW - MINUTE + 1_500),
    )


def device(index: int) -> Device:
    return Device(id=DeviceId(f"gpu{index}"), index=index, model=MODEL, memory_mib=40_960)


def node() -> Node:
    return Node(
        id=N1,
        cluster=HERE,
        pool=POOL,
        cpu_milli=32_000,
        memory_mib=65_536,
        devices=tuple(device(index) for index in range(4)),
    )


def world() -> Record:
    """Job 1 holds two whole GPUs, job 2 a MIG slice, job 3 waits; job 4 is in another queue."""
    running = JobState.RUNNING
    whole = tuple(DeviceShare(device=DeviceId(f"gpu{index}")) for index in (0, 1))
    cut = DeviceShare(device=DeviceId("gpu2"), slice=Mig(profile="3g.20gb"), start=0)
    shared = DeviceShare(device=DeviceId("gpu3"), slice=MpsShare(milli=250))
    quotas = (
        Quota(guaranteed=1_000, limit=Percent(percent=75)),
        Quota(scope=Scope(meter=Meter.MIG, profile="3g.20gb"), limit=2),
        Quota(scope=Scope(meter=Meter.CPU, pool=PoolName("other")), guaranteed=4_000),
    )
    site = Site(
        queues={
            QueuePath("acme"): Queue(path=QueuePath("acme"), quotas=quotas, weight=3),
            QueuePath("acme/nlp"): Queue(path=QueuePath("acme/nlp")),
            QueuePath("rest"): Queue(path=QueuePath("rest")),
        },
    )
    state = LiveState(
        nodes=(node(),),
        jobs=(job(1, running), job(2, running, "acme"), job(3), job(4, running, "rest")),
        allocations=(
            held(1, *whole, gpu_milli=2_000),
            held(2, cut, gpu_milli=429),
            held(4, shared, gpu_milli=250),
        ),
        used=(used("acme/nlp", "a", 300_000), used("rest", "b", 100_000)),
    )
    return Record(state, {}, site)


def used(queue: str, user: str, gpu_milli_ms: int) -> UsedLately:
    return UsedLately(
        queue=QueuePath(queue), user=UserName(user), gpu_milli_ms=gpu_milli_ms, as_of=NOW
    )


def queues() -> tuple[QueueDocument, ...]:
    return tuple(map(queue_document, QueueQueries(world(), lambda: NOW).all()))


def test_a_waiting_job_shows_what_it_asks_for_and_why_it_waits() -> None:
    why = NoRoom(group="main", placed=0, wanted=1, nodes=3)
    view = JobView(job=job(), wait=Wait(job=JobId(7), why=why))

    shown = job_document(view, NOW, Prospect(expected=Instant(NOW + HOUR)))

    assert (shown.cpus, shown.memory_mib, shown.gpus, shown.task_count) == (2, 1_024, 2, 1)
    assert shown.reason is not None
    assert shown.reason.kind == "no_room"
    assert shown.reason.text == (
        "Needs 2 GPUs, 2 cores and 1 GiB on one node; none of 3 usable nodes has that free."
    )
    assert shown.expected_start == rfc3339(Instant(NOW + HOUR))
    assert (shown.time_limit, shown.nodes) == (3_600, ())


def test_two_jobs_that_wait_for_the_same_but_ask_for_different_things_read_differently() -> None:
    why = NoRoom(group="main", placed=0, wanted=1, nodes=3)
    small = replace(job(), spec=replace(job().spec, groups=(TaskGroup(each=Ask(cpu_milli=1)),)))

    texts = [reason(each, Wait(job=each.id, why=why), NOW) for each in (job(), small)]

    assert texts[0] != texts[1]


def test_a_reason_that_tells_the_time_grows_old() -> None:
    why = Behind(job=JobId(3), starts_at=Instant(NOW + HOUR))
    wait = Wait(job=JobId(7), why=why)

    texts = [reason(job(), wait, at) for at in (NOW, Instant(NOW + 30 * MINUTE))]

    endings = [each.text.rpartition(", ")[2] for each in texts if each is not None]
    assert endings == ["in 1h.", "in 30m."]


def test_a_running_job_shows_what_it_holds() -> None:
    share = DeviceShare(device=DeviceId("gpu0"))
    view = JobView(
        job=job(state=JobState.RUNNING),
        allocation=held(7, share, share, gpu_milli=2_000),
        started_at=Instant(NOW - MINUTE),
    )

    shown = detail_document(JobDetail(view=view, launch=Launch(argv=("x",))), NOW, {})

    assert (shown.reason, shown.nodes, shown.cluster) == (None, ("n1",), "here")
    assert shown.gpu_seconds == 120
    assert [share.enforced for share in shown.tasks[0].devices] == ["hardware", "hardware"]
    assert shown.launch is not None


def test_past_attempts_count_and_tell_where_an_ended_job_was() -> None:
    past = Attempt(
        job=JobId(7),
        number=1,
        cluster=HERE,
        pools=(POOL,),
        nodes=(N1,),
        amount=Resources(gpu_milli=2_000),
        placed_at=Instant(NOW - 10_000),
        started_at=Instant(NOW - 9_000),
        ended_at=NOW,
        why=Exited(code=1),
        lost_gpu_ms=5_000,
        used=Used(cpu_ms=1_500, max_memory_mib=64),
    )
    over = replace(job(state=JobState.FAILED), why=Exited(code=1), attempt=1)
    view = JobView(job=over, started_at=past.started_at, ended_at=NOW)

    shown = detail_document(
        JobDetail(view=view, attempts=(past,)), NOW, {N1: replace(node(), pretend=True)}
    )

    assert (shown.nodes, shown.cluster, shown.exit_code, shown.pretend) == (
        ("n1",),
        "here",
        1,
        True,
    )
    assert (shown.gpu_seconds, shown.lost_gpu_seconds) == (20, 5)
    assert attempt_document(past, NO_LABELS).cpu_seconds == 1.5
    assert shown.launch is None


@pytest.mark.parametrize(
    "why",
    [
        Exited(code=0),
        Exited(code=2),
        Signaled(signal=9),
        Signaled(signal=63),
        TimedOut(limit=HOUR),
        OutOfMemory(node=N1),
        NodeFailed(node=N1),
        Preempted(by=JobId(3)),
        Preempted(by=JobId(3), mode=PreemptMode.SUSPEND),
        Cancelled(by=UserName("anna")),
        Requeued(by=UserName("anna")),
        LaunchFailed(text="no such image."),
        DeadlinePassed(deadline=NOW),
    ],
)
def test_every_end_is_reported_in_a_sentence(why: EndReason) -> None:
    text = ended(why)

    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("state", "why", "text"),
    [
        (JobState.PENDING, None, "Is new or was changed; the next plan looks at it."),
        (JobState.HELD, HeldBy(user=UserName("a")), "Held by a until it is released."),
        (JobState.STOPPING, Cancelled(by=UserName("a")), "Is being stopped. Was cancelled by a."),
        (
            JobState.PENDING,
            NodeFailed(node=N1),
            "Waits for another attempt. Node n1 was lost under it.",
        ),
        (JobState.RUNNING, None, None),
        (JobState.COMPLETED, Exited(code=0), "Ended by itself."),
    ],
)
def test_a_reason_follows_from_state_and_why(
    state: JobState, why: EndReason | HeldBy | None, text: str | None
) -> None:
    found = reason(replace(job(state=state), why=why), None, NOW)

    assert (None if found is None else found.text) == text


@pytest.mark.parametrize(
    "at", [0, 1, 999, 1_000, 59_999, 86_399_999, 86_400_000, NOW, NOW + 1, 4_102_444_799_123]
)
def test_stamps_are_as_everywhere_else(at: int) -> None:
    assert stamp(Instant(at)) == rfc3339(Instant(at))


def test_a_node_shows_who_holds_what_of_each_device() -> None:
    nodes = NodeQueries(world(), lambda: NOW)

    (shown,) = node_documents(nodes.all().values(), nodes.held([N1]))

    assert (shown.gpus, shown.gpus_used, shown.jobs) == (4, 2.679, (1, 2, 4))
    assert [(each.used_milli, each.jobs) for each in shown.devices] == [
        (1_000, (1,)),
        (1_000, (1,)),
        (428, (2,)),
        (250, (4,)),
    ]


def test_a_queue_counts_what_is_below_it() -> None:
    acme, nlp, rest = queues()

    assert (acme.running, acme.waiting, nlp.running, rest.running) == (2, 1, 1, 1)
    assert (acme.gpus_used, nlp.gpus_used, rest.gpus_used) == (2.429, 2, 0.25)
    assert (acme.share, nlp.share, rest.share) == (0.75, 0.75, 0.25)
    assert (acme.used_share, rest.used_share) == (0.75, 0.25)


def test_a_quota_line_counts_only_its_scope() -> None:
    gpus, slices, elsewhere = queues()[0].quotas

    assert (gpus.scope, gpus.used, gpus.guaranteed, gpus.limit) == ("gpu", 2.429, 1, 3)
    assert gpus.borrowed == pytest.approx(1.429)
    assert (slices.scope, slices.unit, slices.used, slices.limit) == (
        "mig:3g.20gb",
        "instances",
        1,
        2,
    )
    assert (elsewhere.scope, elsewhere.used, elsewhere.guaranteed) == ("cpu pool=other", 0, 4)


def test_a_long_time_limit_is_reported_in_seconds() -> None:
    spec = replace(job().spec, time_limit=Duration(90_500))

    assert job_document(JobView(job=replace(job(), spec=spec)), NOW).time_limit == 90
