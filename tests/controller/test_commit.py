"""A plan takes time; what changed meanwhile is not carried out, and everything else is."""

import pytest

from controller.desk import SITE, Desk
from controller.test_journal import entry, journal_on
from muster.controller.loop.commit import events_of
from muster.controller.planner.client import InlinePlanner
from muster.controller.use_cases.job_actions import JobAction
from muster.model.cluster import NodeState
from muster.model.event import (
    ClaimDropped,
    DeviceCut,
    Event,
    JobClaimed,
    JobEnded,
    JobPlaced,
    JobPreempted,
    JobStarted,
    JobUpdated,
    NodeChanged,
    NodeSeen,
)
from muster.model.gpu import Mig
from muster.model.job import DeadlinePassed, Exited, JobState
from muster.model.value import Instant, JobId, NodeId, UserName, replace
from muster.stores.memory import MemoryStore


def placed(events: list[Event]) -> list[JobId]:
    return [event.job for event in events if isinstance(event, JobPlaced)]


def test_a_plan_of_an_unchanged_world_is_carried_out_whole() -> None:
    desk = Desk(gpus=4)
    jobs = [desk.submits(gpus=1) for _ in range(3)]

    events = desk.carries_out(desk.plans())

    assert placed(events) == jobs


@pytest.mark.parametrize("move", [JobAction.CANCEL, JobAction.HOLD])
def test_a_job_that_is_cancelled_or_held_meanwhile_is_not_placed(move: JobAction) -> None:
    desk = Desk(gpus=4)
    leaves, stays = desk.submits(), desk.submits()
    plan = desk.plans()

    desk.asks("ada", move, leaves)
    events = desk.carries_out(plan)

    assert placed(events) == [stays]


def test_a_job_that_was_held_and_released_meanwhile_is_planned_again() -> None:
    desk = Desk(gpus=4)
    job = desk.submits()
    plan = desk.plans()

    desk.asks("ada", JobAction.HOLD, job)
    desk.asks("ada", JobAction.RELEASE, job)

    assert placed(desk.carries_out(plan)) == []
    assert placed(desk.carries_out(desk.plans())) == [job]


def test_a_job_that_is_updated_meanwhile_is_not_placed_as_it_was() -> None:
    desk = Desk(gpus=4)
    job = desk.submits(gpus=4)
    plan = desk.plans()
    smaller = replace(desk.job(job).spec, groups=desk.job(desk.submits(gpus=1)).spec.groups)

    desk.applies(JobUpdated(at=Instant(0), job=job, spec=smaller, by=UserName("ada")))

    assert placed(desk.carries_out(plan)) == []


def test_a_node_that_is_drained_meanwhile_is_not_used() -> None:
    desk = Desk(nodes=2, gpus=4)
    first, second = desk.submits(gpus=4), desk.submits(gpus=4)
    plan = desk.plans()
    drained = NodeId("n1")

    desk.applies(
        NodeChanged(at=Instant(0), node=drained, state=NodeState.DRAINING, by=UserName("root"))
    )
    events = desk.carries_out(plan)

    assert len(placed(events)) == 1
    used = {each.node for job in desk.holds().values() for each in job.placements}
    assert used == {"n2"}
    assert {first, second} > set(placed(events))


def test_a_node_of_which_a_device_broke_meanwhile_is_not_used() -> None:
    desk = Desk(gpus=4)
    desk.submits(gpus=1)
    plan = desk.plans()
    known = desk.record.nodes[NodeId("n1")]
    devices = (replace(known.devices[0], healthy=False), *known.devices[1:])

    desk.applies(NodeSeen(at=Instant(0), node=replace(known, devices=devices)))

    assert placed(desk.carries_out(plan)) == []


def test_room_that_became_free_meanwhile_changes_nothing() -> None:
    desk = Desk(gpus=4)
    ends = desk.submits(gpus=2, lasts=600)
    desk.lets_pass(1)
    job = desk.submits(gpus=2)
    plan = desk.plans()

    desk.applies(JobEnded(at=Instant(2_000), job=ends, attempt=1, why=Exited(code=0)))

    assert placed(desk.carries_out(plan)) == [job]


def test_without_the_job_for_which_a_device_is_cut_nothing_lands_on_it() -> None:
    desk = Desk(gpus=1)
    first = desk.submits(slice=Mig(profile="3g.20gb"))
    second = desk.submits(slice=Mig(profile="3g.20gb"))
    plan = desk.plans()
    assert {each.job for each in plan[0].moves} == {first, second}

    desk.asks("ada", JobAction.CANCEL, first)
    events = desk.carries_out(plan)

    assert events == []


def test_the_next_plan_cuts_the_device_for_who_is_left() -> None:
    desk = Desk(gpus=1)
    first = desk.submits(slice=Mig(profile="3g.20gb"))
    second = desk.submits(slice=Mig(profile="3g.20gb"))
    plan = desk.plans()
    desk.asks("ada", JobAction.CANCEL, first)
    desk.carries_out(plan)

    events = desk.carries_out(desk.plans())

    assert [type(event) for event in events] == [DeviceCut, JobPlaced]
    assert placed(events) == [second]


def test_a_cut_comes_before_the_job_that_needs_it() -> None:
    desk = Desk(gpus=1)
    desk.submits(slice=Mig(profile="1g.5gb"))

    events = desk.carries_out(desk.plans())

    assert [type(event) for event in events] == [DeviceCut, JobPlaced]


def test_room_is_claimed_before_others_are_ordered_to_leave_it() -> None:
    desk = Desk(gpus=1)
    low = desk.submits(job_class="low", lasts=600)
    desk.lets_pass(1)
    high = desk.submits(job_class="high")

    events = desk.carries_out(desk.plans())

    assert [type(event) for event in events] == [JobClaimed, JobPreempted]
    assert (desk.state(low), desk.job(high).claim is not None) == (JobState.STOPPING, True)


def test_who_left_by_itself_meanwhile_is_not_reported_to_leave() -> None:
    desk = Desk(gpus=1)
    low = desk.submits(job_class="low", lasts=600)
    desk.lets_pass(1)
    desk.submits(job_class="high")
    plan = desk.plans()

    desk.applies(JobEnded(at=Instant(1_500), job=low, attempt=1, why=Exited(code=0)))

    assert [type(event) for event in desk.carries_out(plan)] == [JobClaimed]


def test_who_only_started_meanwhile_is_told_to_leave() -> None:
    desk = Desk(gpus=2)
    low = desk.submits(job_class="low", lasts=600)
    same = desk.submits(job_class="low", lasts=600)
    desk.carries_out(desk.plans())
    desk.submits(gpus=2, job_class="high")
    plan = desk.plans()

    desk.applies(JobStarted(at=Instant(0), job=low, attempt=1))

    events = desk.carries_out(plan)

    assert [type(event) for event in events] == [JobClaimed, JobPreempted, JobPreempted]
    assert (desk.state(low), desk.state(same)) == (JobState.STOPPING, JobState.STOPPING)


def test_no_room_is_claimed_from_who_cannot_be_told_to_leave_any_more() -> None:
    desk = Desk(gpus=1)
    low = desk.submits(job_class="low", lasts=600)
    desk.lets_pass(1)
    desk.submits(job_class="high")
    plan = desk.plans()

    desk.asks("ada", JobAction.SUSPEND, low)

    assert [each for each in desk.carries_out(plan) if isinstance(each, JobClaimed)] == []


def test_nobody_has_to_leave_for_a_job_that_was_cancelled_meanwhile() -> None:
    desk = Desk(gpus=1)
    low = desk.submits(job_class="low", lasts=600)
    desk.lets_pass(1)
    high = desk.submits(job_class="high")
    plan = desk.plans()

    desk.asks("ada", JobAction.CANCEL, high)

    assert desk.carries_out(plan) == []
    assert desk.state(low) == "running"


def test_a_claim_that_nobody_can_use_any_more_is_dropped() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.submits(job_class="low", lasts=600)
    desk.lets_pass(1)
    high = desk.submits(job_class="high")
    desk.carries_out(desk.plans())
    gone = NodeId("n1")

    desk.applies(NodeChanged(at=Instant(0), node=gone, state=NodeState.DOWN, by=UserName("root")))
    events = desk.carries_out(desk.plans())

    assert [event for event in events if isinstance(event, ClaimDropped)] == [
        ClaimDropped(at=desk.simulation.now, job=high)
    ]


def test_a_job_that_cannot_meet_its_deadline_any_more_ends_where_it_waits() -> None:
    desk = Desk(gpus=1)
    desk.submits(lasts=600)
    desk.lets_pass(1)
    late = desk.submits(limit_s=30, deadline=Instant(60_000))

    desk.lets_pass(60)

    assert desk.state(late) == "failed"
    assert desk.job(late).why == DeadlinePassed(deadline=Instant(60_000))


def test_nothing_stands_of_a_plan_from_before_another_process_gave_out_room() -> None:
    store = MemoryStore()
    one, other = journal_on(store), journal_on(store)
    for _ in range(2):
        one.write(entry(gpus=4).enter).result()
    other.catch_up()
    old = one.record.snapshot(Instant(0))
    thought = InlinePlanner().plan(old, SITE.policy)
    first = [move.job for move in thought.moves]

    other.write(
        lambda transaction: transaction.apply_all(events_of(thought, old, transaction))
    ).result()
    one.write(
        lambda transaction: transaction.apply_all(events_of(thought, old, transaction))
    ).result()

    assert list(one.record.allocations) == first
    assert one.record.allocations == other.record.allocations


def test_what_others_submit_meanwhile_does_not_spoil_a_plan() -> None:
    store = MemoryStore()
    one, other = journal_on(store), journal_on(store)
    job = one.write(entry(gpus=1).enter).result().jobs[0]
    old = one.record.snapshot(Instant(0))
    thought = InlinePlanner().plan(old, SITE.policy)

    other.write(entry(gpus=1).enter).result()
    one.write(
        lambda transaction: transaction.apply_all(events_of(thought, old, transaction))
    ).result()

    assert list(one.record.allocations) == [job]
    assert sorted(one.record.jobs) == [job, JobId(job + 1)]
