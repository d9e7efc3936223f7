from muster.doors.kubernetes.catalogue import FOREIGN
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.kubeflow.mpi import configuration
from muster.doors.kubernetes.foreign.fields import warnings
from muster.doors.kubernetes.foreign.kinds import MPI_JOB
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from properties.kubernetes_world import KubernetesWorld, template


def a_job(workers: int = 2) -> JsonObject:
    pods = part(template(), "spec")
    replica = {"restartPolicy": "Never", "template": {"spec": pods}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {
            "slotsPerWorker": 4,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, **replica},
                "Worker": {"replicas": workers, **replica},
            },
        },
    }


def begun() -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    job = world.create(a_job())
    world.settles()
    return world, job


def test_the_launcher_and_its_workers_start_together() -> None:
    world, _ = begun()

    assert [name_of(each) for each in world.pods()] == ["t-launcher", "t-worker-0", "t-worker-1"]
    said = [part(each, "metadata", "annotations") for each in world.pods()]
    assert {each["muster.io/gang-size"] for each in said} == {"3"}
    assert ["muster.io/gang-leader" in each for each in said] == [True, False, False]


def test_each_pod_finds_the_workers_and_only_the_launcher_starts_processes() -> None:
    world, _ = begun()

    launcher, *workers = world.pods()
    for pod in (launcher, *workers):
        mounted = pod["spec"]["containers"][0]["volumeMounts"]
        assert {"name": "mpi-job-config", "mountPath": "/etc/mpi"} in mounted
    told = {each["name"]: each["value"] for each in launcher["spec"]["containers"][0]["env"]}
    assert told["OMPI_MCA_plm_rsh_agent"] == "/etc/mpi/kubexec.sh"
    assert told["OMPI_MCA_orte_set_default_slots"] == "4"
    assert not any(each["spec"]["containers"][0]["env"] for each in workers)


def test_the_list_of_workers_has_their_slots() -> None:
    _, job = begun()

    config = configuration(job)[0]

    assert name_of(config) == "t-config"
    assert config["data"]["hostfile"] == "t-worker-0 slots=4\nt-worker-1 slots=4\n"


def test_it_ends_as_its_launcher_does_and_the_workers_go() -> None:
    world, job = begun()
    for each in world.active():
        world.runs(each)
    world.settles()

    world.ends(world.pods()[0])
    world.settles()
    world.all_stop()

    assert is_true(items(world.fresh(job), "status", "conditions"), "Succeeded")
    assert [name_of(each) for each in world.pods()] == ["t-launcher"]


def test_a_job_without_a_launcher_is_refused() -> None:
    job = a_job()
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]
    rules = FOREIGN[MPI_JOB]
    assert rules.validate is not None

    assert "mpiReplicaSpecs[Launcher]" in str(rules.validate(job, None))


def test_fields_that_have_no_effect_are_warned_of() -> None:
    told = warnings({"cleanPodPolicy": "All", "mainContainer": "main"}, "MPIJob")

    assert len(told) == 2
    assert "say it in runPolicy" in told[0]
