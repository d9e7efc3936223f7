from typing import Any

from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.objects.value import JsonObject, items, metadata, name_of, part
from muster.doors.kubernetes.pods.gang_marks import GANG_JOB
from properties.kubernetes_world import KubernetesWorld, template


def a_job(workers: int = 2, *, restart: str = "Never", **spec: Any) -> JsonObject:
    pods = part(template(), "spec")
    pods["containers"] = [{"name": "pytorch", "image": "one"}]
    replica = {"restartPolicy": restart, "template": {"spec": pods}}
    given: dict[str, Any] = {"runPolicy": {"cleanPodPolicy": "None"}, **spec}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, **replica},
                "Worker": {"replicas": workers, **replica},
            },
            **given,
        },
    }


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    job = world.create(a_job(**spec))
    world.settles()
    return world, job


def all_run(world: KubernetesWorld) -> None:
    """As the leader forms gangs, and nodes run them."""
    for each in world.active():
        marks = {**part(each, "metadata", "annotations"), GANG_JOB: "g"}
        world.update({**each, "metadata": {**metadata(each), "annotations": marks}})
    for each in world.active():
        world.runs(each)
    world.settles()


def conditions(world: KubernetesWorld, job: JsonObject) -> dict[str, str]:
    return {
        each["type"]: each["status"] for each in items(world.fresh(job), "status", "conditions")
    }


def variables(pod: JsonObject) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}


def test_replicas_are_pods_of_one_gang_with_names_that_lead_to_them() -> None:
    world, _ = begun()

    names = [name_of(each) for each in world.pods()]
    assert names == ["t-master-0", "t-worker-0", "t-worker-1"]
    said = [part(each, "metadata", "annotations") for each in world.pods()]
    assert {each["muster.io/gang"] for each in said} == {"pytorchjob/t"}
    assert {each["muster.io/gang-size"] for each in said} == {"3"}
    assert ["muster.io/gang-leader" in each for each in said] == [True, False, False]


def test_processes_learn_who_they_are_and_where_they_meet() -> None:
    world, _ = begun(nprocPerNode="4")

    found = [variables(each) for each in world.pods()]
    assert [each["RANK"] for each in found] == ["0", "1", "2"]
    assert {each["WORLD_SIZE"] for each in found} == {"12"}
    assert {each["MASTER_ADDR"] for each in found} == {"t-master-0"}
    assert {each["PET_MASTER_PORT"] for each in found} == {"$(MASTER_PORT)"}
    assert {each["PET_NNODES"] for each in found} == {"3"}


def test_elastic_training_starts_with_the_fewest_and_says_so_to_its_processes() -> None:
    world, _ = begun(workers=4, elasticPolicy={"minReplicas": 2, "maxReplicas": 4})

    said = part(world.pods()[0], "metadata", "annotations")
    assert said["muster.io/gang-size"] == "3"
    found = variables(world.pods()[1])
    assert found["PET_NNODES"] == "2:4"
    assert found["PET_RDZV_ENDPOINT"] == "t-worker-0:23456"
    assert found["MASTER_PORT"] == "23456"


def test_it_succeeds_with_its_master() -> None:
    world, job = begun()
    all_run(world)
    assert conditions(world, job) == {"Created": "True", "Running": "True"}

    world.ends(world.pods()[0])
    world.settles()

    assert conditions(world, job) == {"Created": "True", "Running": "False", "Succeeded": "True"}
    status = world.fresh(job)["status"]
    assert status["replicaStatuses"]["Master"]["succeeded"] == 1
    assert status["replicaStatuses"]["Worker"]["active"] == 2
    assert status["completionTime"]


def test_a_replica_that_fails_for_good_fails_the_job_and_the_others_go_if_asked() -> None:
    world, job = begun(runPolicy={"cleanPodPolicy": "Running"})
    all_run(world)

    world.ends(world.pods()[2], code=1)
    world.settles()
    world.all_stop()

    assert is_true(world.fresh(job)["status"]["conditions"], "Failed")
    assert [name_of(each) for each in world.pods()] == ["t-worker-1"]


def test_a_signal_is_worth_another_try_of_the_whole_gang() -> None:
    world, job = begun(restart="ExitCode", runPolicy={"backoffLimit": 1})
    all_run(world)
    first = {each["metadata"]["uid"] for each in world.pods()}

    world.ends(world.pods()[1], code=137)
    world.settles()
    assert is_true(world.fresh(job)["status"]["conditions"], "Restarting")
    world.all_stop()
    world.settles()

    again = world.pods()
    assert len(again) == 3
    assert first.isdisjoint(each["metadata"]["uid"] for each in again)
    all_run(world)
    assert conditions(world, job)["Running"] == "True"
    world.ends(world.pods()[1], code=137)
    world.settles()
    world.all_stop()
    world.settles()
    told = world.fresh(job)["status"]["conditions"][-1]
    assert told["type"] == "Failed"
    assert "backoff limit" in told["message"]


def test_when_one_of_a_running_gang_is_deleted_all_begin_again() -> None:
    world, job = begun()
    all_run(world)

    world.delete(world.pods()[2])
    world.settles()
    world.all_stop()
    world.settles()

    assert len(world.pods()) == 3
    assert not any(GANG_JOB in part(each, "metadata", "annotations") for each in world.pods())
    assert is_true(world.fresh(job)["status"]["conditions"], "Restarting")


def test_a_suspended_job_has_no_pods_until_it_goes_on() -> None:
    world, job = begun(runPolicy={"suspend": True})
    assert world.pods() == []
    assert conditions(world, job) == {"Created": "True", "Suspended": "True"}

    world.edit(job, runPolicy={"suspend": False})
    world.settles()

    assert len(world.pods()) == 3
    assert conditions(world, job)["Suspended"] == "False"


def test_it_fails_at_its_deadline_and_goes_when_its_time_is_up() -> None:
    world, job = begun(runPolicy={"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 100})
    all_run(world)

    world.passes(61)
    world.settles()
    world.all_stop()
    assert is_true(world.fresh(job)["status"]["conditions"], "Failed")

    world.passes(101)
    world.settles()
    assert not world.is_there(job)
