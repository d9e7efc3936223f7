import json
from typing import Any

import pytest

from muster.doors.kubernetes.objects.older_autoscalers import newer_autoscaler, older_autoscaler

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
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
METRICS = "autoscaling.alpha.kubernetes.io/metrics"


def test_an_older_autoscaler_is_a_newer_one_and_back() -> None:
    new = newer_autoscaler(OLD)

    target = {"type": "Utilization", "averageUtilization": 80}
    assert new["apiVersion"] == "autoscaling/v2"
    assert new["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    assert "targetCPUUtilizationPercentage" not in new["spec"]
    assert older_autoscaler(new) == OLD


def test_what_only_v2_can_say_is_annotated_and_comes_back() -> None:
    new = newer_autoscaler(OLD)
    new["spec"]["metrics"].append(MEMORY)
    new["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 10}}
    current = {"averageUtilization": 40, "averageValue": "400m"}
    new["status"] = {
        "desiredReplicas": 1,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }

    old = older_autoscaler(new)

    assert json.loads(old["metadata"]["annotations"][METRICS]) == [MEMORY]
    assert old["spec"]["targetCPUUtilizationPercentage"] == 80
    assert old["status"]["currentCPUUtilizationPercentage"] == 40
    assert "conditions" not in old["status"]
    back = newer_autoscaler(old)
    assert back["spec"]["metrics"] == new["spec"]["metrics"]
    assert back["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert [each["type"] for each in back["status"]["conditions"]] == ["AbleToScale"]
    assert "annotations" not in back["metadata"]


@pytest.mark.parametrize(
    "said", ["nonsense", "[" * 5_000, '{"a": 1}', "5", '["text"]', '[{"resource": 5}]', "null"]
)
def test_an_annotation_that_says_nothing_of_use_stays_one(said: str) -> None:
    old = {**OLD, "metadata": {"name": "web", "annotations": {METRICS: said}}}

    new = newer_autoscaler(old)

    assert new["metadata"]["annotations"] == {METRICS: said}
    assert len(new["spec"]["metrics"]) == 1
