"""Whose turn it is: who had little goes first, old use fades, and no user starves."""

from muster.model.policy import OrderWeights, Policy, SharePolicy
from muster.model.value import HOUR, Duration
from stories.world import World


def test_a_light_user_overtakes_a_heavy_one() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.uses("root", "heavy", gpu_hours=1_000)
    world.submits("first", user="heavy")
    world.passes(minutes=10)
    world.submits("second", user="light")

    assert world.plans().started() == ["second"]


def test_use_of_four_half_lives_ago_weighs_less_than_a_little_today() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.uses("root", "heavy", gpu_hours=100)
    world.passes(days=28)
    world.uses("root", "light", gpu_hours=10)
    world.submits("of_light", user="light")
    world.submits("of_heavy", user="heavy")

    assert world.plans().started() == ["of_heavy"]


def test_seven_days_halve_what_a_user_had() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.uses("root", "heavy", gpu_hours=100)
    world.passes(days=7)
    world.uses("root", "other", gpu_hours=60)
    world.submits("of_other", user="other")
    world.submits("of_heavy", user="heavy")

    assert world.plans().started() == ["of_heavy"]


def test_policy_may_forget_faster() -> None:
    world = World(Policy(share=SharePolicy(half_life=Duration(6 * HOUR))))
    world.has_nodes("n1", gpus=1)
    world.uses("root", "heavy", gpu_hours=100)
    world.passes(days=1)
    world.uses("root", "other", gpu_hours=10)
    world.submits("of_other", user="other")
    world.submits("of_heavy", user="heavy")

    assert world.plans().started() == ["of_heavy"]


def test_a_user_of_a_heavy_queue_comes_after_a_user_of_a_light_one() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("busy")
    world.has_queue("calm")
    world.uses("busy", "somebody", gpu_hours=1_000)
    world.submits("in_busy", queue="busy", user="bea")
    world.submits("in_calm", queue="calm", user="cal")

    assert world.plans().started() == ["in_calm"]


def test_use_counts_at_every_level_of_the_tree() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("acme/nlp")
    world.has_queue("acme/vision")
    world.has_queue("other/nlp")
    world.uses("acme/vision", "somebody", gpu_hours=1_000)
    world.submits("in_acme", queue="acme/nlp", user="ann")
    world.submits("in_other", queue="other/nlp", user="oda")

    assert world.plans().started() == ["in_other"]


def test_use_is_measured_against_the_weight_of_the_queue() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("large", weight=10)
    world.has_queue("small", weight=1)
    world.uses("large", "lou", gpu_hours=200)
    world.uses("small", "sam", gpu_hours=100)
    world.submits("in_small", queue="small", user="sam")
    world.submits("in_large", queue="large", user="lou")

    assert world.plans().started() == ["in_large"]


def test_an_idle_queue_below_takes_nothing_from_the_jobs_of_its_parent() -> None:
    world = World()
    world.has_nodes("n1", gpus=100)
    world.has_queue("product", weight=60)
    world.has_queue("research", weight=40)
    world.has_queue("research/nlp")
    world.has_queue("idle", weight=1_000)
    world.submits_many("p", 100, queue="product", user="pat")
    world.submits_many("r", 100, queue="research", user="ron")

    outcome = world.plans()

    assert (len(outcome.started("p")), len(outcome.started("r"))) == (60, 40)


def test_one_plan_gives_users_their_turns_one_after_the_other() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.submits_many("a", 4, user="ann")
    world.submits_many("b", 4, user="bob")

    outcome = world.plans()

    assert (len(outcome.started("a")), len(outcome.started("b"))) == (2, 2)


def test_what_a_user_holds_now_counts_as_use() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("running", on="n1", gpus=7, user="ann")
    world.submits("more", user="ann")
    world.submits("first", user="bob")

    assert world.plans().started() == ["first"]


def test_a_node_full_of_cpu_work_is_use_like_a_node_full_of_gpu_work() -> None:
    world = World()
    world.has_nodes("n1", gpus=0, cpu=64)
    world.has_nodes("n2", gpus=1)
    world.runs("hog", on="n1", gpus=0, cpu=64, user="ann")
    world.submits("more", user="ann")
    world.submits("first", user="bob")

    assert world.plans().started() == ["first"]


def test_class_counts_more_than_fair_share() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_class("urgent", priority=100)
    world.uses("root", "heavy", gpu_hours=1_000)
    world.submits("usual", user="light")
    world.submits("urgent", user="heavy", job_class="urgent")

    assert world.plans().started() == ["urgent"]


def test_a_heavy_user_who_waited_long_enough_goes_first() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.runs("blocker", on="n1", user="eve", minutes=60 * 24 * 60)
    world.submits("old", user="heavy")
    world.passes(days=60)
    world.uses("root", "heavy", gpu_hours=1_000)
    world.submits("new", user="light")

    assert world.plans().started() == ["old"]


def test_the_older_of_two_equal_jobs_goes_first() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("old", user="zoe")
    world.passes(hours=1)
    world.submits("new", user="abe")

    assert world.plans().started() == ["old"]


def test_size_does_not_count_unless_named() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.submits("small", gpus=1)
    world.submits("large", gpus=8)

    assert world.plans().started() == ["small"]


def test_a_positive_size_weight_lets_large_jobs_go_first() -> None:
    world = World(Policy(order=OrderWeights(size=100)))
    world.has_nodes("n1", gpus=8)
    world.submits("small", gpus=1)
    world.submits("large", gpus=8)

    assert world.plans().started() == ["large"]


def test_a_negative_size_weight_lets_small_jobs_go_first() -> None:
    world = World(Policy(order=OrderWeights(size=-100)))
    world.has_nodes("n1", gpus=8)
    world.submits("large", gpus=8)
    world.submits("small", gpus=1)

    assert world.plans().started() == ["small"]


def test_a_queue_with_priority_goes_first() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("demo", priority=100)
    world.submits("usual")
    world.submits("shown", queue="demo", user="bob")

    assert world.plans().started() == ["shown"]


def test_a_queue_with_negative_priority_goes_last() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("leftovers", priority=-100)
    world.submits("patient", queue="leftovers", user="bob")
    world.submits("usual")

    assert world.plans().started() == ["usual"]


def test_a_user_ranks_own_jobs_by_priority() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.submits("later")
    world.submits("sooner", priority=10)

    assert world.plans().started() == ["sooner"]


def test_equal_jobs_go_in_the_order_they_came() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.submits_many("j", 4)

    assert world.plans().started() == ["j1", "j2"]
