import pytest

from contracts.backends.given import (
    ANN,
    BY_ANN,
    BY_OTHER,
    CLUSTER,
    N1,
    N2,
    NODES,
    job_of,
    run_of,
)
from muster.backends.base import (
    Backend,
    Continue,
    Cut,
    Forget,
    Limit,
    OutputPort,
    Signal,
    StepsPort,
    Stop,
    Suspend,
    TerminalPort,
    UsagePort,
)
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.cluster import NodeState
from muster.model.event import (
    Event,
    JobCheckpointed,
    JobEnded,
    JobStarted,
    JobSuspended,
    NodeSeen,
)
from muster.model.gpu import MigInstance
from muster.model.job import EndReason, Exited, Job, NodeFailed, Requeued, TimedOut
from muster.model.placement import Allocation
from muster.model.value import SECOND, DeviceId, Duration, Instant, JobId, NodeId, replace

OK = Exited(code=0)
LATER = Instant(1_000_000_000)


class Stage:
    """A simulated cluster whose first sights are over; every job has the same behaviour."""

    def __init__(self, tells_every: int = SECOND, **behaviour: object) -> None:
        self.behaviour = Behaviour(**({"work": Duration(1_000)} | behaviour))  # pyright: ignore[reportArgumentType]
        self.backend = SimulatedBackend(
            NODES.values(), CLUSTER, self.lasts, tells_every=Duration(tells_every)
        )
        self.backend.observe(Instant(0))

    def lasts(self, _job: Job, _allocation: Allocation) -> Behaviour:
        return self.behaviour

    def runs(
        self,
        at: int = 0,
        *,
        job: int = 1,
        attempt: int = 1,
        limit: int | None = None,
        nodes: tuple[NodeId, ...] = (N1,),
    ) -> None:
        there = tuple(NODES[each] for each in nodes)
        self.backend.do(run_of(job_of(job, attempt, limit), at, there))

    def stops(
        self, *, attempt: int = 1, grace: int = 0, saving: bool = False, why: EndReason = BY_ANN
    ) -> None:
        self.backend.do(
            Stop(job=JobId(1), attempt=attempt, why=why, grace=Duration(grace), checkpoint=saving)
        )

    def suspends(self) -> None:
        self.backend.do(Suspend(job=JobId(1), attempt=1))

    def goes_on(self) -> None:
        self.backend.do(Continue(job=JobId(1), attempt=1))

    def limits(self, ends_at: int | None) -> None:
        at = None if ends_at is None else Instant(ends_at)
        self.backend.do(Limit(job=JobId(1), attempt=1, ends_at=at))

    def by(self, at: int) -> list[Event]:
        return list(self.backend.observe(Instant(at)))


def started(at: int, attempt: int = 1, job: int = 1) -> JobStarted:
    return JobStarted(at=Instant(at), job=JobId(job), attempt=attempt)


def checkpointed(at: int, attempt: int = 1) -> JobCheckpointed:
    return JobCheckpointed(at=Instant(at), job=JobId(1), attempt=attempt)


def suspended(at: int) -> JobSuspended:
    return JobSuspended(at=Instant(at), job=JobId(1), attempt=1)


def ended(at: int, why: EndReason = OK, attempt: int = 1, job: int = 1) -> JobEnded:
    return JobEnded(at=Instant(at), job=JobId(job), attempt=attempt, why=why)


def test_an_attempt_starts_after_its_delay_and_ends_when_its_work_is_done() -> None:
    stage = Stage(start_delay=50)
    stage.runs(at=100)

    assert stage.by(149) == []
    assert stage.by(150) == [started(150)]
    assert stage.by(1_149) == []
    assert stage.by(LATER) == [ended(1_150)]


def test_it_ends_as_its_fate_says() -> None:
    stage = Stage(end=Exited(code=3))
    stage.runs()

    assert stage.by(LATER) == [started(0), ended(1_000, Exited(code=3))]


def test_one_look_tells_all_that_happened_in_order() -> None:
    stage = Stage()
    stage.runs(at=300, job=1)
    stage.runs(at=300, job=2)

    assert stage.by(LATER) == [
        started(300),
        started(300, job=2),
        ended(1_300),
        ended(1_300, job=2),
    ]


def test_it_says_when_to_look_next() -> None:
    stage = Stage(start_delay=50)
    assert stage.backend.next_at() is None

    stage.runs(at=100)
    assert stage.backend.next_at() == 150

    stage.by(150)
    assert stage.backend.next_at() == 1_150

    stage.stops()
    assert stage.backend.next_at() == 150

    stage.by(150)
    assert stage.backend.next_at() is None


def test_what_would_have_come_is_no_reason_to_look() -> None:
    stage = Stage()
    stage.runs()
    stage.by(10)
    stage.suspends()
    stage.by(10)

    assert stage.backend.next_at() is None


def test_the_time_limit_counts_from_the_start() -> None:
    stage = Stage(start_delay=50)
    stage.runs(limit=400)

    assert stage.by(LATER) == [started(50), ended(450, TimedOut(limit=Duration(400)))]


def test_who_is_ready_in_the_last_moment_was_ready_in_time() -> None:
    stage = Stage()
    stage.runs(limit=1_000)

    assert stage.by(LATER)[-1] == ended(1_000)


@pytest.mark.parametrize("before_start", [True, False])
def test_a_limit_may_be_moved_or_lifted(before_start: bool) -> None:
    shorter, none = Stage(start_delay=50), Stage(start_delay=50)
    for stage, ends_at in ((shorter, 250), (none, None)):
        stage.runs(limit=400)
        stage.by(40 if before_start else 60)
        stage.limits(ends_at)

    assert shorter.by(LATER)[-1] == ended(250, TimedOut(limit=Duration(200)))
    assert none.by(LATER)[-1] == ended(1_050)


def test_a_limit_in_the_past_strikes_now() -> None:
    stage = Stage()
    stage.runs()
    stage.by(500)
    stage.limits(200)

    assert stage.by(600) == [ended(500, TimedOut(limit=Duration(200)))]


def test_a_suspended_attempt_does_no_work_and_its_limit_stands_still() -> None:
    free, limited = Stage(), Stage()
    for stage, limit in ((free, None), (limited, 800)):
        stage.runs(limit=limit)
        stage.by(400)
        stage.suspends()
        assert stage.by(400) == [suspended(400)]
        assert stage.by(5_000) == []
        stage.goes_on()

    assert free.by(LATER) == [ended(5_600)]
    assert limited.by(LATER) == [ended(5_400, TimedOut(limit=Duration(800)))]


def test_suspending_and_going_on_twice_happen_once() -> None:
    stage = Stage()
    stage.runs()
    stage.by(400)
    stage.suspends()
    stage.suspends()
    assert stage.by(500) == [suspended(400)]

    stage.goes_on()
    stage.by(700)
    stage.goes_on()
    assert stage.by(LATER) == [ended(1_100)]


def test_one_suspended_before_it_started_stands_as_soon_as_it_does() -> None:
    stage = Stage(start_delay=50)
    stage.runs()
    stage.suspends()

    assert stage.by(500) == [started(50), suspended(50)]

    stage.goes_on()
    assert stage.by(LATER) == [ended(1_500)]


def test_ordered_to_stop_it_takes_the_time_it_needs_but_no_more_than_the_grace() -> None:
    quick, slow = Stage(stops_in=30), Stage(stops_in=300)
    for stage in (quick, slow):
        stage.runs()
        stage.by(400)
        stage.stops(grace=100)

    assert quick.by(LATER) == [ended(430, BY_ANN)]
    assert slow.by(LATER) == [ended(500, BY_ANN)]


def test_ordered_again_to_stop_it_may_end_sooner_but_not_later() -> None:
    stage = Stage(stops_in=900)
    stage.runs()
    stage.by(100)
    stage.stops(grace=500, why=BY_OTHER)
    stage.by(200)
    stage.stops(grace=500, why=BY_OTHER)
    assert stage.backend.next_at() == 600

    stage.stops(grace=50, why=BY_ANN)
    assert stage.by(LATER) == [ended(250, BY_OTHER)]


def test_stopped_before_it_started_it_never_starts() -> None:
    stage = Stage(start_delay=50)
    stage.runs()
    stage.stops(grace=100)

    assert stage.by(LATER) == [ended(0, BY_ANN)]


def test_a_suspended_attempt_can_be_stopped() -> None:
    stage = Stage(stops_in=30)
    stage.runs()
    stage.by(400)
    stage.suspends()
    stage.by(500)
    stage.stops(grace=100)
    stage.goes_on()

    assert stage.by(LATER) == [ended(530, BY_ANN)]


def test_checkpoints_are_reported_now_and_then_with_the_instant_they_were_written() -> None:
    stage = Stage(work=1_000, checkpoint_every=100, tells_every=250)
    stage.runs()

    assert stage.by(LATER) == [
        started(0),
        checkpointed(300),
        checkpointed(600),
        checkpointed(900),
        ended(1_000),
    ]


def test_a_stop_tells_of_the_newest_checkpoint_and_the_next_attempt_goes_on_there() -> None:
    stage = Stage(checkpoint_every=100, restart_overhead=7)
    stage.runs()
    stage.by(450)
    stage.stops()
    assert stage.by(450) == [checkpointed(400), ended(450, BY_ANN)]

    stage.runs(at=2_000, attempt=2)
    assert stage.by(LATER) == [started(2_000, 2), ended(2_607, attempt=2)]


def test_without_checkpoints_everything_is_done_again() -> None:
    stage = Stage()
    stage.runs()
    stage.by(450)
    stage.stops()
    stage.runs(at=2_000, attempt=2)

    assert stage.by(LATER)[-1] == ended(3_000, attempt=2)


def test_one_that_can_saves_what_it_has_before_it_stops() -> None:
    stage = Stage(saves_in=20, stops_in=5)
    stage.runs()
    stage.by(450)
    stage.stops(grace=100, saving=True)
    stage.stops(grace=100, saving=True)
    assert stage.by(475) == [checkpointed(470), ended(475, BY_ANN)]

    stage.runs(at=2_000, attempt=2)
    assert stage.by(LATER)[-1] == ended(2_550, attempt=2)


@pytest.mark.parametrize("grace", [19, 0])
def test_a_checkpoint_that_takes_longer_than_the_grace_is_not_written(grace: int) -> None:
    stage = Stage(saves_in=20)
    stage.runs()
    stage.by(450)
    stage.stops(grace=grace, saving=True)

    assert stage.by(LATER) == [ended(450, BY_ANN)]


def test_a_hurried_stop_cuts_the_checkpoint_off() -> None:
    stage = Stage(saves_in=200)
    stage.runs()
    stage.by(450)
    stage.stops(grace=300, saving=True)
    stage.stops(grace=100)

    assert stage.by(LATER) == [ended(550, BY_ANN)]


def test_a_lost_node_ends_what_runs_there_and_comes_back() -> None:
    stage = Stage(checkpoint_every=100)
    stage.runs(job=1, nodes=(N1, N2))
    stage.runs(job=2, nodes=(N2,))
    stage.backend.fail_node(N1, Instant(450), Instant(800))
    stage.by(10)

    down, *reported = stage.by(450)
    assert isinstance(down, NodeSeen)
    assert (down.node.id, down.node.state) == (N1, NodeState.DOWN)
    assert reported == [checkpointed(400), ended(450, NodeFailed(node=N1))]
    assert stage.by(900) == [NodeSeen(at=Instant(800), node=NODES[N1])]
    assert stage.by(LATER) == [ended(1_000, job=2)]


def test_overlapping_outages_are_one() -> None:
    stage = Stage()
    stage.backend.fail_node(N1, Instant(100), Instant(300))
    stage.backend.fail_node(N1, Instant(200), Instant(400))

    sights = stage.by(LATER)

    assert [event.at for event in sights if isinstance(event, NodeSeen)] == [100, 400]


def test_what_is_run_on_a_node_that_is_down_is_lost_at_once() -> None:
    stage = Stage()
    stage.backend.fail_node(N1, Instant(100))
    stage.by(200)
    stage.runs(at=300)

    assert stage.by(LATER) == [ended(300, NodeFailed(node=N1))]


def test_a_failed_attempt_keeps_what_it_saved_and_a_finished_job_nothing() -> None:
    stage = Stage(checkpoint_every=400, end=Exited(code=1))
    stage.runs()
    stage.by(LATER)
    stage.behaviour = Behaviour(work=Duration(1_000))
    stage.runs(at=LATER, attempt=2)
    assert stage.by(LATER + 1_000)[-1] == ended(LATER + 200, attempt=2)

    stage.runs(at=LATER + 1_000, attempt=3)
    assert stage.by(LATER + 9_000)[-1] == ended(LATER + 2_000, attempt=3)


def test_an_attempt_is_run_once_until_it_is_forgotten() -> None:
    stage = Stage()
    stage.runs()
    stage.runs()
    stage.by(LATER)
    stage.runs()
    assert stage.by(LATER) == []

    stage.backend.do(Forget(job=JobId(1), attempt=1))
    stage.backend.do(Forget(job=JobId(1), attempt=1))
    assert stage.backend.going == ()


def test_what_is_forgotten_while_it_runs_ends_without_a_word() -> None:
    stage = Stage()
    stage.runs()
    stage.by(10)
    stage.backend.do(Forget(job=JobId(1), attempt=1))

    assert (stage.by(LATER), stage.backend.next_at()) == ([], None)


def test_who_adopts_learns_everything_again_and_of_what_is_lost() -> None:
    stage = Stage(checkpoint_every=100)
    stage.runs(job=1)
    stage.runs(job=2)
    stage.runs(job=3)
    stage.by(450)
    stage.suspends()
    stage.by(450)
    kept = run_of(job_of(1, 1), 0).allocation
    unknown = replace(run_of(job_of(4, 1), 0).allocation, started_at=Instant(0))
    never_begun = run_of(job_of(5, 1), 0).allocation

    stage.backend.adopt((kept, unknown, never_begun))

    _, *reported = [event for event in stage.by(LATER) if not isinstance(event, NodeSeen)]
    assert reported == [
        started(0),
        checkpointed(400),
        suspended(450),
        ended(450, NodeFailed(node=N1), job=4),
    ]
    assert stage.backend.going == ((1, 1),)


def test_a_device_that_is_cut_is_seen_so_once() -> None:
    stage = Stage()
    small = (MigInstance(profile="1g.5gb", start=0),)
    cut = Cut(node=N1, device=DeviceId("n1-1"), instances=small)

    stage.backend.do(cut)
    stage.backend.do(cut)

    (seen,) = stage.by(LATER)
    assert isinstance(seen, NodeSeen)
    assert [device.mig for device in seen.node.devices] == [None, small]


def test_what_nobody_knows_is_not_disturbed() -> None:
    stage = Stage()
    stage.stops()
    stage.suspends()
    stage.goes_on()
    stage.limits(5)
    stage.backend.do(Signal(job=JobId(1), attempt=1, signal=10))

    assert stage.by(LATER) == []


def test_an_old_look_tells_nothing_new_and_loses_nothing() -> None:
    stage = Stage()
    stage.runs(at=500)

    assert stage.by(100) == []
    assert stage.by(500) == [started(500)]


def test_nothing_can_be_read_or_typed() -> None:
    backend: Backend = Stage().backend

    for port in (OutputPort, TerminalPort, StepsPort, UsagePort):
        assert not isinstance(backend, port)


def test_a_requeue_is_reported_as_such() -> None:
    stage = Stage()
    stage.runs()
    stage.by(10)
    stage.stops(why=Requeued(by=ANN))

    assert stage.by(10) == [ended(10, Requeued(by=ANN))]
