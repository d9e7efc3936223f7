"""Stories through the real record, journal, cycle and planner, in pretend time."""

import pytest

from controller.desk import SITE, Desk, caller, spec
from muster.backends.simulated.attempt import Behaviour
from muster.controller.messages import HeldByAdmin
from muster.controller.use_cases.job_actions import JobAction
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.job import Cancelled, Exited, NodeFailed, Preempted, Requeued, TimedOut
from muster.model.queue import Queue
from muster.model.value import Duration, Instant, NodeId, QueuePath, UserName
from muster.simulator.run import Arrival
from muster.stores.base import EventQuery


def test_a_job_runs_and_its_end_is_kept() -> None:
    desk = Desk()
    job = desk.submits(lasts=60)

    desk.lets_all_end()

    assert desk.job(job).why == Exited(code=0)
    attempts = desk.simulation.parts.history.attempts((job,))
    assert [attempt.number for attempt in attempts] == [1]
    assert desk.record.allocations == {}


def test_what_frees_room_lets_the_next_one_start() -> None:
    desk = Desk(gpus=4)
    first = desk.submits(gpus=4, lasts=60)
    second = desk.submits(gpus=4, lasts=60)
    desk.lets_pass(10)
    assert (desk.state(first), desk.state(second)) == ("running", "pending")

    desk.lets_pass(60)

    assert (desk.state(first), desk.state(second)) == ("completed", "running")


def test_a_cancelled_job_stops_and_does_not_come_back() -> None:
    desk = Desk()
    job = desk.submits(lasts=600)
    desk.lets_pass(10)

    outcome = desk.asks("ada", JobAction.CANCEL, job)
    desk.lets_all_end()

    assert outcome.done == (job,)
    assert desk.job(job).why == Cancelled(by=UserName("ada"))


def test_a_waiting_job_is_cancelled_at_once() -> None:
    desk = Desk(gpus=1)
    desk.submits(lasts=600)
    waits = desk.submits(lasts=600)
    desk.lets_pass(1)

    desk.asks("ada", JobAction.CANCEL, waits)

    assert desk.state(waits) == "cancelled"


def test_a_requeued_job_runs_again_as_another_attempt() -> None:
    desk = Desk()
    job = desk.submits(lasts=600)
    desk.lets_pass(10)

    desk.asks("ada", JobAction.REQUEUE, job)
    desk.lets_all_end()

    attempts = desk.simulation.parts.history.attempts((job,))
    assert [attempt.why for attempt in attempts] == [
        Requeued(by=UserName("ada")),
        Exited(code=0),
    ]


def test_a_suspended_job_leaves_its_room_and_goes_on_when_it_is_resumed() -> None:
    desk = Desk(gpus=1)
    first = desk.submits(lasts=60)
    desk.lets_pass(10)

    desk.asks("ada", JobAction.SUSPEND, first)
    second = desk.submits(lasts=20)
    desk.lets_pass(10)
    assert (desk.state(first), desk.state(second)) == ("suspended", "running")
    desk.asks("ada", JobAction.RESUME, first)
    desk.lets_all_end()

    assert (desk.state(first), desk.state(second)) == ("completed", "completed")


def test_a_job_that_must_make_room_is_preempted_and_runs_again() -> None:
    desk = Desk(gpus=1)
    low = desk.submits(lasts=600, job_class="low")
    desk.lets_pass(10)

    high = desk.submits("grace", lasts=60, job_class="high")
    desk.lets_all_end()

    whys = [attempt.why for attempt in desk.simulation.parts.history.attempts((low,))]
    assert isinstance(whys[0], Preempted)
    assert whys[1] == Exited(code=0)
    assert desk.state(high) == "completed"


def test_a_failed_job_is_tried_as_often_as_it_asked() -> None:
    desk = Desk()
    job = desk.submits(lasts=10)
    desk.will_go(job, Behaviour(work=Duration(10_000), end=Exited(code=3)))

    desk.lets_all_end()

    assert desk.job(job).why == Exited(code=3)
    assert desk.state(job) == "failed"


def test_a_job_ends_at_its_time_limit() -> None:
    desk = Desk()
    job = desk.submits(lasts=600, limit_s=60)

    desk.lets_all_end()

    assert desk.job(job).why == TimedOut(limit=Duration(60_000))


def test_a_job_whose_node_is_lost_runs_elsewhere() -> None:
    desk = Desk(nodes=2)
    job = desk.submits(gpus=4, lasts=60)
    desk.backend.fail_node(NodeId("n1"), Instant(10_000), Instant(600_000))

    desk.lets_all_end()

    attempts = desk.simulation.parts.history.attempts((job,))
    assert [attempt.nodes for attempt in attempts] == [("n1",), ("n2",)]
    assert attempts[0].why == NodeFailed(node=NodeId("n1"))


def test_work_that_must_be_done_again_is_counted() -> None:
    desk = Desk(nodes=2)
    job = desk.submits(gpus=4, lasts=60)
    desk.backend.fail_node(NodeId("n1"), Instant(10_000))

    desk.lets_all_end()

    lost = [attempt.lost_gpu_ms for attempt in desk.simulation.parts.history.attempts((job,))]
    assert lost == [40_000, 0]


def test_a_held_job_waits_until_it_is_released() -> None:
    desk = Desk()
    job = desk.submits(lasts=60)
    desk.asks("ada", JobAction.HOLD, job)
    desk.lets_pass(10)
    assert desk.state(job) == "held"

    desk.asks("ada", JobAction.RELEASE, job)
    desk.lets_pass(1)

    assert desk.state(job) == "running"


def test_what_an_administrator_holds_its_owner_cannot_release() -> None:
    desk = Desk(gpus=1)
    desk.submits(lasts=600)
    job = desk.submits(lasts=60)
    desk.asks("root", JobAction.HOLD, job)

    outcome = desk.asks("ada", JobAction.RELEASE, job)

    assert outcome.failed == {job: HeldByAdmin(job=str(job))}


def test_what_is_held_for_its_owner_the_owner_can_release() -> None:
    desk = Desk(gpus=1)
    desk.submits(lasts=600)
    job = desk.submits(lasts=60)
    desk.asks("root", JobAction.HOLD, job, for_owner=True)
    assert desk.state(job) == "held"

    outcome = desk.asks("ada", JobAction.RELEASE, job)

    assert outcome.done == (job,)


def test_a_stranger_cannot_cancel() -> None:
    desk = Desk()
    job = desk.submits("ada", lasts=600)

    outcome = desk.asks("grace", JobAction.CANCEL, job)

    assert outcome.done == ()
    assert "belongs to ada" in outcome.failed[job].sentence


def test_the_admin_of_a_queue_can_cancel_below_it_and_not_beside_it() -> None:
    desk = Desk()
    below, beside = desk.submits(queue="a/b", lasts=600), desk.submits(lasts=600)

    outcome = desk.asks("boss", JobAction.CANCEL, below, beside)

    assert outcome.done == (below,)
    assert list(outcome.failed) == [beside]


def test_a_viewer_cannot_submit() -> None:
    desk = Desk()

    entry = Submission(caller=caller("guest"), spec=spec("guest"), kinds=NodeKinds())

    with pytest.raises(ForbiddenError, match="takes the role user"):
        desk.simulation.journal.write(entry.enter).result()


def test_a_request_that_fits_nowhere_is_refused_and_leaves_nothing() -> None:
    desk = Desk(gpus=4)

    with pytest.raises(RefusedError):
        desk.submits(gpus=8)

    assert desk.record.jobs == {}


def test_an_array_shares_one_launch_and_counts_its_width() -> None:
    desk = Desk(gpus=4)
    receipt = desk.simulation.submit(
        Arrival(at=Instant(0), spec=spec(), indices=(0, 1, 2, 3), at_once=2)
    )
    for job in receipt.jobs:
        desk.will_go(job, Behaviour(work=Duration(60_000)))

    desk.lets_pass(1)

    states = [desk.state(job) for job in receipt.jobs]
    assert states == ["running", "running", "pending", "pending"]
    assert desk.simulation.parts.store.launch(receipt.jobs[0]) is not None
    assert desk.simulation.parts.store.launch(receipt.jobs[1]) is None


def test_an_array_that_does_not_fit_into_its_queue_is_refused_whole() -> None:
    small = Queue(path=QueuePath("default"), max_submitted=3)
    desk = Desk()
    desk.changes_site(queues={**SITE.queues, QueuePath("default"): small})

    with pytest.raises(RefusedError, match="places for 3 more jobs"):
        desk.simulation.submit(Arrival(at=Instant(0), spec=spec(), indices=(0, 1, 2, 3)))

    assert desk.record.jobs == {}


def test_the_same_story_gives_the_same_events() -> None:
    def events_of_one_run() -> list[object]:
        desk = Desk(nodes=2)
        for number in range(12):
            desk.submits(gpus=number % 4 + 1, lasts=30 + number)
        desk.lets_all_end()
        events = desk.simulation.parts.history.events
        return [stored.event for stored in events(EventQuery())]

    assert events_of_one_run() == events_of_one_run()


def test_nodes_whose_pool_is_taken_out_of_the_rules_go_on_in_a_plain_pool() -> None:
    desk = Desk(gpus=2)
    before = desk.submits(lasts=60)
    desk.lets_pass(10)

    desk.changes_site(pools={})
    after = desk.submits(lasts=60)
    desk.lets_pass(10)

    assert (desk.state(before), desk.state(after)) == ("running", "running")
