from collections.abc import Sequence
from typing import get_args

import msgspec
import pytest

from muster.model.errors import RefusedError, StaleSnapshotError
from muster.model.explanation import (
    AnyNode,
    AnyPool,
    AsSlice,
    Change,
    Explanation,
    FewerGpus,
    FewerTasks,
    NoTopology,
    OffSpot,
    OnSpot,
    OtherModel,
    OtherQueue,
    Shorter,
    UnknownJob,
)
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import (
    Ask,
    DependencyKind,
    HeldBy,
    Job,
    JobSpec,
    JobState,
    LabelRule,
    Spot,
    TaskGroup,
    Together,
    Where,
)
from muster.model.plan import NoEstimate, Plan
from muster.model.policy import Policy
from muster.model.queue import CeilingMeter, JobClass, Meter, Scope, Side
from muster.model.reason import (
    ArrayFull,
    Behind,
    BorrowedOut,
    DependsOn,
    MakingRoom,
    MissesDeadline,
    NeverFits,
    NoRoom,
    NoSuchClass,
    NoSuchPool,
    NoSuchQueue,
    NotBefore,
    OverClassLimit,
    OverLimit,
    ReservationClosed,
    Reserved,
    TooLong,
    TooManyJobs,
    WaitingToResume,
    WaitReason,
)
from muster.model.snapshot import Snapshot
from muster.model.value import (
    HOUR,
    MINUTE,
    ClassName,
    ClusterName,
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
from muster.model.words import when
from muster.schedule.explain.alternatives import MOST_TRIED, changed
from muster.schedule.explain.blockers import MOST
from muster.schedule.explain.changes import ladders
from muster.schedule.explain.explanation import NOT_ALL_TRIED, explain
from muster.schedule.explain.words import outlook, suggestion
from muster.schedule.plan import Planner, plan
from muster.schedule.policy.variants import Variant
from stories.world import World

NOW = Instant(1_000 * HOUR)
SOON = Instant(NOW + 90 * MINUTE)
A100 = GpuModel("A100-40GB")
NLP = QueuePath("nlp")

GANG = TaskGroup(
    name="workers",
    count=4,
    each=Ask(cpu_milli=16_000, gpus=GpuAsk(count=8, models=(A100,))),
    together=Together(level="rack"),
    where=Where(require=(LabelRule(key="disk", values=("ssd",)),), max_per_node=1),
)
LEADER = TaskGroup(name="leader", each=Ask(memory_mib=4_096, gpus=GpuAsk(count=1)))
SPEC = JobSpec(
    name="train",
    user=UserName("ann"),
    queue=NLP,
    groups=(GANG, LEADER),
    pools=(PoolName("main"),),
    clusters=(ClusterName("c"),),
    time_limit=Duration(2 * HOUR),
)
JOB = Job(id=JobId(1), spec=SPEC, submitted_at=NOW)

REASONS: dict[WaitReason, str] = {
    NoRoom(group="leader", placed=0, wanted=1, nodes=12): (
        "Needs 1 GPU and 4 GiB on one node; none of 12 usable nodes has that free."
    ),
    NoRoom(group="leader", placed=0, wanted=1, nodes=1): (
        "Needs 1 GPU and 4 GiB on one node; the only usable node does not have that free."
    ),
    NoRoom(group="leader", placed=0, wanted=1, nodes=0): (
        "Needs 1 GPU and 4 GiB on one node; no node that it may use is up."
    ),
    NoRoom(group="workers", placed=3, wanted=4, nodes=12): (
        "Needs 4 tasks at once in one rack, each with 8 GPUs of A100-40GB and 16 cores; "
        "there is room for 3 of them now on 12 usable nodes."
    ),
    NoRoom(group="gone", placed=0, wanted=2, nodes=1): (
        "Needs 2 tasks at once, each with what group gone asks for; "
        "there is room for none of them now on 1 usable node."
    ),
    NeverFits(group="leader", wanted=1, at_most=0): (
        "Needs 1 GPU and 4 GiB on one node; no node that it may use has that much, even empty."
    ),
    NeverFits(group="workers", wanted=4, at_most=2): (
        "Needs 4 tasks at once in one rack, each with 8 GPUs of A100-40GB and 16 cores; "
        "the nodes that it may use have room for 2, even empty."
    ),
    OverLimit(queue=NLP, scope=Scope(), limit=10_000, used=4_000, asked=7_000): (
        "Queue nlp may hold 10 GPUs at once; it holds 4 GPUs, and this job asks for 7 GPUs."
    ),
    OverLimit(
        queue=NLP,
        scope=Scope(meter=Meter.MEMORY, pool=PoolName("main"), model=A100),
        limit=1_024,
        used=512,
        asked=1_024,
    ): (
        "Queue nlp may hold 1 GiB in pool main on A100-40GB at once; "
        "it holds 512 MiB, and this job asks for 1 GiB."
    ),
    BorrowedOut(
        queue=NLP,
        scope=Scope(meter=Meter.MIG, profile="1g.5gb"),
        available=1,
        asked=2,
        at_most=4,
    ): "Queue nlp may use or borrow 1 1g.5gb slice more; this job asks for 2 1g.5gb slices.",
    OverClassLimit(
        job_class=ClassName("normal"),
        side=Side.USER,
        whose="ann",
        meter=CeilingMeter.CPU,
        limit=64_000,
        used=63_500,
        asked=1_000,
    ): (
        "Jobs of class normal may hold 64 cores at once for ann; "
        "they hold 63.5 cores, and this one asks for 1 core."
    ),
    OverClassLimit(
        job_class=ClassName("normal"),
        side=Side.QUEUE,
        whose="nlp",
        meter=CeilingMeter.JOBS,
        limit=2,
        used=2,
        asked=1,
    ): (
        "Jobs of class normal may hold 2 jobs at once for nlp; "
        "they hold 2 jobs, and this one asks for 1 job."
    ),
    TooManyJobs(queue=NLP, limit=3): "Queue nlp may run 3 jobs at once, and does.",
    TooLong(asked=Duration(2 * HOUR), allowed=HOUR): (
        "Asks for 2h; its class and the pools that suit it allow 1h."
    ),
    TooLong(asked=None, allowed=HOUR): (
        "Has no time limit; its class and the pools that suit it allow 1h."
    ),
    Behind(job=JobId(7), starts_at=SOON): (
        "Fits now, but would still run when the room is due to job 7, in 1h 30m."
    ),
    Reserved(reservation="repair", begins_at=SOON): (
        "The nodes that it could have are full, or due to reservation repair, which begins "
        "in 1h 30m, while this job would still run."
    ),
    Reserved(reservation="repair", begins_at=NOW): (
        "The nodes that it could have are full, or kept by reservation repair."
    ),
    ReservationClosed(reservation="demo", begins_at=SOON, ends_at=SOON): (
        "Its reservation demo begins in 1h 30m."
    ),
    ReservationClosed(reservation="demo", begins_at=NOW, ends_at=NOW): (
        "Its reservation demo is over: the job must ask for another, or for none."
    ),
    ReservationClosed(reservation="demo", begins_at=NOW, ends_at=SOON): (
        "Its reservation demo is not for it: the job must ask for another, or for none."
    ),
    DependsOn(job=JobId(7), kind=DependencyKind.AFTER): "Waits until job 7 has started.",
    DependsOn(job=JobId(7), kind=DependencyKind.AFTER_OK): "Waits until job 7 has completed.",
    DependsOn(job=JobId(7), kind=DependencyKind.AFTER_NOT_OK, never=True): (
        "Waits until job 7 has failed or was cancelled, which can no longer happen."
    ),
    DependsOn(job=None, kind=DependencyKind.AFTER_ANY): "Waits until another job has ended.",
    DependsOn(job=JobId(7), kind=DependencyKind.SINGLETON): (
        "Waits until job 7 of the same name has ended."
    ),
    DependsOn(job=JobId(7), kind=DependencyKind.AFTER_OK, ways=3): (
        "Waits until job 7 has completed or another of its 3 conditions is met."
    ),
    DependsOn(job=JobId(7), kind=DependencyKind.AFTER_OK, ways=2, never=True): (
        "Waits until job 7 has completed or another of its 2 conditions is met, "
        "which can no longer happen."
    ),
    HeldBy(user=UserName("admin")): "Held by admin until it is released.",
    NotBefore(at=SOON): "May not begin before its time, in 1h 30m.",
    MissesDeadline(deadline=Instant(NOW - MINUTE)): (
        "Could not end by its deadline, 1m ago, even if it started now."
    ),
    ArrayFull(array=JobId(5), at_once=1): "Array 5 may run 1 job at once, and does.",
    NoSuchPool(
        name="main"
    ): "main, where it wants to run, does not exist, is closed or cannot be reached.",
    NoSuchQueue(queue=NLP): "Queue nlp does not exist any more: the job must go to another.",
    NoSuchClass(job_class=ClassName("normal")): (
        "Class normal does not exist any more: the job must have another."
    ),
    MakingRoom(victims=(JobId(7),)): "Starts when room that is held for it is left by job 7.",
    MakingRoom(victims=tuple(JobId(each) for each in range(5, 10))): (
        "Starts when room that is held for it is left by jobs 5, 6, 7 and 2 more."
    ),
    WaitingToResume(node=NodeId("n1")): "Suspended: the room that it left on n1 is in use.",
    WaitingToResume(node=None): "Suspended, and the room that it left is gone.",
}

CHANGES: dict[Change, str] = {
    FewerGpus(group="workers", gpus=4): "With 4 GPUs per task instead of 8 in group workers",
    FewerTasks(group="workers", tasks=1): "With 1 task instead of 4 in group workers",
    OtherModel(model=GpuModel("H100-80GB")): "On H100-80GB instead of A100-40GB",
    AsSlice(slice=Mig(profile="1g.5gb")): "With a 1g.5gb slice instead of a whole GPU",
    AsSlice(slice=MpsShare(milli=125)): "With a 12.5% GPU share instead of a whole GPU",
    AsSlice(slice=TimeShare(replicas=4)): "With a 1-in-4 GPU turn instead of a whole GPU",
    OnSpot(): "On spot capacity",
    OffSpot(): "On capacity other than spot",
    NoTopology(): "Spread over more than one rack",
    AnyNode(): "Without its rules about nodes",
    AnyPool(): "In any pool instead of main or c",
    Shorter(time_limit=HOUR): "With a time limit of 1h",
    OtherQueue(queue=QueuePath("vision")): "In queue vision instead of nlp",
}


@pytest.mark.parametrize(("why", "words"), REASONS.items(), ids=str)
def test_every_reason_is_one_sentence(why: WaitReason, words: str) -> None:
    assert why.sentence(SPEC, NOW) == words


def test_no_reason_is_left_out() -> None:
    assert {type(why) for why in REASONS} == set(get_args(WaitReason))


@pytest.mark.parametrize(("change", "words"), CHANGES.items(), ids=str)
def test_every_change_is_put_into_words(change: Change, words: str) -> None:
    assert suggestion(change, SPEC, "would start now") == f"{words} it would start now."


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_change_makes_another_request(change: Change) -> None:
    assert changed(change, SPEC) != SPEC


def test_no_change_is_left_out() -> None:
    assert {type(change) for change in CHANGES} == set(get_args(Change))


def test_a_change_of_one_group_leaves_the_other_alone() -> None:
    workers, leader = changed(FewerGpus(group="workers", gpus=4), SPEC).groups

    assert workers.each.gpus == GpuAsk(count=4, models=(A100,))
    assert leader == LEADER


def test_a_job_without_rules_about_nodes_still_keeps_off_taints() -> None:
    where = Where(require=(LabelRule(key="disk"),), prefer=(LabelRule(key="fast"),))
    spec = replace(SPEC, groups=(replace(GANG, where=where),))

    (group,) = changed(AnyNode(), spec).groups

    assert group.where == Where(prefer=(LabelRule(key="fast"),))


def test_every_outlook_is_put_into_words() -> None:
    known = [outlook(each, NOW) for each in NoEstimate]

    assert len(set(known)) == len(NoEstimate)
    assert outlook(SOON, NOW) == "is expected to start in 1h 30m"
    assert when(NOW, NOW) == "now"


def test_an_explanation_survives_the_wire() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("train", on="n1", gpus=4, minutes=60)
    world.submits("big", gpus=8)
    explanation = world.plans().explained("big")

    assert msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation) == explanation


def test_a_job_that_nobody_knows_is_refused() -> None:
    snapshot = Snapshot(now=NOW)

    with pytest.raises(RefusedError, match="There is no job 9") as refused:
        explain(snapshot, plan(snapshot, Policy()), JobId(9), {})

    assert refused.value.reason == UnknownJob(job=JobId(9))


def test_a_plan_for_another_snapshot_is_stale() -> None:
    world = World()
    world.submits("job")
    before, after = world.scene.snapshot(), world.scene.snapshot()

    with pytest.raises(StaleSnapshotError):
        explain(after, plan(before, Policy()), JobId(1), {})


def test_a_plan_that_forgot_the_job_is_stale() -> None:
    world = World()
    world.submits("job")
    snapshot = world.scene.snapshot()
    forgetful = Plan(snapshot_version=snapshot.version, policy=Policy())

    with pytest.raises(StaleSnapshotError):
        explain(snapshot, forgetful, JobId(1), {})


def test_a_planner_that_knows_the_world_changes_nothing() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("train", on="n1", gpus=4, minutes=60)
    world.submits("big", tasks=2, gpus=8)
    snapshot, planner = world.scene.snapshot(), Planner(Policy())
    made, backlog = planner.plan(snapshot), planner.backlog()

    knowing = explain(snapshot, made, JobId(2), backlog, planner)

    assert knowing == explain(snapshot, made, JobId(2), backlog)
    assert planner.plan(snapshot) == made


def test_a_job_that_asks_for_everything_special_is_planned_once_for_each_queue() -> None:
    world = World()
    world.has_pool("cheap", spot=True)
    world.has_nodes("n1", pool="cheap")
    for model in ("A30-24GB", "A100-80GB", "H100-80GB", "H200-141GB"):
        world.has_nodes(model, model=model)
    for queue in ("a", "b", "c"):
        world.has_queue(queue)
    special = replace(SPEC, queue=QueuePath("root"), groups=(replace(GANG, count=64),))
    job = replace(JOB, spec=special)
    planner = CountingPlanner(Policy())
    snapshot = replace(world.scene.snapshot(), jobs={job.id: job})

    first = Planner(Policy())
    explain(snapshot, first.plan(snapshot), job.id, first.backlog(), planner)

    why = Behind(job=JobId(7), starts_at=SOON)
    assert sum(map(len, ladders(snapshot, job, why))) > MOST_TRIED
    everything = sum(map(len, ladders(snapshot, job, why)))
    assert len(planner.asked) == 1 + len(
        [each for each in ladders(snapshot, job, why) if isinstance(each[0], OtherQueue)]
    )
    assert sum(planner.asked) <= everything


def test_a_suspended_job_cannot_ask_for_something_else() -> None:
    job = replace(JOB, state=JobState.SUSPENDED)

    assert (
        ladders(Snapshot(now=NOW), job, NoRoom(group="workers", placed=0, wanted=4, nodes=1)) == ()
    )


def test_a_job_on_spot_alone_may_try_the_rest() -> None:
    world = World()
    job = replace(JOB, spec=replace(SPEC, spot=Spot.ONLY))

    tried = ladders(world.scene.snapshot(), job, NoSuchPool(name="main"))

    assert (OffSpot(),) in tried


def test_few_blockers_are_named() -> None:
    world = World()
    world.has_nodes("n1", gpus=16)
    world.runs_many("r", 16, on="n1")
    world.submits("big", gpus=16)

    assert len(world.plans().blockers("big")) == MOST


class CountingPlanner(Planner):
    """Knows how often it was asked."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.asked: list[int] = []

    def variants(self, snapshot: Snapshot, jobs: Sequence[Job]) -> list[Variant]:
        self.asked.append(len(jobs))
        return super().variants(snapshot, jobs)


def test_without_time_for_another_plan_the_text_says_that_not_all_was_tried() -> None:
    world = World()
    world.has_nodes("n1")
    for queue in ("a", "b"):
        world.has_queue(queue)
    world.submits("big", tasks=64, gpus=8, queue="root")
    planner = Planner(Policy())
    snapshot = world.scene.snapshot()
    (job,) = snapshot.jobs
    made = planner.plan(snapshot)

    hurried = explain(
        snapshot, made, job, planner.backlog(), Planner(Policy()), has_time=lambda: False
    )
    patient = explain(snapshot, made, job, planner.backlog(), Planner(Policy()))

    assert hurried.text == patient.text + NOT_ALL_TRIED
    assert set(hurried.alternatives) <= set(patient.alternatives)


def test_a_queue_where_the_job_may_not_have_its_class_is_not_suggested() -> None:
    world = World()
    for queue in ("root", "team", "team/inner", "other"):
        world.has_queue(queue)
    fast = JobClass(name=ClassName("fast"), priority=900, queues=(QueuePath("team"),))
    snapshot = replace(world.scene.snapshot(), classes={fast.name: fast})
    job = replace(JOB, spec=replace(SPEC, queue=QueuePath("team"), job_class=fast.name))

    tried = ladders(snapshot, job, Behind(job=JobId(7), starts_at=SOON))

    queues = [each[0].queue for each in tried if isinstance(each[0], OtherQueue)]
    assert queues == ["team/inner"]
