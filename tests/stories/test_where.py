"""Which nodes: labels, taints, lists, neighbours, GPU models, health."""

from muster.model.plan import NoEstimate
from muster.model.reason import NeverFits, NoRoom, NoSuchPool
from stories.words import group
from stories.world import World


def test_a_job_lands_on_a_node_with_the_label_it_needs() -> None:
    world = World()
    world.has_nodes("n1", labels={"disk": "hdd"})
    world.has_nodes("n2", labels={"disk": "ssd"})
    world.submits("job", needs=("disk=ssd|nvme",))

    assert world.plans().nodes("job") == ["n2"]


def test_a_job_keeps_off_a_label_it_does_not_want() -> None:
    world = World()
    world.has_nodes("n1", labels={"disk": "hdd"})
    world.has_nodes("n2", labels={"disk": "ssd"})
    world.has_nodes("n3", labels={"old": "yes"})
    world.submits("not_hdd", needs=("disk!=hdd", "!old"))
    world.submits("any_disk", needs=("disk", "disk!=ssd"))

    outcome = world.plans()

    assert (outcome.nodes("not_hdd"), outcome.nodes("any_disk")) == (["n2"], ["n1"])


def test_a_label_that_no_node_has_is_reported_as_never() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("job", needs=("disk=ssd",))

    outcome = world.plans()

    assert outcome.why("job") == NeverFits(group="main", wanted=1, at_most=0)
    assert outcome.expected("job") is NoEstimate.NEVER


def test_a_preferred_label_is_followed_where_there_is_room() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_nodes("n2", labels={"disk": "ssd"}, gpus=1)
    world.submits("first", prefers=("disk=ssd",))
    world.submits("second", prefers=("disk=ssd",))

    outcome = world.plans()

    assert (outcome.nodes("first"), outcome.nodes("second")) == (["n2"], ["n1"])


def test_a_taint_keeps_off_who_does_not_tolerate_it() -> None:
    world = World()
    world.has_nodes("n1", taints=("team=vision",), gpus=2)
    world.submits("stranger")
    world.submits("other_team", tolerates=("team=nlp",))
    world.submits("member", tolerates=("team=vision",))
    world.submits("anybody", tolerates=("*",))

    assert world.plans().started() == ["member", "anybody"]


def test_every_taint_of_a_node_must_be_tolerated() -> None:
    world = World()
    world.has_nodes("n1", taints=("team=vision", "flaky"))
    world.submits("one", tolerates=("team",))
    world.submits("both", tolerates=("team", "flaky"))

    assert world.plans().started() == ["both"]


def test_a_job_names_the_nodes_it_wants_and_those_it_does_not() -> None:
    world = World()
    world.has_nodes("n1", "n2", "n3")
    world.submits("here", only_on=("n2",))
    world.submits("not_there", not_on=("n1", "n2"))

    outcome = world.plans()

    assert (outcome.nodes("here"), outcome.nodes("not_there")) == (["n2"], ["n3"])


def test_a_job_lands_beside_the_job_it_wants_to_be_near() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("cache", on="n2", gpus=0, cpu=1, labels={"app": "cache"})
    world.submits("reader", near=("app=cache",))

    assert world.plans().nodes("reader") == ["n2"]


def test_near_may_mean_the_same_rack() -> None:
    world = World()
    world.has_nodes("n1", where=("z", "r1"))
    world.has_nodes("n2", "n3", where=("z", "r2"))
    world.runs("cache", on="n2", gpus=8, labels={"app": "cache"})
    world.submits("reader", near=("app=cache@rack",))

    assert world.plans().nodes("reader") == ["n3"]


def test_the_first_of_its_kind_may_go_anywhere_and_the_second_follows() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.submits_many("w", 2, labels={"app": "web"}, near=("app=web",))

    outcome = world.plans()

    assert outcome.started() == ["w1", "w2"]
    assert outcome.nodes("w1") == outcome.nodes("w2")


def test_a_job_that_nobody_is_near_to_waits() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("reader", near=("app=cache",))

    assert world.plans().waiting() == ["reader"]


def test_a_job_that_nobody_is_near_to_is_not_promised_a_time() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("reader", near=("app=cache",))

    assert isinstance(world.plans().expected("reader"), NoEstimate)


def test_a_suspended_job_is_no_company() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.has_class("normal", mode="suspend")
    world.has_class("urgent", priority=100, preempts=("normal",))
    world.runs("web", on="n1", gpus=2, labels={"app": "web"})
    world.submits("inference", job_class="urgent")
    world.goes_on()
    world.submits("reader", near=("app=web",))

    outcome = world.goes_on()

    assert outcome.started() == ["inference"]
    assert outcome.waiting() == ["web", "reader"]


def test_a_job_keeps_apart_from_the_job_it_avoids() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("noisy", on="n1", labels={"app": "noisy"})
    world.submits("shy", apart=("app=noisy",))

    assert world.plans().nodes("shy") == ["n2"]


def test_keeping_apart_goes_both_ways() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("shy", on="n1", apart=("app=noisy",))
    world.submits("noisy", labels={"app": "noisy"})

    assert world.plans().nodes("noisy") == ["n2"]


def test_keeping_apart_may_mean_the_whole_rack() -> None:
    world = World()
    world.has_nodes("n1", "n2", where=("z", "r1"))
    world.runs("noisy", on="n1", labels={"app": "noisy"})
    world.submits("shy", apart=("app=noisy@rack",))

    assert world.plans().waiting() == ["shy"]


def test_a_rack_is_one_rack_whichever_pools_its_nodes_are_in() -> None:
    world = World()
    world.has_nodes("n1", where=("z", "r1"))
    world.has_nodes("h1", where=("z", "r1"), pool="h100")
    world.submits("shy", apart=("app=noisy@rack",))
    world.submits("noisy", labels={"app": "noisy"})

    outcome = world.plans()

    assert (outcome.started(), outcome.waiting()) == (["shy"], ["noisy"])


def test_replicas_that_avoid_each_other_land_on_different_nodes() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.submits_many("w", 3, labels={"app": "web"}, apart=("app=web",))

    outcome = world.plans()

    assert len(outcome.started()) == 2
    assert outcome.nodes("w1") != outcome.nodes("w2")


def test_an_exclusive_job_has_its_node_to_itself() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("other", on="n1")
    world.submits("alone", exclusive=True)
    world.submits("late")

    outcome = world.plans()

    assert outcome.nodes("alone") == ["n2"]
    assert outcome.nodes("late") == ["n1"]


def test_nobody_joins_an_exclusive_job_in_the_plan_that_starts_it() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_class("urgent", priority=100)
    world.submits("early")
    world.submits("late")
    world.submits("alone", exclusive=True, minutes=60, job_class="urgent")

    outcome = world.plans()

    assert (outcome.started(), outcome.waiting()) == (["alone"], ["early", "late"])


def test_nobody_joins_an_exclusive_job() -> None:
    world = World()
    world.has_nodes("n1")
    world.runs("alone", on="n1", exclusive=True)
    world.submits("late")

    assert world.plans().waiting() == ["late"]


def test_not_even_a_job_without_gpus_joins_an_exclusive_job() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("alone", exclusive=True)
    world.submits("small", gpus=0, cpu=1)

    assert world.plans().started() == ["alone"]


def test_tasks_of_an_exclusive_job_may_share_a_node_with_each_other() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("alone", tasks=8, exclusive=True)

    assert world.plans().nodes("alone") == ["n1"]


def test_a_group_puts_no_more_tasks_on_a_node_than_it_says() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.submits("thin", tasks=4, per_node=2)
    world.submits("too_thin", tasks=4, per_node=1)

    outcome = world.plans()

    assert outcome.nodes("thin") == ["n1", "n2"]
    assert isinstance(outcome.why("too_thin"), NoRoom | NeverFits)


def test_a_job_takes_one_of_the_gpu_models_it_accepts() -> None:
    world = World()
    world.has_nodes("n1")
    world.has_nodes("h1", model="H100-80GB", pool="h100")
    world.submits("picky", models=("H100-80GB", "H200-141GB"))
    world.submits("dreamer", models=("H200-141GB",))

    outcome = world.plans()

    assert outcome.nodes("picky") == ["h1"]
    assert isinstance(outcome.why("dreamer"), NeverFits)


def test_a_job_gets_gpus_with_the_memory_it_needs() -> None:
    world = World()
    world.has_nodes("n1", model="A100-40GB")
    world.has_nodes("n2", model="A100-80GB")
    world.submits("large", gpu_memory_gib=60)

    assert world.plans().nodes("large") == ["n2"]


def test_all_tasks_of_a_group_have_one_gpu_model() -> None:
    world = World()
    world.has_nodes("n1", gpus=2, model="A100-40GB")
    world.has_nodes("n2", gpus=2, model="A100-80GB")
    world.submits("mixed", tasks=3)
    world.submits("same", tasks=2)

    outcome = world.plans()

    assert outcome.started() == ["same"]
    assert len(outcome.nodes("same")) == 1


def test_groups_of_one_job_may_differ_in_gpu_model() -> None:
    world = World()
    world.has_nodes("n1", gpus=2, model="A100-40GB")
    world.has_nodes("n2", gpus=2, model="A100-80GB")
    world.submits("mixed", groups=(group("a", tasks=2), group("b", tasks=2)))

    assert world.plans().nodes("mixed") == ["n1", "n2"]


def test_a_drained_node_takes_nothing_new() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("old", on="n1")
    world.drains("n1")
    world.submits("new")

    outcome = world.plans()

    assert outcome.nodes("new") == ["n2"]
    assert outcome.preempted() == []


def test_a_node_that_reports_itself_again_changes_nothing() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("runs", minutes=60)
    world.submits("waits", needs=("disk=tape",))
    before = world.goes_on()

    world.restores("n1")

    assert world.goes_on().why("waits") == before.why("waits")


def test_a_drained_node_is_used_again_when_it_is_back() -> None:
    world = World()
    world.has_nodes("n1")
    world.drains("n1")
    world.submits("job")

    drained = world.goes_on()
    world.restores("n1")

    assert drained.waiting() == ["job"]
    assert world.plans().started() == ["job"]


def test_what_ran_on_a_lost_node_starts_elsewhere() -> None:
    world = World()
    world.has_nodes("n1", "n2")
    world.runs("job", on="n1", gpus=8)
    world.loses("n1")

    outcome = world.plans()

    assert outcome.nodes("job") == ["n2"]


def test_an_unhealthy_gpu_is_left_out() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.breaks("n1", device=0)
    world.submits_many("j", 2)

    outcome = world.plans()

    assert outcome.started() == ["j1"]
    assert [share.device for share in outcome.devices("j1")] == ["n1/1"]


def test_cpu_and_memory_of_a_node_are_not_given_twice() -> None:
    world = World()
    world.has_nodes("n1", gpus=8, cpu=16, memory_gib=100)
    world.submits("cores", cpu=12)
    world.submits("memory", memory_gib=60)
    world.submits("more_cores", cpu=8)
    world.submits("more_memory", memory_gib=60)

    assert len(world.plans().started()) == 2


def test_a_pool_that_does_not_exist_is_named() -> None:
    world = World()
    world.has_nodes("n1")
    world.submits("lost", pools=("tpu",))

    assert world.plans().why("lost") == NoSuchPool(name="tpu")


def test_pools_are_tried_in_the_order_the_job_gives() -> None:
    world = World()
    world.has_nodes("n1", gpus=1)
    world.has_nodes("b1", gpus=1, pool="b")
    world.submits_many("j", 2, pools=("b", "main"))

    outcome = world.plans()

    assert (outcome.nodes("j1"), outcome.nodes("j2")) == (["b1"], ["n1"])


def test_a_pool_with_a_list_of_users_takes_nobody_else() -> None:
    world = World()
    world.has_pool("open")
    world.has_pool("closed", users=("ann",))
    world.has_nodes("o1", pool="open", gpus=1)
    world.has_nodes("c1", pool="closed", gpus=1)
    world.submits("bobs", user="bob")
    world.submits("bobs_second", user="bob")
    world.submits("anns", user="ann")

    outcome = world.plans()

    assert outcome.nodes("bobs") == ["o1"]
    assert isinstance(outcome.why("bobs_second"), NoRoom)
    assert outcome.nodes("anns") == ["c1"]


def test_a_pool_of_a_queue_takes_the_queues_below_it_too() -> None:
    world = World()
    world.has_queue("a/x")
    world.has_queue("b")
    world.has_pool("closed", queues=("a",))
    world.has_nodes("c1", pool="closed")
    world.submits("below", queue="a/x")
    world.submits("outside", queue="b")

    outcome = world.plans()

    assert outcome.nodes("below") == ["c1"]
    assert outcome.why("outside") == NeverFits(group="main", wanted=1, at_most=0)


def test_nothing_starts_in_a_pool_that_is_closed_and_what_runs_goes_on() -> None:
    world = World()
    world.has_nodes("n1", gpus=2)
    world.submits("before")
    world.goes_on()

    world.has_pool("main", starts=False)
    world.submits("after")
    outcome = world.plans()

    assert outcome.preempted() == []
    assert isinstance(outcome.why("after"), NoSuchPool)
