"""What a tenant may see."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.queue import is_within
from muster.model.value import QueuePath
from muster.telemetry.family import Family, FamilyKind, Labels, Point
from muster.telemetry.subtree import within, without_names


def of_queue(path: str) -> Labels:
    return (("queue", path),)


def of_holder(path: str, uuid: str) -> Labels:
    return (("UUID", uuid), ("queue", path))


def of_device(uuid: str) -> Labels:
    return (("UUID", uuid),)


PATHS = st.sampled_from(["a", "a/b", "ab", "a/b/c", "b", "b/a", ""])
DEVICES = st.sampled_from(["GPU-1", "GPU-2"])
LABELS = st.one_of(
    st.builds(of_queue, PATHS),
    st.builds(of_holder, PATHS, DEVICES),
    st.builds(of_device, DEVICES),
    st.just(()),
    st.just((("cluster", "c"),)),
)


def family(*labels: Labels) -> Family:
    points = tuple(Point(each, 1) for each in labels)
    return Family(name="x", kind=FamilyKind.GAUGE, help="", points=points)


@given(st.lists(LABELS), PATHS.filter(bool), st.sets(DEVICES))
def test_only_ones_own_subtree_and_devices_are_seen(
    labels: list[Labels], queue: str, devices: set[str]
) -> None:
    own = {(each, "") for each in devices}

    found = [
        point for each in within([family(*labels)], QueuePath(queue), own) for point in each.points
    ]

    for point in found:
        told = dict(point.labels)
        assert "queue" in told or "UUID" in told
        if "queue" in told:
            assert is_within(QueuePath(told["queue"]), QueuePath(queue))
        else:
            assert (told["UUID"], "") in own


def test_an_instance_is_not_its_whole_gpu() -> None:
    part = family((("UUID", "GPU-1"), ("GPU_I_ID", "3")))

    assert list(within([part], QueuePath("a"), {("GPU-1", "")})) == []
    assert list(within([part], QueuePath("a"), {("GPU-1", "3")})) == [part]


def test_users_of_private_queues_are_not_named() -> None:
    told = family((("user", "ada"), ("queue", "secret")), (("user", "bob"), ("queue", "open")))

    (shown,) = without_names([told], {QueuePath("secret")})

    assert [dict(point.labels)["user"] for point in shown.points] == ["", "bob"]
