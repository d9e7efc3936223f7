from muster.doors.kubernetes.objects.value import JsonObject, labels_of, metadata
from properties.kubernetes_world import KubernetesWorld, job


def labelled() -> JsonObject:
    made = job(suspend=True)
    metadata(made)["labels"] = {**labels_of(made), "kueue.x-k8s.io/queue-name": "main"}
    return made


def local_queue(status: str) -> JsonObject:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "main", "namespace": "default"},
        "spec": {"clusterQueue": "team"},
        "status": {"conditions": [{"type": "Active", "status": status}]},
    }


def test_a_suspended_job_goes_on_when_its_queue_takes_it() -> None:
    world = KubernetesWorld()
    made = world.create(labelled())
    world.settles()
    assert world.pods() == []

    world.create(local_queue("True"))
    world.settles()

    assert not world.fresh(made)["spec"]["suspend"]
    assert len(world.pods()) == 1
    assert ("Started", "Admitted by clusterQueue team") in world.said(made)


def test_it_stays_suspended_while_there_is_no_such_queue() -> None:
    world = KubernetesWorld()
    world.create(local_queue("False"))
    made = world.create(labelled())

    world.settles()

    assert world.fresh(made)["spec"]["suspend"]
