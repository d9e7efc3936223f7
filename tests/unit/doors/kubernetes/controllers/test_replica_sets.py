from typing import Any

from muster.doors.kubernetes.controllers.scale import scale_of
from muster.doors.kubernetes.objects.value import JsonObject, metadata, name_of
from properties.kubernetes_world import KubernetesWorld, pod, replica_set


def test_a_replica_set_makes_the_pods_that_are_missing_and_names_them() -> None:
    world, web = begun(replicas=2)

    names = [name_of(each) for each in world.pods()]
    assert len(set(names)) == 2
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)
    assert sorted(world.said(web)) == sorted(
        ("SuccessfulCreate", f"Created pod: {name}") for name in names
    )


def test_when_there_are_too_many_those_that_did_least_go_first() -> None:
    world, web = begun(replicas=3)
    first, second, third = world.pods()
    world.runs(first)
    world.passes(5)
    world.runs(second)
    world.settles()

    world.edit(web, replicas=1)
    world.settles()

    assert not world.is_there(third)
    assert "deletionTimestamp" in metadata(world.fresh(second))
    assert [name_of(each) for each in world.active()] == [name_of(first)]


def test_a_deletion_cost_says_which_pod_is_kept() -> None:
    world, web = begun(replicas=2)
    cheap, dear = world.pods()
    for each, cost in ((cheap, "-5"), (dear, "7")):
        world.runs(each)
        held = world.fresh(each)
        costs = {"controller.kubernetes.io/pod-deletion-cost": cost}
        world.update({**held, "metadata": {**metadata(held), "annotations": costs}})

    world.edit(web, replicas=1)
    world.settles()

    assert [name_of(each) for each in world.active()] == [name_of(dear)]


def test_a_pod_counts_as_available_when_it_was_ready_for_long_enough() -> None:
    world, web = begun(minReadySeconds=30)
    world.runs(world.pods()[0])
    world.settles()
    assert "availableReplicas" not in world.fresh(web)["status"]

    world.passes(30)
    world.settles()

    assert world.fresh(web)["status"]["availableReplicas"] == 1


def test_a_stray_pod_that_it_selects_is_adopted() -> None:
    world = KubernetesWorld()
    stray = world.create(pod("stray", app="web"))

    web = world.create(replica_set(replicas=1))
    world.settles()

    assert [name_of(each) for each in world.pods(web)] == [name_of(stray)]


def test_a_pod_that_it_no_longer_selects_is_let_go_and_replaced() -> None:
    world, web = begun(replicas=1)
    lost = world.fresh(world.pods()[0])

    world.update({**lost, "metadata": {**metadata(lost), "labels": {"app": "debug"}}})
    world.settles()

    assert metadata(world.fresh(lost))["ownerReferences"] == []
    assert len(world.pods(web)) == 1


def test_a_replica_set_being_deleted_makes_no_pods() -> None:
    world, web = begun(replicas=2)
    for each in world.pods():
        world.runs(each)

    world.delete(web, "Foreground")
    world.settles()
    assert len(world.pods()) == 2
    assert world.is_there(web)

    world.all_stop()
    world.settles()
    assert world.pods() == []
    assert not world.is_there(web)


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    made = world.create(replica_set(**spec))
    world.settles()
    return world, made


def test_a_replication_controller_selects_with_plain_labels() -> None:
    world = KubernetesWorld()
    stray = world.create(pod("stray", app="web"))
    made = replica_set(replicas=2)
    labels = made["spec"]["selector"]["matchLabels"]
    made |= {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "spec": {**made["spec"], "selector": labels},
    }

    old = world.create(made)
    world.settles()

    pods = world.pods(old)
    assert len(pods) == 2
    assert name_of(stray) in {name_of(each) for each in pods}
    assert world.fresh(old)["status"]["replicas"] == 2
    assert scale_of(world.fresh(old))["status"]["selector"] == "app=web"
