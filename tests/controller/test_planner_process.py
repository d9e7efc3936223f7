"""The planner in another process gives the same answers, and is replaced when it dies."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controller import slow_planner
from controller.desk import Desk
from muster.controller.planner.client import InlinePlanner, World
from muster.controller.planner.copy_of_world import CopyOfWorld
from muster.controller.planner.process import NOTHING_YET, ProcessPlanner
from muster.controller.planner.protocol import MovedAllocation, MovedJob, snapshot_delta
from muster.model.errors import OurBugError, UnknownError
from muster.model.explanation import FewerGpus
from muster.model.job import ArrayPart, Job
from muster.model.placement import Allocation
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import JobId, replace
from muster.model.versioned import with_values


@pytest.fixture
def planner() -> Iterator[ProcessPlanner]:
    made = ProcessPlanner()
    yield made
    made.close()


def busy_desk() -> Desk:
    desk = Desk(nodes=2)
    for number in range(10):
        desk.submits(gpus=number % 4 + 1, lasts=60 + number, limit_s=120)
    return desk


def seen(desk: Desk) -> Snapshot:
    return desk.record.snapshot(desk.simulation.now)


def waiting(snapshot: Snapshot) -> JobId:
    return next(job.id for job in snapshot.jobs.values() if job.state == "pending")


def test_both_planners_plan_the_same(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()

    for _ in range(4):
        snapshot, policy = seen(desk), desk.record.site.policy
        assert planner.plan(snapshot, policy) == here.plan(snapshot, policy)
        desk.lets_pass(40)


def test_only_what_was_committed_since_the_last_plan_is_sent() -> None:
    desk = busy_desk()
    first = seen(desk)
    new = desk.submits(gpus=1)
    desk.lets_pass(1)

    delta = snapshot_delta(first, seen(desk))

    started = set(desk.record.allocations)
    assert {job.moved.id for job in delta.new_jobs} == {new}
    assert {job.id for job in delta.moved_jobs} == started - {new}
    assert set(delta.allocations) == started
    assert (delta.nodes, delta.queues, delta.classes, delta.pools) == ({}, None, None, None)


def test_what_the_parts_of_an_array_share_is_sent_once() -> None:
    copy, first = CopyOfWorld(), seen(busy_desk())
    copy.apply(snapshot_delta(NOTHING_YET, first))
    single = first.jobs[waiting(first)]
    parts = [
        replace(single.spec, array=ArrayPart(array=JobId(array), index=index), labels={"of": text})
        for array, text in ((51, "v" * 4_000), (55, "w" * 4_000))
        for index in range(3)
    ]
    specs = [*parts[:3], single.spec, *parts[3:]]
    new = {JobId(51 + at): replace(single, id=JobId(51 + at), spec=specs[at]) for at in range(7)}
    second = replace(first, version=first.version + 1, jobs=with_values(first.jobs, new))

    delta = snapshot_delta(first, second)

    assert [job.moved.id for job in delta.new_jobs] == list(new)
    assert len(delta.specs) == 3
    assert dict(copy.apply(delta).jobs) == dict(second.jobs)


def test_placements_that_the_plan_gave_are_not_sent_back() -> None:
    desk, copy = busy_desk(), CopyOfWorld()
    first = seen(desk)
    copy.apply(snapshot_delta(NOTHING_YET, first))
    desk.lets_pass(1)
    second = seen(desk)
    given = {job: held.placements for job, held in second.allocations.items()}

    delta = snapshot_delta(first, second, given)

    assert delta.allocations == {}
    assert {each.job for each in delta.placed_allocations} == set(given) != set()
    assert copy.apply(delta, given).allocations == second.allocations


def test_what_moved_is_sent_with_every_field_but_the_one_that_stayed() -> None:
    assert set(MovedJob.__struct_fields__) == set(Job.__struct_fields__) - {"spec"}
    fields = set(Allocation.__struct_fields__)
    assert set(MovedAllocation.__struct_fields__) == fields - {"placements"}


def test_both_planners_explain_the_same(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    desk.lets_pass(1)
    snapshot = seen(desk)
    planner.plan(snapshot, Policy())
    here.plan(snapshot, Policy())

    assert planner.explain(waiting(snapshot)) == here.explain(waiting(snapshot))


def test_both_planners_have_the_same_backlog(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    desk.lets_pass(1)
    plan = planner.plan(seen(desk), Policy())
    here.plan(seen(desk), Policy())

    assert planner.backlog() == here.backlog()
    assert planner.backlog().keys() == plan.waits.keys()


def test_a_job_that_was_never_planned_is_unknown(planner: ProcessPlanner) -> None:
    desk = busy_desk()
    planner.plan(seen(desk), Policy())

    with pytest.raises(UnknownError, match="not planned yet"):
        planner.explain(JobId(99))


def test_a_rehearsal_changes_nothing_that_is_remembered(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    usual = World(snapshot=seen(desk), policy=Policy())
    changed = replace(usual, policy=Policy(backfill_depth=1))
    first = planner.plan(usual.snapshot, usual.policy)
    here.plan(usual.snapshot, usual.policy)

    rehearsed, same = planner.rehearse(usual, changed), here.rehearse(usual, changed)

    assert rehearsed.usual.moves == same.usual.moves == first.moves
    assert rehearsed.changed.moves == same.changed.moves
    assert rehearsed.changed.measures == same.changed.measures
    assert planner.plan(usual.snapshot, Policy()) == first
    assert here.plan(usual.snapshot, Policy()) == first
    assert here.backlog() == planner.backlog()


def test_a_rehearsal_is_about_the_world_of_now_and_not_of_the_last_plan(
    planner: ProcessPlanner,
) -> None:
    desk = Desk(nodes=1, gpus=4)
    planner.plan(seen(desk), Policy())
    holder = desk.submits(gpus=4, lasts=60, limit_s=60)
    desk.lets_pass(1)
    usual = World(snapshot=seen(desk), policy=Policy())
    like = usual.snapshot.jobs[holder]
    job = Job(id=JobId(77), spec=like.spec, submitted_at=usual.snapshot.now)
    jobs = with_values(usual.snapshot.jobs, {job.id: job})
    changed = replace(usual, snapshot=replace(usual.snapshot, jobs=jobs))

    found = planner.rehearse(usual, changed, job.id)

    assert found.changed.decision(job.id) is found.changed.waits[job.id]
    assert found.expected == usual.snapshot.now + 59_000
    assert [placed.node for placed in found.placements] == ["n1"]


def test_a_rehearsal_says_what_the_job_could_ask_for_instead(planner: ProcessPlanner) -> None:
    desk, here = Desk(nodes=1, gpus=4), InlinePlanner()
    desk.submits(gpus=2, lasts=60, limit_s=60)
    like = desk.submits(gpus=4, lasts=60, limit_s=60)
    desk.lets_pass(1)
    usual = World(snapshot=seen(desk), policy=Policy())
    job = replace(usual.snapshot.jobs[like], id=JobId(77))
    jobs = with_values(usual.snapshot.jobs, {job.id: job})
    changed = replace(usual, snapshot=replace(usual.snapshot, jobs=jobs))

    found, same = (each.rehearse(usual, changed, job.id) for each in (planner, here))

    fewer, *_ = found.alternatives
    assert (fewer.change, fewer.starts_now) == (FewerGpus(group="main", gpus=2), True)
    assert same.alternatives == found.alternatives


def test_an_explanation_that_takes_long_does_not_delay_a_plan(tmp_path: Path) -> None:
    for name in ("begun", "go_on"):
        os.mkfifo(tmp_path / name)
    desk, planner = busy_desk(), ProcessPlanner((slow_planner.__file__, str(tmp_path)))
    desk.lets_pass(1)
    snapshot = seen(desk)
    first = planner.plan(snapshot, Policy())

    with ThreadPoolExecutor() as pool:
        explanation = pool.submit(planner.explain, waiting(snapshot))
        assert (tmp_path / "begun").read_bytes() == b"begun"
        with (tmp_path / "go_on").open("wb"):
            # The copy of the process reads this pipe until we close it.
            assert planner.plan(snapshot, Policy()) == first
            assert not explanation.done()
        assert explanation.result().job == waiting(snapshot)
    planner.close()


def test_when_its_process_is_killed_another_one_answers(planner: ProcessPlanner) -> None:
    desk, here = busy_desk(), InlinePlanner()
    snapshot = seen(desk)
    planner.plan(snapshot, Policy())
    assert planner.pid is not None

    os.kill(planner.pid, signal.SIGKILL)
    try:
        answer = planner.plan(snapshot, Policy())
    except OurBugError:
        # The pipe broke while it was asked: the next request finds a new process.
        answer = planner.plan(snapshot, Policy())

    assert answer == here.plan(snapshot, Policy())
