from typing import Any

from muster.doors.kubernetes.pods.refreshed import refreshed


def node(status: str, at: str, **capacity: str) -> dict[str, Any]:
    ready = {
        "type": "Ready",
        "status": status,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
    return {
        "metadata": {"name": "n1", "labels": {}},
        "spec": {},
        "status": {"conditions": [ready], "capacity": capacity, "allocatable": capacity},
    }


def test_a_node_that_is_as_it_was_is_not_written_again() -> None:
    old = node("True", "09:00", cpu="8")

    assert refreshed(old, node("True", "10:00", cpu="8")) == old


def test_a_condition_that_changed_says_since_when() -> None:
    new = refreshed(node("True", "09:00"), node("False", "10:00"))

    assert new["status"]["conditions"][0]["lastTransitionTime"] == "10:00"


def test_labels_and_resources_that_others_wrote_stay() -> None:
    old = node("True", "09:00", **{"example.com/licences": "3", "nvidia.com/gpu": "2"})
    old["metadata"]["labels"] = {"rack": "a"}

    new = refreshed(old, node("True", "10:00", **{"nvidia.com/gpu": "1"}))

    assert new["metadata"]["labels"] == {"rack": "a"}
    assert new["status"]["capacity"] == {"example.com/licences": "3", "nvidia.com/gpu": "1"}
