"""Queues own quota: guarantees are lent and reclaimed, limits hold at every level."""

from muster.model.job import JobState
from muster.model.plan import NoEstimate
from muster.model.policy import Packing, Policy
from muster.model.queue import Meter, Scope
from muster.model.reason import BorrowedOut, NoSuchQueue, OverLimit, TooManyJobs
from muster.model.value import QueuePath
from stories.words import quota
from stories.world import World


def test_four_running_and_seven_asked_over_a_hard_ten_waits() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.has_queue("nlp", limit=10)
    world.runs("four", on="n1", gpus=4, queue="nlp")
    world.submits("seven", gpus=7, queue="nlp")

    outcome = world.plans()

    assert outcome.why("seven") == OverLimit(
        queue=QueuePath("nlp"), scope=Scope(), limit=10_000, used=4_000, asked=7_000
    )


def test_what_would_exceed_the_limit_starts_when_enough_has_ended() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.has_queue("nlp", limit=10)
    world.runs("four", on="n1", gpus=4, queue="nlp")
    world.submits("seven", gpus=7, queue="nlp")

    world.finishes("four")

    assert world.plans().started() == ["seven"]


def test_sixty_and_forty_share_the_cluster_as_guaranteed_when_both_want_all_of_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed="60%")
    world.has_queue("research", guaranteed="40%")
    world.submits_many("p", 10, queue="prod", user="pat")
    world.submits_many("r", 10, queue="research", user="rob")

    outcome = world.plans()

    assert (len(outcome.started("p")), len(outcome.started("r"))) == (6, 4)


def test_a_queue_borrows_what_its_neighbour_does_not_use() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6)
    world.has_queue("research", guaranteed=4)
    world.submits_many("p", 10, queue="prod")

    outcome = world.plans()

    assert len(outcome.started("p")) == 10


def test_the_owner_reclaims_its_guarantee_and_no_more() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6)
    world.has_queue("research", guaranteed=4)
    world.runs_many("p", 10, on="n1", queue="prod")
    world.submits_many("r", 8, queue="research", user="rob")

    reclaim = world.goes_on()
    after = world.goes_on()

    assert (len(reclaim.cleared()), len(reclaim.preempted())) == (4, 4)
    assert (len(after.started("r")), after.preempted()) == (4, [])


def test_a_queue_within_its_guarantee_loses_nothing_to_one_that_wants_more() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6)
    world.has_queue("research", guaranteed=4)
    world.runs_many("p", 6, on="n1", queue="prod")
    world.runs_many("r", 4, on="n1", queue="research")
    world.submits("more", queue="research")

    outcome = world.plans()

    assert outcome.waiting() == ["more"]
    assert outcome.preempted() == []


def test_one_plan_gives_the_owner_its_guarantee_before_others_borrow_it() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6)
    world.submits_many("guest", 10)
    world.passes(hours=1)
    world.submits_many("p", 6, queue="prod", user="pat")

    outcome = world.plans()

    assert (len(outcome.started("p")), len(outcome.started("guest"))) == (6, 4)


def test_a_queue_with_forty_percent_nominal_stops_at_its_ceiling_of_sixty() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("nlp", guaranteed="40%", limit="60%")
    world.submits_many("j", 10, queue="nlp")

    outcome = world.plans()

    assert len(outcome.started("j")) == 6
    assert outcome.why(outcome.waiting()[0]) == OverLimit(
        queue=QueuePath("nlp"), scope=Scope(), limit=6_000, used=6_000, asked=1_000
    )


def test_a_percentage_of_a_pool_counts_that_pool_alone() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_nodes("h1", gpus=4, model="H100-80GB", pool="h100")
    world.has_queue("nlp", quotas=(quota(limit="50%", pool="h100"),))
    world.submits_many("h", 4, queue="nlp", pools=("h100",))
    world.submits_many("a", 8, queue="nlp", pools=("main",))

    outcome = world.plans()

    assert (len(outcome.started("h")), len(outcome.started("a"))) == (2, 8)


def test_a_percentage_of_nothing_is_nothing_until_a_node_comes_back() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.has_queue("prod", guaranteed="50%", lend=0)
    world.loses("n1")
    world.submits_many("guest", 4)

    down = world.goes_on()
    world.restores("n1")

    assert len(down.waiting()) == 4
    assert len(world.plans().started("guest")) == 2


def test_a_percentage_follows_the_nodes_that_are_lost() -> None:
    world = World()
    world.has_nodes("n1", "n2", gpus=4)
    world.has_queue("nlp", limit="50%")
    world.runs("old", on="n1", gpus=2, queue="nlp")
    world.submits("new", gpus=3, queue="nlp")
    world.goes_on()

    world.loses("n2")
    half = world.goes_on().why("new")
    world.loses("n1")

    assert half == OverLimit(
        queue=QueuePath("nlp"), scope=Scope(), limit=2_000, used=2_000, asked=3_000
    )
    assert world.plans().waiting() == ["old", "new"]


def test_free_capacity_is_shared_three_to_one_by_weight_in_one_plan() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("a", weight=3)
    world.has_queue("b", weight=1)
    world.submits_many("b", 8, queue="b", user="bob")
    world.submits_many("a", 8, queue="a", user="ann")

    outcome = world.plans()

    assert (len(outcome.started("a")), len(outcome.started("b"))) == (6, 2)


def test_a_queue_of_short_jobs_gets_no_more_than_its_weight() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("long", weight=1)
    world.has_queue("short", weight=1)
    world.submits_many("long", 8, queue="long", user="ann", expected_minutes=10_000)
    world.submits_many("short", 8, queue="short", user="bob", expected_minutes=1)

    outcome = world.plans()

    assert (len(outcome.started("long")), len(outcome.started("short"))) == (4, 4)


def test_short_jobs_that_wait_for_others_take_nothing_from_the_long_ones_of_their_queue() -> None:
    world = World()
    world.has_nodes("n1", gpus=9)
    world.has_queue("long", weight=1)
    world.has_queue("both", weight=1)
    world.submits("first", queue="root", user="cid")
    world.plans()
    world.submits_many("long", 8, queue="long", user="ann", expected_minutes=10_000)
    world.submits_many("both", 8, queue="both", user="bob", expected_minutes=10_000)
    for number in range(40):
        name = f"later-{number}"
        world.submits(name, queue="both", user="bob", expected_minutes=1, after="afterok:first")

    outcome = world.plans()

    assert (len(outcome.started("long")), len(outcome.started("both"))) == (4, 4)


def test_within_a_queue_the_short_job_goes_first() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_queue("other", weight=1)
    world.submits("long", expected_minutes=600)
    world.submits("short", expected_minutes=1)
    world.submits("elsewhere", queue="other", user="bob", expected_minutes=1, begins=60)

    assert world.plans().started() == ["short"]


def test_an_unused_guarantee_is_lent_by_weight() -> None:
    world = World()
    world.has_nodes("n1", gpus=8)
    world.has_queue("owner", guaranteed=4)
    world.has_queue("a", weight=3)
    world.has_queue("b", weight=1)
    world.submits_many("b", 8, queue="b", user="bob")
    world.submits_many("a", 8, queue="a", user="ann")

    outcome = world.plans()

    assert (len(outcome.started("a")), len(outcome.started("b"))) == (6, 2)


def test_others_leave_alone_what_the_owner_does_not_lend() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6, lend=2)
    world.submits_many("guest", 10)

    outcome = world.plans()

    assert len(outcome.started("guest")) == 6
    assert isinstance(outcome.why(outcome.waiting()[0]), BorrowedOut)


def test_what_is_not_lent_is_there_for_its_owner_without_preemption() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("prod", guaranteed=6, lend=2)
    world.submits_many("guest", 10)
    world.goes_on()
    world.submits_many("p", 4, queue="prod", user="pat")

    outcome = world.plans()

    assert len(outcome.started("p")) == 4
    assert outcome.preempted() == []


def test_what_a_queue_does_not_lend_is_kept_again_when_its_job_has_to_leave() -> None:
    world = World(Policy(packing=Packing.SPREAD))
    world.has_nodes("n1", "n2", gpus=3)
    world.has_queue("owner", guaranteed=1, lend=0)
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.runs("victim", on="n1", gpus=2, queue="owner")
    world.submits("gang", tasks=2, gpus=2, job_class="urgent")
    world.submits("guest", gpus=2)

    cleared = world.goes_on(slowly=True).cleared()
    leaving = world.goes_on(slowly=True).waiting()
    world.stops("victim")

    assert (cleared, leaving) == (["gang"], ["gang", "guest"])
    assert world.plans().started() == ["gang"]


def test_a_queue_borrows_no_more_than_its_borrow_limit() -> None:
    world = World()
    world.has_nodes("n1", gpus=10)
    world.has_queue("research", guaranteed=4, borrow=2)
    world.submits_many("r", 10, queue="research")

    outcome = world.plans()

    assert len(outcome.started("r")) == 6
    why = outcome.why(outcome.waiting()[0])
    assert isinstance(why, BorrowedOut)
    assert (why.queue, why.available, why.asked) == (QueuePath("research"), 0, 1_000)


def test_the_limit_of_a_queue_binds_everything_below_it() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("acme", limit=4)
    world.has_queue("acme/nlp")
    world.has_queue("acme/vision/video")
    world.submits_many("n", 4, queue="acme/nlp")
    world.submits_many("v", 4, queue="acme/vision/video", user="vic")

    outcome = world.plans()

    assert len(outcome.started()) == 4
    why = outcome.why(outcome.waiting()[0])
    assert isinstance(why, OverLimit)
    assert why.queue == QueuePath("acme")


def test_a_guarantee_deep_in_the_tree_is_reclaimed_from_its_sister() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("acme/nlp", guaranteed=4)
    world.has_queue("acme/vision", guaranteed=4)
    world.runs_many("v", 8, on="n1", queue="acme/vision")
    world.submits_many("n", 4, queue="acme/nlp")

    outcome = world.plans()

    assert len(outcome.cleared()) == 4
    assert len(outcome.preempted()) == 4


def test_a_queue_runs_at_most_so_many_jobs() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("nlp", max_jobs=2)
    world.runs("one", on="n1", queue="nlp")
    world.submits_many("j", 3, queue="nlp")

    outcome = world.plans()

    assert len(outcome.started()) == 1
    assert outcome.why(outcome.waiting()[0]) == TooManyJobs(queue=QueuePath("nlp"), limit=2)


def test_max_jobs_of_a_queue_counts_the_queues_below_it() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("acme", max_jobs=2)
    world.has_queue("acme/nlp")
    world.has_queue("acme/vision")
    world.submits_many("n", 2, queue="acme/nlp")
    world.submits_many("v", 2, queue="acme/vision", user="vic")

    assert len(world.plans().started()) == 2


def test_a_quota_for_one_gpu_model_leaves_the_others_free() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.has_nodes("h1", gpus=4, model="H100-80GB", pool="h100")
    world.has_queue("nlp", quotas=(quota(limit=1, model="H100-80GB"),))
    world.submits_many("h", 4, queue="nlp", models=("H100-80GB",))
    world.submits_many("a", 4, queue="nlp", models=("A100-40GB",))

    outcome = world.plans()

    assert (len(outcome.started("h")), len(outcome.started("a"))) == (1, 4)


def test_a_job_that_takes_any_model_goes_where_its_queue_still_may() -> None:
    world = World()
    world.has_nodes("h1", gpus=4, model="H100-80GB", pool="h100")
    world.has_nodes("n1", gpus=4)
    world.has_queue("nlp", quotas=(quota(limit=0, pool="h100"),))
    world.submits("any", queue="nlp")

    assert world.plans().nodes("any") == ["n1"]


def test_mig_instances_are_counted_by_profile() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=("1g.5gb@0", "1g.5gb@1", "1g.5gb@2", "2g.10gb@4"))
    world.has_queue("nlp", quotas=(quota(profile="1g.5gb", limit=2),))
    world.submits_many("small", 3, queue="nlp", mig="1g.5gb")
    world.submits("large", queue="nlp", mig="2g.10gb")

    outcome = world.plans()

    assert len(outcome.started("small")) == 2
    assert outcome.started("large") == ["large"]


def test_shares_count_by_the_part_of_a_gpu_that_they_are() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("nlp", limit=1)
    world.submits_many("half", 3, queue="nlp", mps=500)

    assert len(world.plans().started("half")) == 2


def test_cpu_has_its_own_line_of_quota() -> None:
    world = World()
    world.has_nodes("n1", cpu=64)
    world.has_queue("nlp", quotas=(quota(of="cpu", limit=16),))
    world.submits_many("j", 3, queue="nlp", cpu=8)

    outcome = world.plans()

    assert len(outcome.started("j")) == 2
    why = outcome.why(outcome.waiting()[0])
    assert isinstance(why, OverLimit)
    assert (why.scope.meter, why.limit, why.asked) == (Meter.CPU, 16_000, 8_000)


def test_memory_has_its_own_line_of_quota() -> None:
    world = World()
    world.has_nodes("n1", memory_gib=512)
    world.has_queue("nlp", quotas=(quota(of="memory", limit=100),))
    world.submits_many("j", 3, queue="nlp", gpus=0, memory_gib=40)

    outcome = world.plans()

    assert len(outcome.started("j")) == 2
    assert isinstance(outcome.why(outcome.waiting()[0]), OverLimit)


def test_a_job_larger_than_its_limit_learns_that_it_will_never_start() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("nlp", limit=4)
    world.submits("big", gpus=8, queue="nlp")

    outcome = world.plans()

    assert isinstance(outcome.why("big"), OverLimit)
    assert outcome.expected("big") is NoEstimate.NEVER


def test_a_job_whose_queue_is_gone_says_so() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("lost", queue="gone")

    assert world.plans().why("lost") == NoSuchQueue(queue=QueuePath("gone"))


def test_what_was_lent_comes_back_by_itself_when_borrowers_end_in_time() -> None:
    world = World()
    world.has_nodes("n1", gpus=4)
    world.has_queue("prod", guaranteed=2)
    world.runs_many("guest", 4, on="n1")
    world.finishes("guest1", "guest2", state=JobState.COMPLETED)
    world.submits_many("p", 2, queue="prod")

    outcome = world.plans()

    assert len(outcome.started("p")) == 2
    assert outcome.preempted() == []
