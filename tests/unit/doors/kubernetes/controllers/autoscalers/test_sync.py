from collections.abc import Mapping
from typing import Any

from muster.doors.kubernetes.controllers.autoscalers.readings import NoReadings, NotMeasuredError
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import KubernetesWorld, deployment, template

NO_METRICS = (
    "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API:"
    " the server could not find the requested resource (get pods.metrics.k8s.io)"
)


class Measured:
    """CPU time of all pods, in thousandths, as a test sets it."""

    def __init__(self, cpu_milli: int) -> None:
        self.cpu_milli = cpu_milli
        self.pods: list[str] = []

    def resource(self, _name: str, _namespace: str, /) -> Mapping[str, int]:
        return dict.fromkeys(self.pods, self.cpu_milli)

    def metric(self, name: str, _namespace: str, /) -> Mapping[str, int]:
        raise NotMeasuredError(f"no metric {name}")


def test_without_metrics_it_says_what_a_real_one_says() -> None:
    world = KubernetesWorld(NoReadings())
    world.create(deployment(replicas=3, template=asking("100m")))
    world.settles()
    for pod in world.pods():
        world.runs(pod)
    world.settles()

    scaler = world.create(autoscaler())
    world.settles()

    status = world.fresh(scaler)["status"]
    assert status["currentMetrics"] == [{"type": ""}]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 0)
    able, active = status["conditions"]
    assert (able["type"], able["reason"]) == ("AbleToScale", "SucceededGetScale")
    assert (active["type"], active["reason"]) == ("ScalingActive", "FailedGetResourceMetric")
    assert active["message"] == (
        "the HPA was unable to compute the replica count: failed to get cpu utilization:"
        f" {NO_METRICS}"
    )
    first, second = world.said(scaler)
    assert first == ("FailedGetResourceMetric", f"failed to get cpu utilization: {NO_METRICS}")
    assert second[0] == "FailedComputeMetricsReplicas"
    assert second[1] == (
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource"
        f" metric value: failed to get cpu utilization: {NO_METRICS}"
    )


def test_more_use_than_the_target_asks_for_more_replicas() -> None:
    world, web, scaler = scaled(cpu_milli=160, replicas=2)

    assert world.fresh(web)["spec"]["replicas"] == 4
    words = "cpu resource utilization (percentage of request) above target"
    assert world.said(scaler) == [("SuccessfulRescale", f"New size: 4; reason: {words}")]
    status = world.fresh(scaler)["status"]
    assert status["desiredReplicas"] == 4
    assert status["lastScaleTime"] == "2026-11-16T09:00:00Z"


def test_it_grows_at_most_to_four_or_twofold_every_fifteen_seconds() -> None:
    world, web, _ = scaled(cpu_milli=2_000, replicas=1, maxReplicas=50)
    assert world.fresh(web)["spec"]["replicas"] == 4

    world.passes(14)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 4

    world.passes(1)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 8


def test_a_new_one_takes_nothing_away_for_five_minutes() -> None:
    world, web, _ = scaled(cpu_milli=1, replicas=3)

    world.passes(299)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 3

    world.passes(15)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 1


def test_near_the_target_nothing_changes() -> None:
    world, web, scaler = scaled(cpu_milli=85, replicas=2)

    assert world.fresh(web)["spec"]["replicas"] == 2
    conditions = {
        each["type"]: each["reason"] for each in world.fresh(scaler)["status"]["conditions"]
    }
    assert conditions == {
        "AbleToScale": "ReadyForNewScale",
        "ScalingActive": "ValidMetricFound",
        "ScalingLimited": "DesiredWithinRange",
    }


def test_it_never_goes_beyond_its_bounds() -> None:
    world, web, scaler = scaled(cpu_milli=1000, replicas=3)

    assert world.fresh(web)["spec"]["replicas"] == 5
    limited = world.fresh(scaler)["status"]["conditions"][-1]
    assert (limited["type"], limited["reason"]) == ("ScalingLimited", "TooManyReplicas")


def test_it_waits_five_minutes_before_it_shrinks() -> None:
    readings = Measured(cpu_milli=80)
    world, web, scaler = scaled(readings=readings, replicas=4)
    readings.cpu_milli = 10

    world.passes(15)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 4
    able = world.fresh(scaler)["status"]["conditions"][0]
    assert able["reason"] == "ScaleDownStabilized"

    for _ in range(20):
        world.passes(15)
        world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 1


def test_a_behaviour_says_how_fast_it_may_shrink() -> None:
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
    down = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}
    readings = Measured(cpu_milli=10)
    world, web, _ = scaled(readings=readings, replicas=4, behavior={"scaleDown": down})
    assert world.fresh(web)["spec"]["replicas"] == 3

    world.passes(15)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 3

    world.passes(60)
    world.settles()
    assert world.fresh(web)["spec"]["replicas"] == 2


def test_a_target_scaled_to_zero_is_left_alone() -> None:
    world, web, scaler = scaled(cpu_milli=80, replicas=0)

    assert world.fresh(web)["spec"]["replicas"] == 0
    active = world.fresh(scaler)["status"]["conditions"][1]
    assert active["reason"] == "ScalingDisabled"


def test_a_target_that_is_not_there_is_named() -> None:
    world = KubernetesWorld(Measured(cpu_milli=1))

    scaler = world.create(autoscaler())
    world.settles()

    able = world.fresh(scaler)["status"]["conditions"][0]
    assert able["message"] == (
        "the HPA controller was unable to get the target's current scale:"
        ' deployments.apps "web" not found'
    )


def scaled(
    cpu_milli: int = 0, replicas: int = 1, readings: Measured | None = None, **spec: Any
) -> tuple[KubernetesWorld, JsonObject, JsonObject]:
    measured = readings or Measured(cpu_milli)
    world = KubernetesWorld(measured)
    web = world.create(deployment(replicas=replicas, template=asking("100m")))
    world.settles()
    for pod in world.pods():
        world.runs(pod)
    world.settles()
    measured.pods = [name_of(each) for each in world.pods()]
    scaler = world.create(autoscaler(**spec))
    world.settles()
    return world, web, scaler


def asking(cpu: str) -> JsonObject:
    wanted = template()
    wanted["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return wanted


def autoscaler(**spec: Any) -> JsonObject:
    target = {"type": "Utilization", "averageUtilization": 80}
    wanted: JsonObject = {
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "web"}, "spec": {**wanted, **spec}}
