"""When a job may start: arrays, dependencies, begin times, deadlines, holds, reservations."""

import pytest

from muster.model.job import DependencyKind, HeldBy, JobState
from muster.model.plan import NoEstimate
from muster.model.policy import Policy
from muster.model.reason import (
    ArrayFull,
    DependsOn,
    MissesDeadline,
    NoRoom,
    NotBefore,
    ReservationClosed,
    Reserved,
)
from muster.model.value import HOUR, Instant, JobId, UserName
from stories.scene import NEW_YEAR
from stories.words import group
from stories.world import World

COMPLETED, FAILED, CANCELLED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED


def test_an_array_runs_as_many_at_once_as_it_says() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits_array("sweep", parts=5, at_once=2)

    outcome = world.plans()

    assert outcome.started() == ["sweep[0]", "sweep[1]"]
    assert outcome.why("sweep[2]") == ArrayFull(array=JobId(1), at_once=2)


def test_the_next_part_of_an_array_starts_when_one_has_ended() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits_array("sweep", parts=5, at_once=2)
    world.goes_on()

    world.finishes("sweep[0]")

    assert world.plans().started() == ["sweep[2]"]


def test_an_array_without_a_bound_takes_all_the_room_there_is() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.submits_array("sweep", parts=5, at_once=None)

    assert len(world.plans().started()) == 4


def test_after_waits_until_the_other_has_started() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("server")
    world.submits("client", after="after:server")

    before = world.goes_on()

    assert before.why("client") == DependsOn(job=JobId(1), kind=DependencyKind.AFTER)
    assert world.plans().started() == ["client"]


def test_after_may_ask_for_a_delay() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("server", on="n1")
    world.submits("client", after="after:server+10")
    world.passes(minutes=9)

    too_early = world.plans()
    world.passes(minutes=1)

    assert too_early.waiting() == ["client"]
    assert world.plans().started() == ["client"]


@pytest.mark.parametrize(
    ("kind", "state", "starts"),
    [
        ("afterok", COMPLETED, True),
        ("afterok", FAILED, False),
        ("afterok", CANCELLED, False),
        ("afternotok", COMPLETED, False),
        ("afternotok", FAILED, True),
        ("afternotok", CANCELLED, True),
        ("afterany", COMPLETED, True),
        ("afterany", FAILED, True),
        ("afterany", CANCELLED, True),
        ("after", FAILED, True),
    ],
)
def test_a_dependency_looks_at_how_the_other_came_out(
    kind: str, state: JobState, starts: bool
) -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("prep", on="n1")
    world.submits("train", after=f"{kind}:prep")
    world.finishes("prep", state=state)

    assert world.plans().started() == (["train"] if starts else [])


@pytest.mark.parametrize("kind", ["afterok", "afternotok", "afterany"])
def test_a_dependency_waits_while_the_other_runs(kind: str) -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("prep", on="n1")
    world.submits("train", after=f"{kind}:prep")

    outcome = world.plans()

    assert outcome.why("train") == DependsOn(job=JobId(1), kind=DependencyKind(kind))
    assert outcome.expected("train") is NoEstimate.DEPENDENCY


def test_a_dependency_that_can_no_longer_come_true_says_never() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("prep", on="n1")
    world.submits("train", after="afterok:prep")
    world.finishes("prep", state=FAILED)

    outcome = world.plans()

    assert outcome.why("train") == DependsOn(job=JobId(1), kind=DependencyKind.AFTER_OK, never=True)
    assert outcome.expected("train") is NoEstimate.NEVER


def test_all_dependencies_must_be_met() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("left", on="n1")
    world.runs("right", on="n1")
    world.submits("join", after="afterok:left,afterok:right")
    world.finishes("left")

    one = world.plans()
    world.finishes("right")

    assert one.why("join") == DependsOn(job=JobId(2), kind=DependencyKind.AFTER_OK)
    assert world.plans().started() == ["join"]


def test_of_several_ways_one_is_enough() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("left", on="n1")
    world.runs("right", on="n1")
    world.submits("join", after="afterok:left?afterok:right")

    neither = world.plans()
    world.finishes("left", state=FAILED)
    one_failed = world.plans()
    world.finishes("right")

    assert neither.why("join") == DependsOn(job=JobId(1), kind=DependencyKind.AFTER_OK, ways=2)
    assert one_failed.why("join") == DependsOn(job=JobId(2), kind=DependencyKind.AFTER_OK, ways=2)
    assert world.plans().started() == ["join"]


def test_only_when_no_way_is_left_it_says_never() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("left", on="n1")
    world.runs("right", on="n1")
    world.submits("join", after="afterok:left?afterok:right")
    world.finishes("left", state=FAILED)
    world.finishes("right", state=FAILED)

    outcome = world.plans()

    assert outcome.why("join") == DependsOn(
        job=JobId(1), kind=DependencyKind.AFTER_OK, never=True, ways=2
    )
    assert outcome.expected("join") is NoEstimate.NEVER


def test_all_conditions_of_a_way_must_be_met() -> None:
    world = World()
    world.has_nodes("n1")
    for name in ("left", "right", "other"):
        world.runs(name, on="n1")
    world.submits("join", after="afterok:left,afterok:right?afterok:other")
    world.finishes("left")

    half = world.plans()
    world.finishes("right")

    assert half.started() == []
    assert world.plans().started() == ["join"]


def test_of_several_conditions_the_hopeless_one_is_reported() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("left", on="n1")
    world.runs("right", on="n1")
    world.submits("join", after="afterok:left,afterok:right")
    world.finishes("right", state=FAILED)

    never = DependsOn(job=JobId(2), kind=DependencyKind.AFTER_OK, never=True)
    assert world.plans().why("join") == never


def test_a_singleton_waits_for_its_namesake() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("one", named="nightly", after="singleton")
    world.submits("two", named="nightly", after="singleton")
    world.submits("other", named="nightly", after="singleton", user="bob")

    first = world.goes_on()
    world.finishes("one")

    assert first.started() == ["one", "other"]
    assert world.plans().started() == ["two"]


def test_a_job_does_not_begin_before_its_time() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("later", begins=60)

    outcome = world.plans()
    world.passes(hours=1)

    assert outcome.why("later") == NotBefore(at=Instant(NEW_YEAR + HOUR))
    assert outcome.expected("later") == 60
    assert world.plans().started() == ["later"]


def test_a_job_that_begins_later_does_not_keep_others_off_now() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.submits("later", gpus=8, begins=60)
    world.submits("now", gpus=8)

    assert world.plans().started() == ["now"]


def test_a_job_that_can_no_longer_make_its_deadline_is_not_started() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("tight", minutes=60, deadline=60)
    world.submits("late", minutes=60, deadline=59)

    outcome = world.plans()

    assert outcome.started() == ["tight"]
    assert isinstance(outcome.why("late"), MissesDeadline)
    assert outcome.expected("late") is NoEstimate.NEVER


def test_a_job_that_would_miss_its_deadline_does_not_slip_onto_promised_room() -> None:
    world = World(Policy(default_time=HOUR))
    world.has_nodes("n1", gpus=4)
    world.has_class("urgent", priority=100)
    world.submits("late", deadline=60)
    world.passes(minutes=1)
    world.runs("first", on="n1")
    world.submits("gang", tasks=4, job_class="urgent")

    outcome = world.plans()

    assert outcome.expected("gang") == 60
    assert isinstance(outcome.why("late"), MissesDeadline)


def test_a_held_job_waits_until_it_is_released() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("held", held=True)

    outcome = world.plans()
    world.releases("held")

    assert outcome.why("held") == HeldBy(user=UserName("admin"))
    assert outcome.expected("held") is NoEstimate.HELD
    assert world.plans().started() == ["held"]


def test_maintenance_keeps_off_what_would_not_end_in_time() -> None:
    world = World()
    world.has_nodes("n1")
    world.reserves("new firmware", nodes="n1", begins=60, ends=120)
    world.submits("short", minutes=60)
    world.submits("long", minutes=61)

    outcome = world.plans()

    assert outcome.started() == ["short"]
    assert outcome.why("long") == Reserved(
        reservation="new firmware", begins_at=Instant(NEW_YEAR + HOUR)
    )


def test_where_all_nodes_are_full_a_later_maintenance_is_not_what_a_job_waits_for() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.reserves("new firmware", nodes="n2", begins=60, ends=120)
    world.runs("one", on="n1", gpus=8, minutes=30)
    world.runs("two", on="n2", gpus=8, minutes=30)
    world.submits("long", gpus=8, minutes=90)

    outcome = world.plans()

    assert isinstance(outcome.why("long"), NoRoom)
    assert outcome.expected("long") == 30


def test_where_the_node_of_a_later_maintenance_is_free_that_is_what_a_job_waits_for() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.reserves("new firmware", nodes="n2", begins=60, ends=120)
    world.runs("one", on="n1", gpus=8, minutes=30)
    world.submits("long", gpus=8, minutes=90)
    world.submits("gang", tasks=2, gpus=4, minutes=90)

    outcome = world.plans()

    assert isinstance(outcome.why("long"), Reserved)
    assert isinstance(outcome.why("gang"), Reserved)


def test_a_job_waits_for_the_end_of_maintenance() -> None:
    world = World()
    world.has_nodes("n1")
    world.reserves("new firmware", nodes="n1", begins=0, ends=120)
    world.submits("job", minutes=10)

    outcome = world.plans()
    world.passes(hours=2)

    assert outcome.expected("job") == 120
    assert world.plans().started() == ["job"]


def test_a_job_without_a_limit_keeps_off_nodes_with_maintenance_ahead() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.reserves("new firmware", nodes="n1", begins=600, ends=700)
    world.submits("endless")

    assert world.plans().nodes("endless") == ["n2"]


def test_nodes_reserved_for_a_queue_take_its_jobs_alone() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.has_queue("demo")
    world.reserves("fair", nodes="n1", begins=0, ends=120, queue="demo")
    world.submits("ours", queue="demo")
    world.submits("theirs")

    outcome = world.plans()

    assert outcome.started() == ["ours"]
    assert isinstance(outcome.why("theirs"), Reserved)


def test_a_reservation_for_a_queue_is_for_the_queues_below_it_too() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.has_queue("demo/booth")
    world.reserves("fair", nodes="n1", begins=0, ends=120, queue="demo")
    world.submits("ours", queue="demo/booth")

    assert world.plans().started() == ["ours"]


def test_nodes_reserved_for_users_take_their_jobs_alone() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.reserves("review", nodes="n1", begins=0, ends=120, users="bob")
    world.submits("ours", user="bob")
    world.submits("theirs", user="ann")

    outcome = world.plans()

    assert outcome.started() == ["ours"]
    assert isinstance(outcome.why("theirs"), Reserved)


def test_a_reservation_for_users_in_a_queue_is_for_those_who_are_both() -> None:
    world = World()
    world.has_nodes("n1", gpus=3)
    world.has_queue("demo")
    world.reserves("fair", nodes="n1", begins=0, ends=120, queue="demo", users="bob")
    world.submits("both", user="bob", queue="demo")
    world.submits("user alone", user="bob")
    world.submits("queue alone", user="ann", queue="demo")

    assert world.plans().started() == ["both"]


def test_what_is_reserved_by_name_takes_only_jobs_that_ask_for_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.reserves("fair", nodes="n1", begins=0, ends=120, users="ann", by_name="yes")
    world.submits("asks", reservation="fair")
    world.submits("does not")

    outcome = world.plans()

    assert outcome.started() == ["asks"]
    assert isinstance(outcome.why("does not"), Reserved)


def test_a_job_that_asks_for_a_reservation_runs_nowhere_else() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=2)
    world.reserves("fair", nodes="n2", begins=0, ends=120, users="ann")
    world.submits_many("inside", 3, reservation="fair")

    outcome = world.plans()

    assert outcome.started() == ["inside1", "inside2"]
    assert outcome.nodes("inside1") == ["n2"]
    assert isinstance(outcome.why("inside3"), NoRoom)


def test_a_job_waits_for_its_reservation_to_begin_and_not_for_one_that_is_over() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.reserves("soon", nodes="n1", begins=30, ends=60, users="ann")
    world.reserves("past", nodes="n1", begins=-60, ends=-30, users="ann")
    world.submits("early", reservation="soon")
    world.submits("late", reservation="past")

    before = world.plans()
    world.passes(minutes=30)
    after = world.goes_on()

    assert isinstance(before.why("early"), ReservationClosed)
    assert before.expected("early") == 30
    assert after.started() == ["early"]
    assert isinstance(after.why("late"), ReservationClosed)


def test_a_job_inside_a_promised_amount_stays_in_its_pool() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.has_nodes("m1", gpus=4, pool="other")
    world.promises(2, users="ann", begins=0, ends=120, by_name="yes")
    world.submits("asks", gpus=2, reservation="for ann")
    world.submits("other", gpus=4, user="bob")

    outcome = world.plans()

    assert outcome.nodes("asks") == ["n1"]
    assert outcome.nodes("other") == ["m1"]


def test_capacity_promised_to_a_queue_is_not_given_to_others() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("demo")
    world.promises(5, queue="demo", begins=0, ends=120)
    world.submits_many("other", 8, minutes=10)

    outcome = world.plans()

    assert len(outcome.started("other")) == 3
    assert isinstance(outcome.why(outcome.waiting()[0]), Reserved)


def test_all_groups_of_a_job_count_against_what_is_promised_to_others() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.has_queue("demo")
    world.promises(2, queue="demo", begins=0, ends=120)
    world.submits("wide", groups=(group("a", gpus=2), group("b", mps=500)))

    assert isinstance(world.plans().why("wide"), Reserved)


def test_capacity_promised_for_later_may_be_used_until_then() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("demo")
    world.promises(8, queue="demo", begins=60, ends=120)
    world.submits("short", gpus=4, minutes=60)
    world.submits("long", gpus=4, minutes=90)

    assert world.plans().started() == ["short"]


def test_the_queue_finds_what_it_was_promised() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("demo")
    world.promises(5, queue="demo", begins=0, ends=120)
    world.submits_many("other", 8)
    world.goes_on()
    world.submits("ours", gpus=5, queue="demo")

    assert world.plans().started() == ["ours"]


def test_a_job_that_has_to_begin_again_counts_as_begun() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=1)
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.runs("server", on="n1", gpus=1)
    world.runs("train", on="n2", gpus=1)
    world.submits("inference", gpus=1, job_class="urgent", only_on=("n1",))
    world.submits("follower", gpus=1, job_class="urgent", after="after:server")
    world.goes_on()

    assert sorted(world.goes_on().started()) == ["follower", "inference"]
