from muster.doors.kubernetes.foreign.kinds import KUEUE_WORKLOAD
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, metadata, part
from properties.kubernetes_world import KubernetesWorld, job

QUEUE: JsonObject = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "main", "namespace": "default"},
    "spec": {"clusterQueue": "team"},
    "status": {"conditions": [{"type": "Active", "status": "True"}]},
}


def labelled() -> JsonObject:
    made = job(suspend=True)
    metadata(made)["labels"] = {**labels_of(made), "kueue.x-k8s.io/queue-name": "main"}
    return made


def workload(world: KubernetesWorld) -> JsonObject:
    (found,) = world.objects.list(KUEUE_WORKLOAD, "default")
    return found


def conditions(world: KubernetesWorld) -> dict[str, tuple[str, str]]:
    listed = part(workload(world), "status")["conditions"]
    return {each["type"]: (each["status"], each["message"]) for each in listed}


def test_a_job_in_a_queue_has_a_workload_that_says_why_it_waits() -> None:
    world = KubernetesWorld()
    world.create(labelled())
    world.settles()

    assert workload(world)["spec"]["queueName"] == "main"
    assert conditions(world)["QuotaReserved"] == ("False", "LocalQueue main doesn't exist")


def test_a_workload_is_admitted_when_its_pods_have_room_and_finished_with_its_job() -> None:
    world = KubernetesWorld()
    world.create(QUEUE)
    world.create(labelled())
    world.settles()
    assert conditions(world)["QuotaReserved"][0] == "False"

    for pod in world.active():
        world.runs(pod)
    world.settles()
    assert conditions(world)["Admitted"] == ("True", "The workload is admitted")
    assert workload(world)["status"]["admission"]["clusterQueue"] == "team"

    for pod in world.active():
        world.ends(pod)
    world.settles()
    assert conditions(world)["Finished"][0] == "True"
    assert conditions(world)["Admitted"][0] == "True"


def test_a_job_without_a_queue_has_no_workload() -> None:
    world = KubernetesWorld()
    world.create(job())
    world.settles()

    assert world.objects.list(KUEUE_WORKLOAD, "default") == []
