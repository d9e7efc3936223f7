"""One decision each, whole or not at all, in a place that may be had."""

from muster.model.cluster import Abilities, Ability, NodeState
from muster.model.gpu import GpuAsk, MpsShare
from muster.model.job import HeldBy, JobState, Spot, TaskGroup
from muster.model.plan import Wait
from muster.model.policy import Policy
from muster.model.reason import NotBefore
from muster.model.resources import Resources
from muster.model.value import (
    HOUR,
    ClassName,
    ClusterName,
    GpuModel,
    Instant,
    JobId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.schedule.verify import violations
from unit.schedule.yard import (
    NOW,
    ONE_GPU,
    Yard,
    asking,
    at,
    claim_on,
    clear,
    group,
    resize,
    resume,
    start,
)


def test_a_plan_in_order_breaks_nothing() -> None:
    yard = Yard()
    yard.waits(1)
    yard.waits(2)

    assert yard.judge(start(1, at("n1"))) == []


def test_a_violation_says_rule_subject_and_numbers() -> None:
    yard = Yard()
    yard.waits(1, group(3))

    (found,) = violations(yard.snapshot(), yard.plan(start(1, at("n1"), at("n2"))))

    assert (found.rule, found.subject) == ("whole", "job 1")
    assert found.text == "Group main gets 2 tasks, and wants from 3 to 3."


def test_the_plan_must_be_made_for_this_snapshot() -> None:
    yard = Yard()

    found = violations(yard.snapshot(), replace(yard.plan(), snapshot_version=6))

    assert [each.rule for each in found] == ["version"]


def test_a_waiting_job_without_decision_is_found() -> None:
    yard = Yard()
    yard.waits(1, state=JobState.HELD)

    found = violations(yard.snapshot(), replace(yard.plan(), waits={}))

    assert [(each.rule, each.subject) for each in found] == [("one decision", "job 1")]


def test_two_decisions_for_one_job_are_found() -> None:
    yard = Yard()
    yard.waits(1)
    wait = Wait(job=JobId(1), why=NotBefore(at=NOW))

    assert "one decision" in yard.judge(wait, start(1, at("n1")))
    assert "one decision" in yard.judge(start(1, at("n1")), start(1, at("n1")))


def test_a_decision_that_is_noted_for_another_job_is_found() -> None:
    yard = Yard()
    yard.waits(1)
    wait = Wait(job=JobId(2), why=NotBefore(at=NOW))

    found = violations(yard.snapshot(), replace(yard.plan(), waits={JobId(1): wait}))

    assert [(each.rule, each.subject) for each in found] == [("one decision", "job 1")]


def test_a_running_job_has_no_decision() -> None:
    yard = Yard()
    yard.runs(1, at("n1"))

    found = yard.judge(Wait(job=JobId(1), why=NotBefore(at=NOW)))

    assert found == ["one decision"]


def test_a_held_job_does_not_start() -> None:
    yard = Yard()
    yard.waits(1, state=JobState.HELD)

    assert yard.judge(start(1, at("n1"))) == ["state"]


def test_only_a_suspended_job_is_resumed() -> None:
    yard = Yard()
    yard.waits(1)
    yard.runs(2, at("n1"), state=JobState.SUSPENDED)

    assert yard.judge(resume(2)) == []
    assert yard.judge(replace(resume(1), attempt=0)) == ["cluster", "state"]


def test_a_suspended_job_that_somebody_holds_is_not_resumed() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), state=JobState.SUSPENDED)
    yard.jobs[JobId(1)] = replace(yard.jobs[JobId(1)], why=HeldBy(user=UserName("root")))

    assert yard.judge(resume(1)) == ["state"]


def test_a_start_is_the_next_attempt() -> None:
    yard = Yard()
    yard.waits(1)

    assert yard.judge(start(1, at("n1"), attempt=2)) == ["attempt"]


def test_a_resume_is_the_same_attempt() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), state=JobState.SUSPENDED)

    assert yard.judge(replace(resume(1), attempt=2)) == ["attempt"]


def test_a_job_starts_in_its_claim_only_when_the_victims_are_gone() -> None:
    yard = Yard()
    yard.waits(1, claim=claim_on(at("n1"), victims=[2]))
    yard.runs(2, at("n1"), state=JobState.STOPPING)

    assert "claim" in yard.judge(start(1, at("n2")))

    del yard.jobs[JobId(2)], yard.allocations[JobId(2)]
    assert yard.judge(start(1, at("n1"))) == []


def test_a_victim_that_runs_again_elsewhere_is_gone() -> None:
    yard = Yard()
    yard.waits(1, claim=claim_on(at("n1"), victims=[2]))
    yard.runs(2, at("n2"))

    assert yard.judge(start(1, at("n1"))) == []


def test_queue_and_class_must_exist() -> None:
    yard = Yard()
    yard.waits(1, queue=QueuePath("nowhere"), job_class=ClassName("nothing"))

    assert yard.judge(start(1, at("n1"))) == ["class", "queue"]


def test_an_elastic_group_starts_with_at_least_its_fewest() -> None:
    yard = Yard()
    yard.waits(1, group(3, min_count=2))

    assert yard.judge(start(1, at("n1"), at("n2"))) == []
    assert yard.judge(start(1, at("n1"))) == ["whole"]


def test_no_group_gets_more_than_its_count_and_none_is_left_out() -> None:
    yard = Yard()
    yard.waits(1, group(), TaskGroup(name="side", each=ONE_GPU))

    assert yard.judge(start(1, at("n1"), at("n2", group="side"))) == []
    assert yard.judge(start(1, at("n1"))) == ["whole"]
    assert yard.judge(start(1, at("n1"), at("n1", "g1"), at("n2", group="side"))) == ["whole"]
    assert yard.judge(start(1, at("n1"), at("n2", group="side"), at("n2", group="x"))) == ["whole"]


def test_tasks_are_numbered_without_gaps() -> None:
    yard = Yard()
    yard.waits(1, group(2))

    assert yard.judge(start(1, at("n1"), at("n2", index=2))) == ["whole"]


def test_a_cluster_must_exist_and_be_reachable_and_wanted() -> None:
    yard = Yard()
    yard.waits(1)
    yard.waits(2, clusters=(ClusterName("d"),))

    assert yard.judge(start(1, at("n1"), cluster=ClusterName("d"))) == ["cluster", "node"]
    assert yard.judge(start(2, at("n1"))) == ["cluster"]

    yard.cluster(reachable=False)
    assert yard.judge(start(1, at("n1"))) == ["cluster"]


def test_a_cluster_must_be_able_to_run_the_job() -> None:
    yard = Yard()
    yard.waits(1, takes=(Ability.PODS,))

    assert yard.judge(start(1, at("n1"))) == []

    yard.cluster(abilities=Abilities(pods=False))
    assert yard.judge(start(1, at("n1"))) == ["abilities"]


def test_a_node_must_exist_be_up_and_in_the_pool() -> None:
    yard = Yard()
    yard.pool("other")
    yard.waits(1)
    yard.node("n2", state=NodeState.DRAINING)

    assert yard.judge(start(1, at("n9"))) == ["node"]
    assert yard.judge(start(1, at("n2"))) == ["node"]
    assert yard.judge(start(1, at("n1", pool=PoolName("other")))) == ["node"]


def test_a_suspended_job_goes_on_where_the_node_is_draining_but_not_where_it_is_down() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), state=JobState.SUSPENDED)
    yard.node("n1", state=NodeState.DRAINING)

    assert yard.judge(resume(1)) == []

    yard.node("n1", state=NodeState.DOWN)
    assert yard.judge(resume(1)) == ["node"]


def test_pools_of_the_spec_are_kept_to() -> None:
    yard = Yard()
    yard.pool("other")
    yard.waits(1, pools=(PoolName("other"),))

    assert yard.judge(start(1, at("n1"))) == ["node"]


def test_a_group_stays_in_one_pool_and_on_one_model() -> None:
    yard = Yard()
    yard.pool("other")
    yard.node("n2", pool=PoolName("other"), model="A100-80GB")
    yard.waits(1, group(2))

    placed = start(1, at("n1"), at("n2", pool=PoolName("other")))

    assert yard.judge(placed) == ["one model", "one pool"]


def test_spot_pools_are_for_those_that_want_them() -> None:
    yard = Yard()
    yard.job_class("cheap", spot_only=True)
    for job, spot in enumerate(Spot, start=1):
        yard.waits(job, spot=spot)
    yard.waits(4, job_class=ClassName("cheap"))

    assert [yard.judge(start(job, at("n1"))) for job in (1, 2, 3, 4)] == [
        [],
        [],
        ["spot"],
        ["spot"],
    ]

    yard.pool("main", spot=True)
    assert [yard.judge(start(job, at("n1"))) for job in (1, 2, 3, 4)] == [["spot"], [], [], []]


def test_an_amount_must_be_the_ask() -> None:
    yard = Yard()
    yard.waits(1)
    less = Resources(cpu_milli=1_000, memory_mib=1_023, gpu_milli=1_000)

    assert yard.judge(start(1, at("n1", amount=less))) == ["amount"]


def test_device_shares_must_be_the_ask() -> None:
    yard = Yard()
    yard.waits(1, group(1, asking(2)))

    assert yard.judge(start(1, at("n1", "g0 g1"))) == []
    assert yard.judge(start(1, at("n1"))) == ["amount", "devices"]
    assert yard.judge(start(1, at("n1", "g0 g0"))) == ["device", "devices"]
    assert yard.judge(start(1, at("n1", "g0 g7"))) == ["devices"]


def test_a_task_without_gpus_gets_no_devices() -> None:
    yard = Yard()
    yard.waits(1, group(1, asking(0)))

    assert yard.judge(start(1, at("n1", ""))) == []
    assert yard.judge(start(1, at("n1"))) == ["amount", "devices"]


def test_the_slice_and_how_it_is_kept_must_be_the_ask() -> None:
    yard = Yard()
    half = MpsShare(milli=500)
    yard.waits(1, group(1, asking(1, half)))
    right = at("n1", "g0", half)
    claims_more = replace(right.devices[0], enforced="hardware")

    assert yard.judge(start(1, right)) == []
    assert yard.judge(start(1, replace(right, devices=(claims_more,)))) == ["devices"]
    assert yard.judge(start(1, at("n1"))) == ["amount", "devices"]


def test_devices_must_be_healthy_of_the_model_and_large_enough() -> None:
    yard = Yard()
    yard.waits(1)
    yard.waits(2, group(1, asking(1, models=(GpuModel("A100-80GB"),))))
    yard.waits(3, group(1, replace(ONE_GPU, gpus=GpuAsk(count=1, min_memory_mib=90_000))))
    yard.device("n2", 0, healthy=False)

    assert yard.judge(start(1, at("n2"))) == ["devices"]
    assert yard.judge(start(2, at("n1"))) == ["devices"]
    assert yard.judge(start(3, at("n1"))) == ["devices"]


def test_a_running_elastic_job_grows_to_its_count() -> None:
    yard = Yard()
    yard.cluster(abilities=Abilities(resize=True))
    yard.runs(1, at("n1"), groups=(group(2, min_count=1),))

    assert yard.judge(resize(1, at("n2", index=1))) == []
    assert yard.judge(resize(1, at("n2", index=2))) == ["resize"]
    assert yard.judge(resize(1, at("n2", index=1), at("n2", "g1", index=2))) == ["resize"]
    assert yard.judge(resize(1, at("n2", index=1), attempt=2)) == ["attempt"]
    assert yard.judge(*[resize(1, at("n2", index=1))] * 2) == ["device", "resize"]


def test_a_job_grows_only_where_cluster_and_policy_allow_it() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), groups=(group(2, min_count=1),))

    assert yard.judge(resize(1, at("n2", index=1))) == ["resize"]

    yard.cluster(abilities=Abilities(resize=True))
    yard.policy = Policy(grow=False)
    assert yard.judge(resize(1, at("n2", index=1))) == ["resize"]


def test_a_job_that_does_not_run_is_not_resized() -> None:
    yard = Yard()
    yard.cluster(abilities=Abilities(resize=True))
    yard.runs(1, at("n1"), groups=(group(2, min_count=1),), state=JobState.STARTING)

    assert yard.judge(resize(1, at("n2", index=1))) == ["state"]


def test_a_job_in_its_pause_does_not_clear_room() -> None:
    yard = Yard()
    yard.waits(1)
    yard.jobs[JobId(1)] = replace(yard.jobs[JobId(1)], not_before=Instant(NOW + HOUR))

    assert yard.judge(clear(1, at("n1"))) == ["begin"]
