"""Nothing waits unexplained: each job's user reads why, who is in its way, and what would help."""

from muster.model.explanation import (
    AnyNode,
    AnyPool,
    AsSlice,
    FewerGpus,
    FewerTasks,
    NoTopology,
    OnSpot,
    OtherModel,
    OtherQueue,
    Shorter,
)
from muster.model.gpu import Mig, MpsShare
from muster.model.plan import NoEstimate
from muster.model.value import HOUR, MINUTE, Duration, GpuModel, Instant, QueuePath
from stories.scene import NEW_YEAR
from stories.world import World


def test_a_job_that_starts_learns_where() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.submits("gang", tasks=2, gpus=8)

    explanation = world.plans().explained("gang")

    assert explanation.text == "Starts now on n1 and n2 with 16 GPUs."
    assert (explanation.expected, explanation.blockers, explanation.alternatives) == (
        NEW_YEAR,
        (),
        (),
    )


def test_a_job_that_runs_learns_since_when() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("train", on="n1", gpus=4, ran=90)

    explanation = world.plans().explained("train")

    assert explanation.text == "Runs on n1 with 4 GPUs; it started 1h 30m ago."
    assert explanation.decision is None


def test_four_gpus_instead_of_eight_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("long", on="n1", gpus=4, minutes=120)
    world.runs("short", on="n2", gpus=4, minutes=60)
    world.submits("big", gpus=8)

    outcome = world.plans()

    explanation = outcome.explained("big")
    assert explanation.text == "Needs 8 GPUs on one node; none of 2 usable nodes has that free."
    assert explanation.expected == Instant(NEW_YEAR + HOUR)
    assert outcome.blockers("big") == ["short"]
    assert [each.text for each in explanation.alternatives] == [
        "With 4 GPUs instead of 8 it would start now."
    ]


def test_fewer_tasks_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3", "n4")
    world.runs("train", on="n4", gpus=8)
    world.submits("gang", tasks=4, gpus=8)

    outcome = world.plans()

    assert FewerTasks(tasks=3) in outcome.helps("gang")
    assert outcome.blockers("gang") == ["train"]


def test_another_model_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", model="H100-80GB")
    world.has_nodes("n2", model="A100-40GB")
    world.runs("train", on="n1", gpus=8)
    world.submits("picky", gpus=8, models=("H100-80GB",))

    outcome = world.plans()

    assert outcome.helps("picky") == [OtherModel(model=GpuModel("A100-40GB"))]


def test_a_model_with_too_little_memory_is_not_suggested() -> None:
    world = World()
    world.has_nodes("n1", model="H100-80GB")
    world.has_nodes("n2", model="A100-40GB")
    world.runs("train", on="n1", gpus=8)
    world.submits("picky", gpus=8, models=("H100-80GB",), gpu_memory_gib=80)

    assert world.plans().helps("picky") == []


def test_a_slice_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=("1g.5gb@0", "3g.20gb@4"))
    world.runs("other", on="n1", mig="3g.20gb")
    world.submits("whole")

    assert world.plans().helps("whole") == [AsSlice(slice=Mig(profile="1g.5gb"))]


def test_half_a_gpu_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, model="T4-16GB")
    world.runs("other", on="n1", mps=400)
    world.submits("whole")

    assert world.plans().helps("whole") == [AsSlice(slice=MpsShare(milli=500))]


def test_spot_capacity_would_start_now() -> None:
    world = World()
    world.has_pool("cheap", spot=True)
    world.has_nodes("n1")
    world.has_nodes("s1", pool="cheap")
    world.runs("train", on="n1", gpus=8)
    world.submits("job", gpus=8)

    assert world.plans().helps("job") == [OnSpot()]


def test_two_racks_instead_of_one_would_start_now() -> None:
    world = World()
    world.has_nodes("a1", "a2", where=("zone1", "a"))
    world.has_nodes("b1", "b2", where=("zone1", "b"))
    world.runs("one", on="a1", gpus=8)
    world.runs("two", on="b1", gpus=8)
    world.submits("gang", tasks=2, gpus=8, together="rack")

    assert NoTopology() in world.plans().helps("gang")


def test_other_nodes_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("train", on="n1", gpus=8)
    world.submits("tied", gpus=8, only_on=("n1",))

    outcome = world.plans()

    assert outcome.helps("tied") == [AnyNode()]
    assert outcome.blockers("tied") == ["train"]


def test_another_pool_would_start_now() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_nodes("m1", pool="second")
    world.runs("train", on="n1", gpus=8)
    world.submits("tied", gpus=8, pools=("main",))

    assert world.plans().helps("tied") == [AnyPool()]


def test_a_shorter_job_would_start_now() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("train", on="n1", gpus=4, minutes=60)
    world.submits("big", gpus=8, minutes=60)
    world.submits("long", minutes=90)

    outcome = world.plans()

    assert outcome.helps("long") == [Shorter(time_limit=HOUR)]
    assert outcome.blockers("long") == ["big"]


def test_a_job_that_ends_before_the_maintenance_would_start_now() -> None:
    world = World()
    world.has_nodes("n1")
    world.reserves("repair", nodes="n1", begins=45, ends=60)
    world.submits("long", minutes=90)

    outcome = world.plans()

    assert outcome.helps("long") == [Shorter(time_limit=Duration(45 * MINUTE))]


def test_a_limit_names_the_queue_the_numbers_and_who_holds_most() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.has_queue("nlp", limit=10)
    world.has_queue("nlp/speech")
    world.runs("one", on="n1", gpus=1, queue="nlp")
    world.runs("three", on="n1", gpus=3, queue="nlp/speech")
    world.runs("stranger", on="n1", gpus=4)
    world.submits("seven", gpus=7, queue="nlp")

    outcome = world.plans()

    text = "Queue nlp may hold 10 GPUs at once; it holds 4 GPUs, and this job asks for 7 GPUs."
    assert outcome.explained("seven").text == text
    assert outcome.blockers("seven") == ["three", "one"]


def test_another_queue_would_start_now() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.has_queue("nlp", limit=4)
    world.submits("five", gpus=5, queue="nlp")

    found = world.plans().helps("five")

    assert found == [FewerGpus(gpus=2), OtherQueue(queue=QueuePath("root"))]


def test_a_job_behind_its_own_array_learns_which_part_runs() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits_array("sweep", parts=2, at_once=1)

    outcome = world.plans()

    assert outcome.explained("sweep[1]").text == "Array 1 may run 1 job at once, and does."
    assert outcome.blockers("sweep[1]") == ["sweep[0]"]


def test_a_dependency_names_the_other_job_and_suggests_nothing() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("prepare", on="n1")
    world.submits("train", gpus=16, after="afterok:prepare")

    outcome = world.plans()

    explanation = outcome.explained("train")
    assert explanation.text == "Waits until job 1 has completed."
    assert (explanation.expected, explanation.alternatives) == (NoEstimate.DEPENDENCY, ())
    assert outcome.blockers("train") == ["prepare"]


def test_a_held_job_learns_who_holds_it() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("job", held=True)

    explanation = world.plans().explained("job")

    assert explanation.text == "Held by admin until it is released."
    assert (explanation.expected, explanation.blockers, explanation.alternatives) == (
        NoEstimate.HELD,
        (),
        (),
    )


def test_a_job_learns_that_its_nodes_are_drained() -> None:
    world = World()
    world.has_nodes("n1")
    world.drains("n1")
    world.submits("job")

    text = "Needs 1 GPU on one node; no node that it may use is up."
    assert world.plans().explained("job").text == text


def test_a_job_that_can_never_fit_learns_what_would() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("huge", gpus=16)

    explanation = world.plans().explained("huge")

    text = "Needs 16 GPUs on one node; no node that it may use has that much, even empty."
    assert (explanation.text, explanation.expected) == (text, NoEstimate.NEVER)
    assert [each.change for each in explanation.alternatives] == [FewerGpus(gpus=8)]


def test_a_job_learns_who_makes_room_for_it() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("urgent", priority=10, preempts=("normal",))
    world.runs("train", on="n1", gpus=8)
    world.submits("serve", gpus=8, job_class="urgent")

    asked = world.goes_on(slowly=True)
    stopping = world.plans()

    assert asked.explained("serve").text.startswith("Starts in 30s, when room is made by job 1,")
    assert asked.blockers("serve") == stopping.blockers("serve") == ["train"]


def test_a_job_learns_that_another_starts_before_it_in_the_same_plan() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("first", gpus=8, minutes=60)
    world.submits("second", gpus=8)

    outcome = world.plans()

    assert outcome.blockers("second") == ["first"]
    assert outcome.explained("second").expected == Instant(NEW_YEAR + HOUR)


def test_only_those_are_named_whose_leaving_would_make_room() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("tiny", on="n1", gpus=1, minutes=10)
    world.runs("small", on="n1", gpus=4, minutes=20)
    world.runs("large", on="n1", gpus=3, minutes=60)
    world.submits("job", gpus=4)

    assert world.plans().blockers("job") == ["small"]


def test_a_slice_waits_for_the_tenant_in_its_place() -> None:
    world = World()
    world.has_nodes("n1", gpus=1, mig=("3g.20gb@0", "2g.10gb@4"))
    world.runs("left", on="n1", mig="3g.20gb", minutes=60)
    world.runs("right", on="n1", mig="2g.10gb", minutes=90)
    world.submits("slice", mig="4g.20gb")

    assert world.plans().blockers("slice") == ["left"]


def test_a_gang_learns_who_is_in_its_rack() -> None:
    world = World()
    world.has_nodes("a1", "a2", where=("zone1", "a"))
    world.has_nodes("b1", "b2", where=("zone1", "b"))
    world.runs("late", on="a1", gpus=8, minutes=90)
    world.runs("early", on="b1", gpus=2, minutes=30)
    world.runs("next", on="b2", gpus=2, minutes=60)
    world.submits("gang", tasks=2, gpus=8, together="rack")

    outcome = world.plans()

    assert outcome.blockers("gang") == ["early", "next"]
    assert outcome.expected("gang") == 60


def test_what_would_start_sooner_comes_after_what_would_start_now() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("short", on="n1", gpus=3, minutes=60)
    world.runs("long", on="n1", gpus=4, minutes=120)
    world.submits("big", gpus=8)

    explanation = world.plans().explained("big").alternatives

    assert [(each.change, each.starts_now) for each in explanation] == [
        (FewerGpus(gpus=1), True),
        (FewerGpus(gpus=4), False),
    ]
    assert explanation[1].text == "With 4 GPUs instead of 8 it is expected to start in 1h."


def test_a_job_is_told_which_queue_keeps_what_is_free() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_queue("nlp", guaranteed=4, lend=0)
    world.has_queue("demo", guaranteed=4)
    world.runs("mine", on="n1", queue="demo", gpus=4)
    world.submits("more", queue="demo", gpus=2)

    explanation = world.plans().explained("more")

    assert explanation.text == (
        "Queue demo may use or borrow 0 GPUs more; this job asks for 2 GPUs. "
        "4 GPUs are kept for nlp, and are not lent."
    )
