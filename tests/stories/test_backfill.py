"""Blocked jobs get a time; others may go early if they delay none of them."""

from muster.model.plan import NoEstimate
from muster.model.policy import Policy
from muster.model.reason import Behind
from muster.model.value import HOUR, Instant, JobId
from stories.scene import NEW_YEAR
from stories.world import World


def blocked_big_job(policy: Policy | None = None) -> World:
    """Half a node is busy for an hour, and a job waits for the whole of it."""
    world = World(policy)
    world.has_nodes("n1", gpus=8)
    world.runs("train", on="n1", gpus=4, minutes=60)
    world.submits("big", gpus=8, minutes=60)
    return world


def test_a_ten_minute_test_job_runs_past_a_blocked_big_one() -> None:
    world = blocked_big_job()
    world.submits("test", gpus=4, minutes=10)

    outcome = world.plans()

    assert outcome.started() == ["test"]
    assert outcome.expected("big") == 60


def test_a_long_job_does_not_run_past_a_blocked_big_one() -> None:
    world = blocked_big_job()
    world.submits("long", gpus=4, minutes=61)

    outcome = world.plans()

    assert outcome.started() == []
    assert outcome.why("long") == Behind(job=JobId(2), starts_at=Instant(NEW_YEAR + HOUR))


def test_a_job_without_a_time_limit_does_not_run_past_a_blocked_big_one() -> None:
    world = blocked_big_job()
    world.submits("endless", gpus=1)

    assert world.plans().waiting() == ["big", "endless"]


def test_the_default_time_of_the_policy_lets_a_job_run_past_a_blocked_one() -> None:
    world = blocked_big_job(Policy(default_time=HOUR))
    world.submits("unsaid", gpus=1)

    assert world.plans().started() == ["unsaid"]


def test_the_blocked_job_starts_when_it_was_expected_to() -> None:
    world = blocked_big_job()
    world.submits("test", gpus=4, minutes=10)
    world.goes_on()

    world.passes(minutes=60)

    assert world.plans().started() == ["big"]


def test_a_long_job_starts_where_it_is_in_nobodys_way() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=8)
    world.runs("train", on="n1", gpus=4, minutes=60)
    world.submits("big", gpus=8, minutes=60, only_on=("n1",))
    world.submits("long", gpus=8, minutes=600)

    outcome = world.plans()

    assert outcome.nodes("long") == ["n2"]
    assert outcome.expected("big") == 60


def test_a_long_job_takes_what_the_blocked_one_will_not_need() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("train", on="n1", gpus=5, minutes=60)
    world.submits("big", gpus=6, minutes=60)
    world.submits("long", gpus=2, minutes=600)
    world.submits("too_much", gpus=1, minutes=600)

    assert world.plans().started() == ["long"]


def test_no_job_may_run_past_a_second_blocked_one_either() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=8)
    world.runs("a", on="n1", gpus=4, minutes=30)
    world.runs("b", on="n2", gpus=4, minutes=60)
    world.submits_many("big", 2, gpus=8, minutes=60)
    world.submits("test", gpus=4, minutes=45)
    world.submits("long", gpus=4, minutes=90)

    outcome = world.plans()

    assert (outcome.expected("big1"), outcome.expected("big2")) == (30, 60)
    assert outcome.nodes("test") == ["n2"]
    assert isinstance(outcome.why("long"), Behind)


def test_only_the_first_blocked_jobs_hold_others_back() -> None:
    world = blocked_big_job(Policy(backfill_depth=0))
    world.submits("long", gpus=4, minutes=600)

    assert world.plans().started() == ["long"]


def test_estimates_follow_one_another() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.runs("now", on="n1", minutes=60)
    world.submits("next", minutes=30)
    world.submits("after_next", minutes=30)
    world.submits("last", minutes=30)

    outcome = world.plans()

    expected = [outcome.expected(name) for name in ("next", "after_next", "last")]
    assert expected == [60, 90, 120]


def test_an_estimate_counts_what_starts_in_the_same_plan() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.submits("first", gpus=8, minutes=60)
    world.submits("second", gpus=8)

    assert world.plans().expected("second") == 60


def test_a_job_behind_an_endless_one_that_starts_now_has_no_estimate() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.submits("first", gpus=1)
    world.submits("second", gpus=8)

    assert world.plans().expected("second") is NoEstimate.UNBOUNDED


def test_all_who_will_fit_when_an_exclusive_job_ends_say_so() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.submits("alone", exclusive=True, minutes=60)
    world.submits("first")
    world.goes_on()
    world.submits("second")

    outcome = world.plans()

    assert (outcome.expected("first"), outcome.expected("second")) == (60, 60)


def test_an_estimate_takes_into_account_how_long_jobs_ran_already() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.runs("now", on="n1", ran=45, minutes=60)
    world.submits("next")

    assert world.plans().expected("next") == 15


def test_nobody_can_say_when_a_job_without_a_time_limit_makes_room() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.runs("endless", on="n1")
    world.submits("next")

    assert world.plans().expected("next") is NoEstimate.UNBOUNDED


def test_a_job_over_its_limit_learns_when_enough_will_have_ended() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("nlp", limit=4)
    world.runs("one", on="n1", gpus=2, queue="nlp", minutes=30)
    world.runs("two", on="n1", gpus=2, queue="nlp", minutes=60)
    world.submits("next", gpus=4, queue="nlp")

    assert world.plans().expected("next") == 60


def test_a_job_over_its_limit_does_not_hold_others_back() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("nlp", limit=4)
    world.runs("one", on="n1", gpus=4, queue="nlp")
    world.submits("next", gpus=4, queue="nlp")
    world.submits("other", gpus=4)

    assert world.plans().started() == ["other"]


def test_every_waiting_job_learns_when_or_why_nobody_can_say() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.runs("now", on="n1", gpus=2, minutes=60)
    world.submits("next")
    world.submits("huge", gpus=3)
    world.submits("held", held=True)
    world.submits("dependent", after="afterok:next")

    outcome = world.plans()

    expected = [outcome.expected(name) for name in ("next", "huge", "held", "dependent")]
    assert expected == [60, NoEstimate.NEVER, NoEstimate.HELD, NoEstimate.DEPENDENCY]


def test_a_gang_runs_on_nodes_that_are_promised_if_it_leaves_in_time() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3", gpus=8)
    world.runs("train", on="n1", gpus=8, minutes=60)
    world.submits("big", tasks=3, gpus=8, minutes=60)
    world.submits("gang", tasks=2, gpus=8, minutes=60)
    world.submits("long_gang", tasks=2, gpus=8, minutes=61)

    outcome = world.plans()

    assert outcome.nodes("gang") == ["n2", "n3"]
    assert outcome.why("long_gang") is not None


def test_a_gang_that_would_stay_too_long_is_told_behind_whom_it_waits() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3", gpus=8)
    world.runs("train", on="n1", gpus=8, minutes=60)
    world.submits("big", tasks=3, gpus=8, minutes=60)
    world.submits("gang", tasks=2, gpus=8, minutes=61)

    outcome = world.plans()

    assert outcome.why("gang") == Behind(job=JobId(2), starts_at=Instant(NEW_YEAR + HOUR))


def test_a_picky_job_runs_on_promised_nodes_though_a_longer_one_could_not() -> None:
    world = World(Policy(backfill_depth=1))
    world.has_nodes("n1", "n2", "n3", gpus=8)
    world.runs("train", on="n1", gpus=8, minutes=60)
    world.submits("big", tasks=3, gpus=8, minutes=60)
    world.submits("long", gpus=8, minutes=90, only_on=("n2", "n3"))
    world.submits("quick", gpus=8, minutes=30, only_on=("n2", "n3"))

    assert world.plans().started() == ["quick"]


def test_several_jobs_are_promised_the_same_node_one_after_the_other() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("train", on="n1", gpus=8, minutes=60)
    world.submits_many("whole", 3, gpus=8, minutes=30)

    outcome = world.plans()

    assert [outcome.expected(f"whole{number}") for number in (1, 2, 3)] == [60, 90, 120]


def test_what_is_free_now_stays_open_beside_a_promise() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3", gpus=8)
    world.runs("a", on="n1", gpus=8, minutes=60)
    world.runs("b", on="n2", gpus=8, minutes=60)
    world.submits("pair", tasks=2, gpus=8, minutes=60, only_on=("n1", "n2", "n3"))
    world.runs("c", on="n3", gpus=4, minutes=5)
    world.submits("long", gpus=4, minutes=600)

    assert world.plans().nodes("long") == ["n3"]


def test_a_job_without_a_limit_is_expected_to_end_when_its_like_did() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("train", on="n1", gpus=4, expected_minutes=60)
    world.submits("big", gpus=8, expected_minutes=60)
    world.submits("quick", gpus=4, expected_minutes=10)
    world.submits("slow", gpus=2, expected_minutes=600)

    outcome = world.plans()

    assert outcome.started() == ["quick"]
    assert outcome.expected("big") == 60


def test_who_runs_longer_than_expected_is_expected_to_take_twice_as_long() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.runs("train", on="n1", gpus=4, ran=70, expected_minutes=60)
    world.submits("big", gpus=8, expected_minutes=60)

    assert world.plans().expected("big") == 50
