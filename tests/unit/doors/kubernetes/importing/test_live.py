from typing import Any

from muster.doors.kubernetes.importing.kueue import local_queue_paths
from muster.doors.kubernetes.importing.live import queues_of, with_kueue, with_volcano
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.cluster import Pool
from muster.model.queue import Meter, Queue
from muster.model.site import Site
from muster.model.value import ClusterName, PoolName, QueuePath

A100 = PoolName("a100")


def kueue(kind: str, name: str, namespace: str = "", **spec: Any) -> JsonObject:
    about = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": about, "spec": spec}


def cluster_queue(name: str, *flavors: tuple[str, int], **spec: Any) -> JsonObject:
    listed = [
        {"name": flavor, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}
        for flavor, gpus in flavors
    ]
    return kueue("ClusterQueue", name, resourceGroups=[{"flavors": listed}], **spec)


def a_site() -> Site:
    default = QueuePath("default")
    return Site(
        queues={default: Queue(path=default)},
        pools={A100: Pool(name=A100, cluster=ClusterName("here"))},
        default_queue=default,
    )


def test_queues_of_kueue_stand_beside_those_that_are_there() -> None:
    objects = [
        cluster_queue("team", ("a100", 4), cohort="lab"),
        kueue("LocalQueue", "main", "ns", clusterQueue="team"),
    ]

    site = with_kueue(a_site(), [], objects)

    assert list(site.queues) == ["default", "lab", "lab/team", "lab/team/main"]
    (line,) = site.queues[QueuePath("lab/team")].quotas
    assert (line.scope.meter, line.scope.pool, line.guaranteed) == (Meter.GPU, A100, 4_000)
    assert local_queue_paths(objects) == {("ns", "main"): "lab/team/main"}


def test_flavors_that_are_no_pools_count_together_everywhere() -> None:
    found = queues_of([cluster_queue("team", ("spot", 4), ("on-demand", 2))], a_site().pools)

    (line,) = found[QueuePath("team")].quotas
    assert (line.scope.pool, line.guaranteed, line.limit) == (None, 6_000, 6_000)


def test_a_flavor_says_by_its_labels_which_pool_it_is() -> None:
    flavor = kueue("ResourceFlavor", "fast", nodeLabels={"muster.io/pool": "a100"})

    found = queues_of([flavor, cluster_queue("team", ("fast", 1))], a_site().pools)

    assert found[QueuePath("team")].quotas[0].scope.pool == A100


def test_a_queue_goes_with_its_object_and_others_stay() -> None:
    team = cluster_queue("team", ("a100", 4))
    site = with_kueue(a_site(), [], [team])

    assert list(with_kueue(site, [team], []).queues) == ["default"]


def test_what_kueue_has_no_word_for_stays_when_its_quota_changes() -> None:
    before = cluster_queue("team", ("a100", 4))
    path = QueuePath("team")
    site = a_site()
    site = with_kueue(site, [], [before])
    known = Queue(path=path, quotas=site.queues[path].quotas, max_jobs=7)
    site = Site(
        queues={**site.queues, path: known}, pools=site.pools, default_queue=site.default_queue
    )

    site = with_kueue(site, [before], [cluster_queue("team", ("a100", 8))])

    assert site.queues[path].max_jobs == 7
    assert site.queues[path].quotas[0].guaranteed == 8_000


def test_queues_of_volcano_stand_beside_those_that_are_there_and_go_again() -> None:
    lab = {"apiVersion": "scheduling.volcano.sh/v1beta1", **kueue("Queue", "lab", weight=2)}
    team = kueue("Queue", "team", parent="lab", capability={"nvidia.com/gpu": 4})

    site = with_volcano(a_site(), [], [lab, team])

    assert list(site.queues) == ["default", "lab", "lab/team"]
    (line,) = site.queues[QueuePath("lab/team")].quotas
    assert (line.scope.meter, line.limit) == (Meter.GPU, 4_000)
    assert site.queues[QueuePath("lab")].weight == 2
    assert list(with_volcano(site, [lab, team], []).queues) == ["default"]
