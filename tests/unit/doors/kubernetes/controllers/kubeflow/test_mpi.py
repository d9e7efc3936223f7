from muster.doors.kubernetes.catalogue import FOREIGN
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.kubeflow.mpi import configuration
from muster.doors.kubernetes.foreign.fields import warnings
from muster.doors.kubernetes.foreign.kinds import MPI_JOB, in_every_version
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


def begun(job: JsonObject | None = None) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    made = world.create(job or a_job())
    world.settles()
    return world, made


def of_version_2(**spec: object) -> JsonObject:
    job = a_job()
    return {**job, "apiVersion": "kubeflow.org/v2beta1", "spec": {**job["spec"], **spec}}


def variables(pod: JsonObject) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}


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


def test_a_worker_that_is_told_nothing_stays_and_a_launcher_runs_what_its_image_says() -> None:
    world, _ = begun()

    launcher, worker, _ = world.pods()

    assert worker["spec"]["containers"][0]["command"] == ["sleep", "365d"]
    assert "command" not in launcher["spec"]["containers"][0]


def test_a_job_of_version_2_is_a_gang_whose_pods_know_their_roles() -> None:
    world, _ = begun(of_version_2())

    roles = [variables(each)["K_MPI_JOB_ROLE"] for each in world.pods()]

    assert roles == ["launcher", "worker", "worker"]
    assert variables(world.pods()[0])["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
    said = [part(each, "metadata", "annotations") for each in world.pods()]
    assert {each["muster.io/gang-size"] for each in said} == {"3"}


def test_each_mpi_is_told_in_its_own_words() -> None:
    intel, _ = begun(of_version_2(mpiImplementation="Intel"))
    mpich, _ = begun(of_version_2(mpiImplementation="MPICH"))

    told = variables(intel.pods()[0])
    assert told["I_MPI_HYDRA_BOOTSTRAP_EXEC"] == "/etc/mpi/kubexec.sh"
    assert told["I_MPI_PERHOST"] == "4"
    assert variables(mpich.pods()[0])["HYDRA_LAUNCHER_EXEC"] == "/etc/mpi/kubexec.sh"
    config = configuration(of_version_2(mpiImplementation="MPICH"))[0]
    assert config["data"]["hostfile"] == "t-worker-0:4\nt-worker-1:4\n"


def test_a_launcher_that_works_is_the_first_host() -> None:
    config = configuration(of_version_2(runLauncherAsWorker=True))[0]

    assert config["data"]["hostfile"].splitlines()[0] == "t-launcher slots=4"


def test_what_only_ssh_needs_is_warned_of() -> None:
    (told,) = warnings(
        {"sshAuthMountPath": "/root/.ssh", "launcherCreationPolicy": "AtStartup"}, "MPIJob"
    )

    assert "kubectl exec" in told


def test_version_2_is_checked_as_version_1_is() -> None:
    job = of_version_2()
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]

    for kind in in_every_version(MPI_JOB):
        rules = FOREIGN[kind]
        assert rules.validate is not None
        assert "mpiReplicaSpecs[Launcher]" in str(rules.validate(job, None))
    assert {each.version for each in in_every_version(MPI_JOB)} == {"v1", "v2beta1"}
