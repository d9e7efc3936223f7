"""Job classes: priority, ceilings, time, and where their jobs may run."""

from muster.model.plan import NoEstimate
from muster.model.queue import Ceiling
from muster.model.reason import NoSuchClass, OverClassLimit, TooLong
from muster.model.value import MINUTE, ClassName, Duration
from stories.world import World


def test_a_class_with_priority_goes_first() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_class("urgent", priority=100)
    world.submits("usual")
    world.passes(hours=1)
    world.submits("urgent", job_class="urgent")

    assert world.plans().started() == ["urgent"]


def test_a_class_below_normal_goes_last() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_class("scavenger", priority=-100)
    world.submits("patient", job_class="scavenger")
    world.passes(hours=1)
    world.submits("usual")

    assert world.plans().started() == ["usual"]


def test_one_user_holds_at_most_so_many_gpus_in_a_class() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("debug", per_user=Ceiling(gpu_milli=2_000))
    world.submits_many("a", 3, user="ann", job_class="debug")
    world.submits("b", user="bob", job_class="debug")

    outcome = world.plans()

    assert (len(outcome.started("a")), len(outcome.started("b"))) == (2, 1)
    why = outcome.why(outcome.waiting()[0])
    assert isinstance(why, OverClassLimit)
    assert (why.limit, why.used, why.asked) == (2_000, 2_000, 1_000)


def test_what_already_runs_counts_toward_the_ceiling_of_a_class() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("debug", per_user=Ceiling(gpu_milli=2_000))
    world.runs("running", on="n1", gpus=2, job_class="debug")
    world.submits("more", job_class="debug")
    world.submits("other")

    assert world.plans().started() == ["other"]


def test_one_user_runs_at_most_so_many_jobs_in_a_class() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("debug", per_user=Ceiling(jobs=1))
    world.submits_many("j", 3, job_class="debug")

    outcome = world.plans()

    assert outcome.started() == ["j1"]
    assert isinstance(outcome.why("j2"), OverClassLimit)


def test_one_queue_holds_at_most_so_much_in_a_class() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("nlp")
    world.has_class("debug", per_queue=Ceiling(gpu_milli=2_000))
    world.submits_many("n", 3, queue="nlp", job_class="debug")
    world.submits_many("r", 3, user="bob", job_class="debug")

    outcome = world.plans()

    assert (len(outcome.started("n")), len(outcome.started("r"))) == (2, 2)


def test_cpu_and_memory_have_ceilings_too() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("thin", per_user=Ceiling(cpu_milli=8_000, memory_mib=16_384))
    world.submits("too_many_cores", job_class="thin", gpus=0, cpu=9)
    world.submits("too_much_memory", job_class="thin", gpus=0, memory_gib=17)
    world.submits("fine", job_class="thin", gpus=0, cpu=8, memory_gib=16)

    outcome = world.plans()

    assert outcome.started() == ["fine"]
    assert isinstance(outcome.why("too_many_cores"), OverClassLimit)
    assert isinstance(outcome.why("too_much_memory"), OverClassLimit)


def test_a_job_longer_than_its_class_allows_never_starts() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("debug", max_minutes=30)
    world.submits("short", job_class="debug", minutes=30)
    world.submits("long", job_class="debug", minutes=60)

    outcome = world.plans()

    assert outcome.started() == ["short"]
    assert outcome.why("long") == TooLong(
        asked=Duration(60 * MINUTE), allowed=Duration(30 * MINUTE)
    )
    assert outcome.expected("long") is NoEstimate.NEVER


def test_a_job_without_a_time_limit_does_not_slip_into_a_class_that_has_one() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("debug", max_minutes=30)
    world.submits("endless", job_class="debug")

    assert isinstance(world.plans().why("endless"), TooLong)


def test_the_default_time_of_a_pool_stands_in_for_a_missing_limit() -> None:
    world = World()
    world.has_pool("main", default_minutes=20)
    world.has_nodes("n1")
    world.has_class("debug", max_minutes=30)
    world.submits("unsaid", job_class="debug")

    assert world.plans().started() == ["unsaid"]


def test_a_pool_takes_no_job_longer_than_it_allows() -> None:
    world = World()
    world.has_pool("short", max_minutes=60)
    world.has_nodes("s1", pool="short")
    world.has_nodes("n1")
    world.submits("long", minutes=120)
    world.submits("long_in_short", minutes=120, pools=("short",))

    outcome = world.plans()

    assert outcome.nodes("long") == ["n1"]
    assert isinstance(outcome.why("long_in_short"), TooLong)


def test_a_spot_only_class_runs_in_spot_pools_alone() -> None:
    world = World()
    world.has_pool("cheap", spot=True)
    world.has_nodes("s1", pool="cheap", gpus=1)
    world.has_nodes("n1", gpus=1)
    world.has_class("scavenger", spot_only=True)
    world.submits_many("j", 2, job_class="scavenger")

    outcome = world.plans()

    assert outcome.started() == ["j1"]
    assert outcome.nodes("j1") == ["s1"]


def test_a_job_keeps_off_spot_unless_it_says_otherwise() -> None:
    world = World()
    world.has_pool("cheap", spot=True)
    world.has_nodes("s1", pool="cheap", gpus=1)
    world.submits("usual")
    world.submits("brave", spot="allowed")

    assert world.plans().started() == ["brave"]


def test_a_job_may_insist_on_spot() -> None:
    world = World()
    world.has_pool("cheap", spot=True)
    world.has_nodes("n1")
    world.has_nodes("s1", pool="cheap")
    world.submits("thrifty", spot="only")

    assert world.plans().nodes("thrifty") == ["s1"]


def test_a_job_whose_class_is_gone_says_so() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("lost", job_class="gone")

    assert world.plans().why("lost") == NoSuchClass(job_class=ClassName("gone"))
