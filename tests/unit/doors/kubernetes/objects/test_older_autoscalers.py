from typing import Any

from muster.doors.kubernetes.objects.older_autoscalers import as_new, as_old

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
OLD: dict[str, Any] = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "maxReplicas": 4,
        "scaleTargetRef": TARGET,
        "targetCPUUtilizationPercentage": 80,
    },
}


def test_an_older_autoscaler_is_a_newer_one_and_back() -> None:
    new = as_new(OLD)

    target = {"type": "Utilization", "averageUtilization": 80}
    assert new["apiVersion"] == "autoscaling/v2"
    assert new["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    assert "targetCPUUtilizationPercentage" not in new["spec"]
    assert as_old(new) == OLD


def test_a_list_is_converted_one_by_one() -> None:
    new = as_new(OLD)
    listed = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscalerList",
        "items": [{key: new[key] for key in ("metadata", "spec")}],
    }

    assert as_old(listed)["items"] == [OLD]


def test_other_things_stay_as_they_are() -> None:
    assert as_new({"kind": "Pod"}) == {"kind": "Pod"}
    assert as_old({"kind": "Status", "apiVersion": "v1"}) == {"kind": "Status", "apiVersion": "v1"}
