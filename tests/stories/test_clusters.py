"""Several clusters: tried in order or by price, and never spanned."""

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
