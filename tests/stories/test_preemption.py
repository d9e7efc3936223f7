"""Making room: only when it helps, at the least loss, and never back and forth."""

import pytest

from muster.model.policy import Policy, PreemptPolicy
from muster.model.queue import PreemptMode
from muster.model.reason import MakingRoom, Reserved, WaitingToResume
from muster.model.value import MINUTE, Duration, JobId, NodeId
from stories.words import group
from stories.world import World


def world_with_urgent_class(policy: Policy | None = None) -> World:
    """One node, and a class whose jobs may preempt normal ones."""
    world = World(policy)
    world.has_nodes("n1", gpus=8)
    world.has_class("urgent", priority=100, preempts=("normal",))
    return world


def test_urgent_inference_preempts_the_training_that_checkpointed_last() -> None:
    world = world_with_urgent_class()
    world.runs("old_checkpoint", on="n1", gpus=4, ran=300, checkpointed=240)
    world.runs("new_checkpoint", on="n1", gpus=4, ran=300, checkpointed=1)
    world.submits("inference", gpus=4, job_class="urgent")

    outcome = world.plans()

    assert outcome.cleared() == ["inference"]
    assert outcome.preempted() == ["new_checkpoint"]


def test_the_victim_is_the_one_with_the_least_work_to_do_again() -> None:
    world = world_with_urgent_class()
    world.runs("for_hours", on="n1", gpus=4, ran=300)
    world.runs("just_begun", on="n1", gpus=4, ran=2)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == ["just_begun"]


def test_starting_again_has_a_cost_too() -> None:
    world = world_with_urgent_class()
    world.runs("slow_to_restart", on="n1", gpus=4, ran=10, restart_minutes=60)
    world.runs("quick_to_restart", on="n1", gpus=4, ran=20)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == ["quick_to_restart"]


def test_the_plan_says_how_much_work_is_lost() -> None:
    world = world_with_urgent_class(Policy(preempt=PreemptPolicy(restart_cost=Duration(0))))
    world.runs("train", on="n1", gpus=8, ran=60, checkpointed=10)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preemption("train").lost_gpu_ms == 8 * 10 * MINUTE


def test_no_more_jobs_are_preempted_than_needed() -> None:
    world = world_with_urgent_class()
    world.runs_many("train", 4, on="n1", gpus=2)
    world.submits("inference", gpus=4, job_class="urgent")

    assert len(world.plans().preempted()) == 2


def test_nobody_is_preempted_while_there_is_room() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=4)
    world.submits("inference", gpus=4, job_class="urgent")

    outcome = world.plans()

    assert (outcome.started(), outcome.preempted()) == (["inference"], [])


def test_nobody_is_preempted_for_a_job_that_could_not_start_even_then() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=4)
    world.runs("safe", on="n1", gpus=4, preemptible=False)
    world.submits("inference", gpus=8, job_class="urgent")

    outcome = world.plans()

    assert (outcome.waiting(), outcome.preempted()) == (["inference"], [])


def test_nobody_is_preempted_for_a_job_that_its_queue_would_not_let_start() -> None:
    world = world_with_urgent_class()
    world.has_queue("nlp", limit=2)
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent", queue="nlp")

    assert world.plans().preempted() == []


def test_the_preemptor_starts_in_the_room_that_was_made() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    world.goes_on()
    outcome = world.goes_on()

    assert outcome.started() == ["inference"]
    assert outcome.preempted() == []


def test_the_preemptor_waits_until_its_victims_are_gone() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    world.goes_on(slowly=True)
    outcome = world.plans()

    assert outcome.why("inference") == MakingRoom(victims=(JobId(1),))
    assert outcome.preempted() == []


def test_room_that_one_victim_left_is_held_while_another_still_stops() -> None:
    world = world_with_urgent_class()
    world.runs("one", on="n1", gpus=4)
    world.runs("two", on="n1", gpus=4)
    world.submits("inference", gpus=8, job_class="urgent")
    world.goes_on(slowly=True)
    world.stops("one")
    world.submits("thief", gpus=4, minutes=1)

    assert world.plans().waiting() == ["one", "inference", "thief"]


def test_room_that_was_cleared_is_given_up_when_a_promise_to_others_needs_it() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n2", gpus=16)
    world.has_queue("demo")
    world.promises(8, queue="demo", begins=0, ends=120)
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=8, only_on=("n1",), job_class="urgent")

    cleared = world.goes_on().cleared()
    world.loses("n2")

    assert cleared == ["inference"]
    assert isinstance(world.plans().why("inference"), Reserved)


def test_the_victim_waits_its_turn_and_does_not_preempt_back() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")
    world.goes_on()
    world.goes_on()

    outcome = world.plans()
    world.finishes("inference")

    assert (outcome.waiting(), outcome.preempted()) == (["train"], [])
    assert world.plans().started() == ["train"]


def test_a_job_is_safe_until_it_had_its_minimum_run_time() -> None:
    world = world_with_urgent_class()
    world.has_class("normal", min_run_minutes=30)
    world.runs("train", on="n1", gpus=8, ran=10)
    world.submits("inference", gpus=4, job_class="urgent")

    too_early = world.plans()
    world.passes(minutes=20)

    assert too_early.preempted() == []
    assert world.plans().preempted() == ["train"]


def test_policy_may_give_every_job_a_minimum_run_time() -> None:
    world = world_with_urgent_class(Policy(preempt=PreemptPolicy(min_run=Duration(30 * MINUTE))))
    world.runs("train", on="n1", gpus=8, ran=29)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == []


def test_a_class_preempts_only_those_it_names() -> None:
    world = world_with_urgent_class()
    world.has_class("vip", priority=50)
    world.runs("train", on="n1", gpus=8, job_class="vip")
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == []


def test_a_class_preempts_none_of_its_own_or_higher_priority() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_class("red", priority=10, preempts=("blue",))
    world.has_class("blue", priority=10, preempts=("red",))
    world.runs("train", on="n1", gpus=8, job_class="red")
    world.submits("other", gpus=8, job_class="blue")

    assert world.plans().preempted() == []


def test_a_class_that_is_not_preemptible_is_left_alone() -> None:
    world = world_with_urgent_class()
    world.has_class("normal", preemptible=False)
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == []


def test_policy_may_forbid_preemption_by_class() -> None:
    world = world_with_urgent_class(Policy(preempt=PreemptPolicy(by_class=False)))
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == []


def test_policy_may_forbid_reclaiming() -> None:
    world = World(Policy(preempt=PreemptPolicy(reclaim=False)))
    world.has_nodes("n1", gpus=8)
    world.has_queue("prod", guaranteed=8)
    world.runs("guest", on="n1", gpus=8)
    world.submits("ours", gpus=8, queue="prod")

    assert world.plans().preempted() == []


def test_a_queue_within_its_guarantee_is_safe_from_urgent_strangers() -> None:
    world = world_with_urgent_class()
    world.has_queue("prod", guaranteed=8)
    world.runs("ours", on="n1", gpus=8, queue="prod")
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preempted() == []


def test_a_job_does_not_preempt_the_company_it_needs() -> None:
    world = world_with_urgent_class()
    world.runs("cache", on="n1", gpus=8, labels={"app": "cache"})
    world.submits("reader", gpus=4, near=("app=cache",), job_class="urgent")

    assert world.plans().preempted() == []


def test_a_whole_gpu_job_starts_where_it_made_a_mig_tenant_leave() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n1", gpus=1, mig=("2g.10gb@0",))
    world.runs("tenant", on="n1", mig="2g.10gb")
    world.submits("whole", job_class="urgent")

    cleared = world.goes_on().cleared()

    assert cleared == ["whole"]
    assert world.goes_on().started() == ["whole"]


def test_mig_is_turned_off_on_every_gpu_that_was_cleared_for_whole_use() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n1", gpus=2, mig=("2g.10gb@0",))
    world.runs("tenant", on="n1", mig="2g.10gb")
    world.submits("whole", gpus=2, job_class="urgent")

    cleared = world.goes_on()
    started = world.goes_on()

    assert (cleared.cleared(), cleared.repartitions()) == (["whole"], [])
    assert started.started() == ["whole"]
    assert [cut.instances for cut in started.repartitions()] == [None, None]


def test_a_mig_job_starts_where_it_made_a_whole_gpu_job_leave() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n1", gpus=1)
    world.runs("whole", on="n1")
    world.submits("slice", mig="2g.10gb", job_class="urgent")

    cleared = world.goes_on().cleared()

    assert cleared == ["slice"]
    assert world.goes_on().started() == ["slice"]


def test_a_job_does_not_preempt_the_job_it_follows() -> None:
    world = world_with_urgent_class()
    world.runs("server", on="n1", gpus=8)
    world.submits("client", gpus=4, after="after:server", job_class="urgent")

    assert world.plans().preempted() == []


def test_an_exclusive_job_starts_where_it_made_another_leave() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=1)
    world.submits("alone", exclusive=True, job_class="urgent")

    cleared = world.goes_on().cleared()

    assert cleared == ["alone"]
    assert world.goes_on().started() == ["alone"]


def test_what_a_victim_still_holds_counts_against_its_queue() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n2", gpus=2)
    world.has_queue("nlp", limit=8)
    world.runs("train", on="n1", gpus=8, queue="nlp")
    world.submits("inference", gpus=8, job_class="urgent")
    world.submits("more", gpus=2, queue="nlp")

    outcome = world.plans()

    assert outcome.cleared() == ["inference"]
    assert outcome.waiting() == ["more"]


def test_a_victim_that_still_stops_counts_as_a_job_of_its_queue() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n2", gpus=2)
    world.has_queue("nlp", max_jobs=1)
    world.runs("train", on="n1", gpus=8, queue="nlp")
    world.submits("inference", gpus=8, job_class="urgent")
    world.submits("more", gpus=2, queue="nlp")

    outcome = world.plans()

    assert outcome.cleared() == ["inference"]
    assert outcome.waiting() == ["more"]


def test_a_gpu_is_not_cut_for_others_where_a_slice_is_held_for_the_preemptor() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n2", gpus=1, model="A100-40GB", mig=())
    world.runs("train", on="n1", gpus=8)
    both = (group("whole", gpus=8), group("slice", mig="1g.5gb"))
    world.submits("inference", groups=both, job_class="urgent")
    world.submits("tenant", mig="2g.10gb")

    assert world.goes_on().started() == []
    assert world.goes_on().started() == ["inference", "tenant"]


def test_few_jobs_may_ask_for_room_in_one_plan() -> None:
    world = world_with_urgent_class(Policy(preempt=PreemptPolicy(tries=1)))
    world.runs_many("train", 2, on="n1", gpus=4)
    world.submits_many("inference", 2, gpus=4, job_class="urgent")

    first = world.goes_on()
    second = world.goes_on()

    assert (len(first.preempted()), len(second.preempted())) == (1, 1)


@pytest.mark.parametrize("mode", list(PreemptMode))
def test_a_victim_goes_the_way_its_class_says(mode: PreemptMode) -> None:
    world = world_with_urgent_class()
    world.has_class("normal", mode=mode)
    world.runs("train", on="n1", gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preemption("train").mode is mode


def test_a_job_may_choose_the_way_it_goes() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8, mode="checkpoint")
    world.submits("inference", gpus=4, job_class="urgent")

    assert world.plans().preemption("train").mode is PreemptMode.CHECKPOINT


def test_a_suspended_job_goes_on_where_it_was_when_its_gpus_are_free() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8, mode="suspend")
    world.submits("inference", gpus=4, job_class="urgent")
    world.goes_on()

    suspended = world.goes_on()
    world.finishes("inference")

    assert suspended.started() == ["inference"]
    assert suspended.why("train") == WaitingToResume(node=NodeId("n1"))
    assert world.plans().resumed() == ["train"]


def test_a_suspended_job_keeps_its_memory() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8, memory_gib=400, mode="suspend")
    world.submits("inference", gpus=4, memory_gib=100, job_class="urgent")
    world.goes_on()
    world.goes_on()
    world.submits("hungry", gpus=1, memory_gib=100, minutes=1)

    assert "hungry" in world.plans().waiting()


def test_a_cancelled_victim_does_not_come_back() -> None:
    world = world_with_urgent_class()
    world.runs("train", on="n1", gpus=8, mode="cancel")
    world.submits("inference", gpus=4, job_class="urgent")
    world.goes_on()

    outcome = world.plans()

    assert (outcome.started(), outcome.waiting()) == (["inference"], [])


def test_a_gang_is_preempted_whole() -> None:
    world = world_with_urgent_class()
    world.has_nodes("n2", gpus=8)
    world.runs("gang", on="n1 n2", tasks=2, gpus=8)
    world.submits("inference", gpus=4, job_class="urgent")

    world.goes_on()
    outcome = world.plans()

    assert outcome.started() == ["inference"]
    assert outcome.waiting() == ["gang"]
