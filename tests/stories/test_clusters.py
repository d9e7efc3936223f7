"""Several clusters: tried in order or by price, and never spanned."""

from muster.model.cluster import Abilities
from muster.model.policy import Policy, Preference
from muster.model.reason import NoSuchPool
from stories.words import group
from stories.world import World


def two_clusters(prefer: Preference = Preference.ORDER) -> World:
    """A home cluster that comes first, and a cheaper one elsewhere."""
    world = World(Policy(prefer=prefer))
    world.has_pool("main", price=3)
    world.has_nodes("n1", gpus=4)
    world.has_cluster("away", order=1)
    world.has_pool("far", cluster="away", price=1)
    world.has_nodes("f1", gpus=4, pool="far")
    return world


def test_clusters_are_tried_in_their_order() -> None:
    world = two_clusters()
    world.submits_many("j", 2, gpus=4)

    outcome = world.plans()

    assert (outcome.cluster("j1"), outcome.cluster("j2")) == ("c", "away")


def test_policy_may_prefer_the_cheaper_cluster() -> None:
    world = two_clusters(Preference.PRICE)
    world.submits_many("j", 2, gpus=4)

    outcome = world.plans()

    assert (outcome.cluster("j1"), outcome.cluster("j2")) == ("away", "c")


def test_a_job_may_give_its_own_order_of_clusters() -> None:
    world = two_clusters()
    world.submits("job", clusters=("away", "c"))

    assert world.plans().cluster("job") == "away"


def test_a_job_never_spans_clusters() -> None:
    world = two_clusters()
    world.submits("wide", tasks=8)

    assert world.plans().waiting() == ["wide"]


def test_groups_of_one_job_never_span_clusters_either() -> None:
    world = two_clusters()
    world.submits("wide", groups=(group("a", tasks=4), group("b", tasks=4)))

    assert world.plans().waiting() == ["wide"]


def test_an_unreachable_cluster_starts_nothing() -> None:
    world = two_clusters()
    world.has_cluster("c", reachable=False)
    world.submits("any")
    world.submits("there", clusters=("c",))

    outcome = world.plans()

    assert outcome.cluster("any") == "away"
    assert outcome.why("there") == NoSuchPool(name="c")


def test_a_cluster_that_does_not_exist_is_named() -> None:
    world = two_clusters()
    world.submits("lost", clusters=("mars",))

    assert world.plans().why("lost") == NoSuchPool(name="mars")


def test_a_quota_counts_all_clusters() -> None:
    world = two_clusters()
    world.has_queue("nlp", limit="50%")
    world.submits_many("j", 8, queue="nlp")

    assert len(world.plans().started("j")) == 4


def test_a_job_goes_only_where_it_can_be_run() -> None:
    world = two_clusters()
    world.has_cluster("away", order=-1, abilities=Abilities(pods=False))
    world.submits("plain", gpus=4)
    world.submits("pods", gpus=4, takes=("pods",))
    world.submits("more pods", gpus=1, takes=("pods",))

    outcome = world.plans()

    assert (outcome.cluster("plain"), outcome.cluster("pods")) == ("away", "c")
    assert outcome.waiting() == ["more pods"]


def test_a_cluster_that_wants_images_runs_no_plain_commands() -> None:
    world = two_clusters()
    world.has_cluster("away", order=-1, abilities=Abilities(commands=False))
    world.submits("plain")
    world.submits("boxed", takes=("images",))

    outcome = world.plans()

    assert (outcome.cluster("plain"), outcome.cluster("boxed")) == ("c", "away")


def test_a_cluster_that_cannot_run_a_waiting_job_is_named() -> None:
    world = two_clusters()
    world.has_cluster("away", order=1, abilities=Abilities(pods=False))
    world.submits("first", gpus=4, takes=("pods",))
    world.submits("second", gpus=4, takes=("pods",))

    text = world.plans().explained("second").text

    assert "Cluster away is left out: it runs no pods of Muster's Kubernetes API." in text
