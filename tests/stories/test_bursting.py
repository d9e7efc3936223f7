"""Jobs move to a cheaper cluster when too much waits for theirs, by rule and not by chance."""

from muster.model.burst import Burst
from muster.model.policy import Policy
from muster.model.value import MINUTE, ClassName, ClusterName, Duration, replace
from muster.schedule.verify import violations
from stories.world import World

AKS, GKE, TUNING = ClusterName("aks"), ClusterName("gke"), ClassName("tuning")
RULE = Burst(preferred=AKS, to=GKE, classes=(TUNING,), over_gpu_hours=10)


def two_clouds(*rules: Burst, here: int = 4, there: int = 2) -> World:
    """One node of 8 GPUs in each, at these prices for a GPU-hour; the first one is full."""
    world = World(Policy(bursts=rules))
    world.has_class("tuning")
    for order, (name, price) in enumerate((("aks", here), ("gke", there))):
        world.has_cluster(name, order=order)
        world.has_pool(f"{name}-a100", cluster=name, price=price)
        world.has_nodes(f"{name}1", pool=f"{name}-a100")
    world.runs("all", on="aks1", gpus=8)
    return world


def backlog(world: World) -> None:
    """16 GPU-hours wait for the preferred cluster, and do not move."""
    world.submits("training", gpus=8, minutes=120)


def test_r231_when_aks_is_full_tuning_jobs_burst_to_gke_under_the_70_percent_rule() -> None:
    world = two_clouds(RULE)
    backlog(world)
    world.submits_many("trial", 3, job_class="tuning", gpus=1, minutes=60)

    outcome = world.plans()

    assert outcome.started() == ["trial1", "trial2", "trial3"]
    assert outcome.cluster("trial1") == "gke"
    assert outcome.waiting() == ["training"]


def test_nothing_moves_while_little_waits() -> None:
    world = two_clouds(RULE)
    world.submits("trial", job_class="tuning", minutes=60)

    outcome = world.plans()

    assert outcome.waiting() == ["trial"]
    assert "when more than 10 GPU-hours wait for aks: now 1" in outcome.explained("trial").text


def test_a_cluster_that_is_not_cheap_enough_is_left_alone() -> None:
    world = two_clouds(RULE, there=3)
    backlog(world)
    world.submits("trial", job_class="tuning", minutes=60)

    outcome = world.plans()

    assert outcome.started() == []
    assert "would cost 3.00 there, more than 70% of 4.00" in outcome.explained("trial").text


def test_what_moving_costs_counts_with_the_price() -> None:
    transfer = replace(RULE, transfer=Duration(30 * MINUTE))
    world = two_clouds(transfer)
    backlog(world)
    world.submits("short", job_class="tuning", minutes=60)
    world.submits("long", job_class="tuning", minutes=600)

    assert world.plans().started() == ["long"]


def test_a_job_that_ran_before_pays_for_starting_over() -> None:
    world = two_clouds(RULE)
    backlog(world)
    world.has_nodes("aks2", pool="aks-a100")
    world.runs("stopped", on="aks2", job_class="tuning", minutes=60, restart_minutes=60)
    world.loses("aks2")

    assert "stopped" in world.plans().waiting()


def test_jobs_that_fit_where_they_belong_stay_there() -> None:
    world = two_clouds(RULE)
    backlog(world)
    world.has_nodes("aks2", pool="aks-a100", gpus=1)
    world.submits("trial", job_class="tuning", minutes=60)

    assert world.plans().cluster("trial") == "aks"


def test_who_names_a_cluster_has_decided() -> None:
    world = two_clouds(RULE)
    world.submits("there", clusters=("gke",))
    world.submits("either", clusters=("aks", "gke"))

    assert world.plans().started() == ["there", "either"]


def test_a_job_that_the_preferred_cluster_could_never_run_is_not_kept_waiting_for_it() -> None:
    world = two_clouds(RULE)
    world.has_nodes("gke2", pool="gke-a100", model="H100-80GB")
    world.submits("h100", models=("H100-80GB",))

    assert world.plans().cluster("h100") == "gke"


def test_a_cluster_without_a_price_is_not_left_for_another() -> None:
    world = two_clouds(RULE, here=0, there=0)
    backlog(world)
    world.submits("trial", job_class="tuning", minutes=60)

    assert "trial" in world.plans().waiting()


def test_a_plan_that_moves_a_job_against_the_rules_is_faulted() -> None:
    free, ruled = two_clouds(), two_clouds(RULE)
    for world in (free, ruled):
        world.submits("trial", job_class="tuning", minutes=60)
    moved = free.plans()

    found = violations(moved.snapshot, replace(moved.plan, policy=ruled.policy))

    assert [each.rule for each in found] == ["bursting"]


def test_without_a_rule_jobs_go_wherever_there_is_room() -> None:
    world = two_clouds()
    world.submits("any", gpus=8)

    assert world.plans().cluster("any") == "gke"
