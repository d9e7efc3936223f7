"""What queues and classes allow, and what is accepted with a caution."""

import pytest

from muster.lifecycle.admit import admit
from muster.lifecycle.refusal import (
    Accepted,
    EscapesQuota,
    NeverReady,
    NoNodeMatches,
    Refusal,
    TooManySubmitted,
)
from muster.model.cluster import Taint
from muster.model.gpu import Mig
from muster.model.history import Finished
from muster.model.job import (
    Ask,
    Dependency,
    DependencyKind,
    Job,
    JobSpec,
    JobState,
    LabelRule,
    Spot,
    TaskGroup,
    Toleration,
    Where,
)
from muster.model.placement import Allocation, DeviceShare
from muster.model.queue import (
    Amount,
    Ceiling,
    CeilingMeter,
    JobClass,
    Meter,
    Percent,
    Queue,
    Quota,
    Scope,
    Side,
    WhenFull,
)
from muster.model.reason import OverClassLimit, OverLimit
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, NodeId, PoolName, QueuePath, replace
from unit.lifecycle.given import A100, H100, HERE, NOW, group, node, placement, queue, spec, world

POOL = PoolName("a100")
N1, N2 = NodeId("n1"), NodeId("n2")


def refused(spec: JobSpec, snapshot: Snapshot) -> Refusal:
    answer = admit(spec, snapshot)
    assert isinstance(answer, Refusal), answer
    return answer


def accepted(spec: JobSpec, snapshot: Snapshot) -> Accepted:
    answer = admit(spec, snapshot)
    assert isinstance(answer, Accepted), answer
    return answer


def gpus(count: int, **more: object) -> JobSpec:
    return spec(groups=(group(gpus=1, tasks=count),), **more)


def limited(limit: Amount, scope: Scope | None = None) -> Queue:
    return queue("acme/nlp", quotas=(Quota(scope=scope or Scope(), limit=limit),))


def test_a_job_larger_than_its_queues_limit_is_refused_with_where_it_could_go() -> None:
    snapshot = world(queue("aaa"), queue("acme"), limited(6_000), queue("acme/research"))

    refusal = refused(gpus(7), snapshot)

    assert refusal.reason == OverLimit(
        queue=QueuePath("acme/nlp"), scope=Scope(), limit=6_000, used=0, asked=7_000
    )
    assert refusal.advice == (
        "Queue acme/nlp allows 6 GPUs; this job asks for 7 GPUs. "
        "Ask for fewer, or use acme/research."
    )
    assert accepted(gpus(6), snapshot)


def test_a_queue_that_the_user_may_not_use_is_not_suggested() -> None:
    snapshot = world(
        queue("acme", quotas=(Quota(limit=6_000),)),
        queue("acme/nlp"),
        queue("lab", may_submit=("bob",)),
    )

    assert refused(gpus(7), snapshot).advice.endswith("Ask for fewer.")


def test_limits_further_up_bind_as_well() -> None:
    snapshot = world(queue("acme", quotas=(Quota(limit=2_000),)), limited(6_000))

    refusal = refused(gpus(3), snapshot)

    assert isinstance(refusal.reason, OverLimit)
    assert refusal.reason.queue == "acme"


def test_a_percentage_is_of_what_the_scope_has() -> None:
    half_of_all, half_of_pool = Percent(percent=50), Scope(pool=POOL)

    assert accepted(gpus(10), world(limited(half_of_all)))
    assert isinstance(refused(gpus(11), world(limited(half_of_all))).reason, OverLimit)
    assert isinstance(refused(gpus(9), world(limited(half_of_all, half_of_pool))).reason, OverLimit)


def test_what_may_be_borrowed_bounds_like_a_limit() -> None:
    snapshot = world(queue("acme/nlp", quotas=(Quota(guaranteed=2_000, borrow_limit=3_000),)))

    assert accepted(gpus(5), snapshot)
    assert isinstance(refused(gpus(6), snapshot).reason, OverLimit)


def test_an_elastic_job_is_measured_by_its_fewest_tasks() -> None:
    elastic = replace(group(gpus=1, tasks=8), min_count=4)

    assert accepted(spec(groups=(elastic,)), world(limited(4_000)))


@pytest.mark.parametrize("scope", [Scope(pool=POOL), Scope(model=A100)], ids=repr)
def test_a_limit_on_one_kind_of_node_does_not_bind_a_job_with_another_choice(scope: Scope) -> None:
    snapshot = world(limited(1_000, scope))

    assert isinstance(refused(gpus(2), snapshot).reason, OverLimit)
    assert accepted(gpus(2, spot=Spot.ALLOWED), snapshot)


def test_limits_on_every_choice_bind_together() -> None:
    lines = tuple(Quota(scope=Scope(model=model), limit=1_000) for model in (A100, H100))
    snapshot = world(queue("acme/nlp", quotas=lines))

    assert isinstance(refused(gpus(2, spot=Spot.ALLOWED), snapshot).reason, OverLimit)


def test_the_groups_of_a_job_count_together() -> None:
    two = (group("one", gpus=2), group("two", gpus=2))

    assert accepted(spec(groups=two), world(limited(4_000)))
    assert isinstance(refused(spec(groups=two), world(limited(3_000))).reason, OverLimit)


def test_instances_of_a_mig_profile_have_a_limit_of_their_own() -> None:
    scope = Scope(meter=Meter.MIG, profile="1g.5gb")
    small = spec(groups=(group(gpus=3, part=Mig(profile="1g.5gb")),))
    large = spec(groups=(group(gpus=3, part=Mig(profile="2g.10gb")),))

    refusal = refused(small, world(limited(2, scope)))

    assert refusal.advice.startswith("Queue acme/nlp allows 2 1g.5gb slices")
    assert accepted(large, world(limited(2, scope)))


@pytest.mark.parametrize(
    ("meter", "limit", "words"),
    [(Meter.CPU, 7_500, "7.5 cores"), (Meter.MEMORY, 10_240, "10 GiB")],
)
def test_cores_and_memory_have_limits_too(meter: Meter, limit: int, words: str) -> None:
    refusal = refused(gpus(2), world(limited(limit, Scope(meter=meter))))

    assert f"allows {words};" in refusal.advice


@pytest.mark.parametrize(
    ("most", "side", "whose"),
    [
        ({"per_user": Ceiling(gpu_milli=2_000)}, Side.USER, "ann"),
        ({"per_queue": Ceiling(gpu_milli=2_000)}, Side.QUEUE, "acme/nlp"),
    ],
)
def test_a_class_may_bound_what_one_user_or_queue_holds(
    most: dict[str, Ceiling], side: Side, whose: str
) -> None:
    normal = ClassName("normal")
    snapshot = world(classes={normal: replace(JobClass(name=normal), **most)})

    assert refused(gpus(3), snapshot).reason == OverClassLimit(
        job_class=normal,
        side=side,
        whose=whose,
        meter=CeilingMeter.GPU,
        limit=2_000,
        used=0,
        asked=3_000,
    )
    assert accepted(gpus(2), snapshot)


def unfinished(spec: JobSpec, job: int = 1, state: JobState = JobState.PENDING) -> dict[JobId, Job]:
    return {JobId(job): Job(id=JobId(job), spec=spec, state=state, submitted_at=NOW)}


def test_a_queue_takes_only_so_many_unfinished_jobs_its_children_included() -> None:
    queues = queue("acme", max_submitted=1), queue("acme/nlp"), queue("acme/cv")
    jobs = unfinished(gpus(1, queue=QueuePath("acme/cv")))

    assert refused(gpus(1), world(*queues, jobs=jobs)).reason == TooManySubmitted(
        queue=QueuePath("acme"), limit=1
    )
    assert accepted(gpus(1), world(*queues))


def test_four_and_seven_over_a_hard_ten_is_refused_where_the_queue_says_so() -> None:
    refusing = replace(limited(10_000), when_full=WhenFull.REFUSE)

    refusal = refused(gpus(7), world(refusing, jobs=unfinished(gpus(4))))

    assert refusal.reason == OverLimit(
        queue=QueuePath("acme/nlp"), scope=Scope(), limit=10_000, used=4_000, asked=7_000
    )
    assert refusal.advice == (
        "Queue acme/nlp allows 10 GPUs, and unfinished jobs ask for 4 GPUs; this job asks for "
        "7 GPUs. Ask for at most 6 GPUs, or submit again when some have ended."
    )
    assert accepted(gpus(6), world(refusing, jobs=unfinished(gpus(4))))


def test_four_and_seven_over_a_hard_ten_waits_where_the_queue_does_not_mind() -> None:
    assert accepted(gpus(7), world(limited(10_000), jobs=unfinished(gpus(4))))


def test_a_running_job_counts_with_what_it_holds() -> None:
    refusing = replace(limited(2_000, Scope(pool=POOL)), when_full=WhenFull.REFUSE)
    jobs = unfinished(gpus(2, spot=Spot.ALLOWED), state=JobState.RUNNING)
    held = Allocation(
        job=JobId(1), attempt=1, cluster=HERE, placements=(placement(),), placed_at=NOW
    )
    snapshot = world(refusing, jobs=jobs, allocations={JobId(1): held})

    assert accepted(gpus(1), snapshot)
    assert isinstance(refused(gpus(2), snapshot).reason, OverLimit)


def test_on_a_node_of_two_models_a_job_counts_for_the_one_it_was_given() -> None:
    refusing = replace(limited(1_000, Scope(model=H100)), when_full=WhenFull.REFUSE)
    h100 = node("n3", "a100", H100, 1).devices[0]
    mixed = node("n1", "a100", A100, 1)
    mixed = replace(mixed, devices=(*mixed.devices, h100))
    given = replace(placement(), devices=(DeviceShare(device=h100.id),))
    held = Allocation(job=JobId(1), attempt=1, cluster=HERE, placements=(given,), placed_at=NOW)
    jobs = unfinished(gpus(1), state=JobState.RUNNING)
    snapshot = world(refusing, jobs=jobs, allocations={JobId(1): held}, nodes={mixed.id: mixed})

    asked = spec(groups=(group(gpus=1, models=(H100,)),))

    assert isinstance(refused(asked, snapshot).reason, OverLimit)
    assert accepted(gpus(1), snapshot)


def test_a_full_queue_lets_in_what_takes_nothing_of_what_is_full() -> None:
    refusing = replace(limited(3_000), when_full=WhenFull.REFUSE)
    snapshot = world(refusing, jobs=unfinished(gpus(4)))

    assert accepted(spec(groups=(group(),)), snapshot)
    assert refused(gpus(1), snapshot).advice.endswith("Submit again when some have ended.")


def test_a_task_without_cores_or_memory_gets_a_caution_where_they_are_counted() -> None:
    bare = spec(groups=(TaskGroup(each=Ask(cpu_milli=1_000)),))
    lines = tuple(Quota(scope=Scope(meter=meter), limit=99_999) for meter in Meter)
    far = world(queue("acme", quotas=lines), queue("acme/nlp"))
    near = world(queue("acme", quotas=lines), queue("acme/nlp", quotas=lines))

    def reason(snapshot: Snapshot) -> object:
        (caution,) = accepted(bare, snapshot).cautions
        return caution.reason

    assert reason(far) == EscapesQuota(group="main", queue=QueuePath("acme"), meter=Meter.MEMORY)
    assert reason(near) == EscapesQuota(
        group="main", queue=QueuePath("acme/nlp"), meter=Meter.MEMORY
    )


SSD = LabelRule(key="disk", values=("ssd",))


@pytest.mark.parametrize(
    ("where", "is_warned"),
    [
        (Where(), False),
        (Where(require=(SSD,)), True),
        (Where(nodes=(NodeId("n9"),)), True),
        (Where(not_nodes=(N1,)), False),
        (Where(not_nodes=(N1, N2)), True),
    ],
    ids=repr,
)
def test_labels_and_names_that_no_node_has_yet_are_only_cautioned_about(
    where: Where, is_warned: bool
) -> None:
    answer = accepted(spec(groups=(replace(group(gpus=1), where=where),)), world())

    assert [caution.reason for caution in answer.cautions] == (
        [NoNodeMatches(group="main")] if is_warned else []
    )


@pytest.mark.parametrize(
    ("toleration", "is_warned"),
    [
        (Toleration(key="team", value="mlops"), False),
        (Toleration(key="team"), False),
        (Toleration(), False),
        (Toleration(key="team", value="other"), True),
        (Toleration(key="other"), True),
    ],
    ids=repr,
)
def test_taints_that_are_not_tolerated_anywhere_are_cautioned_about(
    toleration: Toleration, is_warned: bool
) -> None:
    taint = Taint(key="team", value="mlops")
    nodes = {name: replace(each, taints=(taint,)) for name, each in world().nodes.items()}
    tolerant = replace(group(gpus=1), where=Where(tolerate=(toleration,)))

    answer = accepted(spec(groups=(tolerant,)), world(nodes=nodes))

    assert bool(answer.cautions) is is_warned


@pytest.mark.parametrize(
    ("kind", "state", "is_warned"),
    [
        (DependencyKind.AFTER_OK, JobState.COMPLETED, False),
        (DependencyKind.AFTER_OK, JobState.FAILED, True),
        (DependencyKind.AFTER_OK, JobState.CANCELLED, True),
        (DependencyKind.AFTER_NOT_OK, JobState.COMPLETED, True),
        (DependencyKind.AFTER_NOT_OK, JobState.FAILED, False),
        (DependencyKind.AFTER_ANY, JobState.FAILED, False),
        (DependencyKind.AFTER, JobState.FAILED, False),
    ],
)
def test_a_dependency_that_can_no_longer_come_true_is_cautioned_about(
    kind: DependencyKind, state: JobState, is_warned: bool
) -> None:
    ended = {JobId(3): Finished(state=state, started_at=NOW, ended_at=NOW)}
    waiting = spec(after=(Dependency(kind=kind, job=JobId(3)),))

    reasons = [each.reason for each in accepted(waiting, world(finished=ended)).cautions]

    assert reasons == ([NeverReady(kind=kind, job=JobId(3))] if is_warned else [])


@pytest.mark.parametrize("other", [JobState.FAILED, JobState.COMPLETED])
def test_of_several_ways_all_must_be_hopeless_for_a_warning(other: JobState) -> None:
    first = Finished(state=JobState.FAILED, started_at=NOW, ended_at=NOW)
    ended = {JobId(3): first, JobId(4): replace(first, state=other)}
    ok = DependencyKind.AFTER_OK
    either = (Dependency(kind=ok, job=JobId(3)), Dependency(kind=ok, job=JobId(4), way=1))

    reasons = [each.reason for each in accepted(spec(after=either), world(finished=ended)).cautions]

    never = [NeverReady(kind=ok, job=JobId(3)), NeverReady(kind=ok, job=JobId(4))]
    assert reasons == (never if other is JobState.FAILED else [])


def test_a_singleton_depends_on_no_job_in_particular() -> None:
    alone = Dependency(kind=DependencyKind.SINGLETON)

    assert accepted(spec(after=(alone,)), world())
