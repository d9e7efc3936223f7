"""What the objects of an attempt are called, where they are, and in what image they run."""

import pytest

from muster.backends.kubernetes.manifest import Manner, devices_of, name_of
from muster.backends.kubernetes.pods import Key
from muster.model.cluster import Node
from muster.model.gpu import MpsShare, Slice, TimeShare
from muster.model.placement import DeviceShare, Placement
from muster.model.resources import Resources
from muster.model.value import ClusterName, DeviceId, NodeId, PoolName, QueuePath, replace

KEY = Key(site="a1", job=7, attempt=2, seal="mine")
MANNER = Manner(
    namespace="jobs",
    image="plain",
    namespaces={QueuePath("acme/nlp"): "nlp"},
    images={QueuePath("acme"): "torch"},
)


def test_a_name_says_whose_it_is_and_cannot_be_told_without_the_secret() -> None:
    name = name_of(KEY)

    assert name.startswith("muster-a1-7-2-")
    assert name == name_of(KEY)
    assert name != name_of(replace(KEY, seal="theirs"))


def test_the_names_of_two_attempts_have_nothing_in_common_at_their_ends() -> None:
    assert name_of(KEY)[-12:] != name_of(replace(KEY, attempt=3))[-12:]


def test_what_is_said_of_a_queue_holds_for_those_below_it() -> None:
    for queue, found in {
        "acme": ("jobs", "torch"),
        "acme/nlp": ("nlp", "torch"),
        "acme/nlp/eval": ("nlp", "torch"),
        "acme/nlpx": ("jobs", "torch"),
        "lab": ("jobs", "plain"),
    }.items():
        path = QueuePath(queue)
        assert (MANNER.namespace_of(path), MANNER.image_of(path)) == found


@pytest.mark.parametrize("part", [TimeShare(replicas=4), MpsShare(milli=250)])
@pytest.mark.parametrize(
    ("product", "name"),
    [("A100-SXM4-40GB-SHARED", "nvidia.com/gpu"), ("A100-SXM4-40GB", "nvidia.com/gpu.shared")],
)
def test_a_part_of_a_gpu_is_asked_for_by_the_name_that_the_node_has_for_it(
    part: Slice, product: str, name: str
) -> None:
    node = Node(
        id=NodeId("n1"),
        cluster=ClusterName("pods"),
        pool=PoolName("pods"),
        cpu_milli=1,
        memory_mib=1,
        labels={"nvidia.com/gpu.product": product},
    )
    share = DeviceShare(device=DeviceId("n1/gpu0"), slice=part)
    placement = Placement(
        group="", index=0, node=node.id, pool=node.pool, amount=Resources(), devices=(share,)
    )

    assert devices_of(placement, node) == {name: 1}
