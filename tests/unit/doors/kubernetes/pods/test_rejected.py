import pytest

from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.rejected import rejected, rejection

NODE: JsonObject = {
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "8"}},
}


def a_pod(requests: JsonObject, **spec: object) -> JsonObject:
    container = {"name": "m", "resources": {"requests": requests}}
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [container], **spec},
    }


@pytest.mark.parametrize(
    ("pod", "reason", "text"),
    [
        (
            a_pod({"nvidia.com/gpu": "12"}),
            "UnexpectedAdmissionError",
            "Requested: 12, Available: 8",
        ),
        (a_pod({"cpu": "64"}), "OutOfcpu", "requested: 64000, used: 500, capacity: 2000"),
        (a_pod({"memory": "9Gi"}), "OutOfmemory", "capacity: 8589934592"),
        (a_pod({}, nodeSelector={"zone": "b"}), "NodeAffinity", "didn't match Pod's node affinity"),
    ],
)
def test_a_pod_that_can_never_run_on_its_node_is_rejected(
    pod: JsonObject, reason: str, text: str
) -> None:
    others = [a_pod({"cpu": "500m"})["spec"]]

    found = rejection(pod, NODE, others)

    assert found is not None
    assert found.reason == reason
    assert text in found.text
    assert rejected({**pod, "status": found.status(pod, "2026-11-16T09:42:10Z")}) == found


def test_a_pod_that_would_fit_once_others_have_left_waits() -> None:
    others = [a_pod({"nvidia.com/gpu": "8"})["spec"]]

    assert rejection(a_pod({"nvidia.com/gpu": "8"}), NODE, others) is None
