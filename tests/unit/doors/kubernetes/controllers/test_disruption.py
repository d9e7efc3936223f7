from typing import Any

from muster.doors.kubernetes.controllers.disruption import may_evict
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import KubernetesWorld, deployment, replica_set


def test_a_budget_says_what_a_real_one_says() -> None:
    _, _, budget = watched(minAvailable=2)

    assert budget["status"] == {
        "conditions": [
            {
                "lastTransitionTime": "2026-11-16T09:00:00Z",
                "message": "",
                "observedGeneration": 1,
                "reason": "InsufficientPods",
                "status": "False",
                "type": "DisruptionAllowed",
            }
        ],
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "disruptionsAllowed": 0,
        "expectedPods": 2,
        "observedGeneration": 1,
    }


def test_an_eviction_beyond_the_budget_is_refused_in_kubernetes_words() -> None:
    world, pods, _ = watched(minAvailable=2)

    answer = may_evict(pods[0], world.objects, world.now)

    assert answer.budget is None
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.refusal == words
    assert answer.cause == "The disruption budget guard needs 2 healthy pods and has 2 currently"


def test_an_eviction_within_the_budget_is_written_down() -> None:
    world, pods, _ = watched(maxUnavailable=1)

    answer = may_evict(pods[0], world.objects, world.now)

    assert answer.refusal == ""
    assert answer.budget is not None
    assert answer.budget["status"]["disruptionsAllowed"] == 0
    world.update_status(answer.budget)
    assert may_evict(pods[1], world.objects, world.now).refusal != ""


def test_a_pod_that_was_evicted_and_stays_counts_again_after_a_while() -> None:
    world, pods, budget = watched(maxUnavailable=1)
    answer = may_evict(pods[0], world.objects, world.now)
    assert answer.budget is not None
    world.update_status(answer.budget)
    world.settles()
    assert world.fresh(budget)["status"]["disruptedPods"] == {
        name_of(pods[0]): "2026-11-16T09:00:00Z"
    }

    world.passes(121)
    world.settles()

    assert "disruptedPods" not in world.fresh(budget)["status"]
    assert world.fresh(budget)["status"]["disruptionsAllowed"] == 1


def test_a_percentage_is_of_what_the_deployment_wants() -> None:
    world = KubernetesWorld()
    world.create(deployment(replicas=4))
    world.settles()
    for pod in world.pods()[:3]:
        world.runs(pod)

    budget = world.create(guard(minAvailable="50%"))
    world.settles()

    status = world.fresh(budget)["status"]
    assert (status["expectedPods"], status["desiredHealthy"]) == (4, 2)
    assert status["disruptionsAllowed"] == 1


def test_two_budgets_for_one_pod_are_a_fault() -> None:
    world, pods, _ = watched(minAvailable=0)
    world.create({**guard(minAvailable=0), "metadata": {"name": "second"}})
    world.settles()

    answer = may_evict(pods[0], world.objects, world.now)

    assert answer.is_a_fault
    assert answer.refusal.startswith("This pod has more than one PodDisruptionBudget")


def test_a_pod_that_has_ended_may_always_go() -> None:
    world, pods, _ = watched(minAvailable=2)
    world.ends(pods[0], code=1)

    assert may_evict(world.fresh(pods[0]), world.objects, world.now).refusal == ""


def watched(**spec: Any) -> tuple[KubernetesWorld, list[JsonObject], JsonObject]:
    world = KubernetesWorld()
    world.create(replica_set(replicas=2))
    world.settles()
    for pod in world.pods():
        world.runs(pod)
    budget = world.create(guard(**spec))
    world.settles()
    return world, world.pods(), world.fresh(budget)


def guard(**spec: Any) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
