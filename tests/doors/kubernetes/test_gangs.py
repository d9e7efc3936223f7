"""Real kubectl, real containers: gangs of pods start whole or not at all."""

import getpass
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until
from muster.doors.kubernetes.pods.queues_of import PERSON_ANNOTATION

pytestmark = pytest.mark.slow


TRAIN = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}}}
spec:
  runPolicy: {policy}
  pytorchReplicaSpecs:
    Master:
      restartPolicy: Never
      template: &template
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: pytorch
            image: {image}
            command: [sh, -c, '{master}']
            resources: {{limits: {{nvidia.com/gpu: "{gpus}", cpu: 100m, memory: 64Mi}}}}
    Worker:
      replicas: {workers}
      restartPolicy: Never
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: pytorch
            image: {image}
            command: [sh, -c, '{worker}']
            resources: {{limits: {{nvidia.com/gpu: "{gpus}", cpu: 100m, memory: 64Mi}}}}
"""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


def train(
    name: str, says: tuple[str, str], *, gpus: int = 1, workers: int = 2, policy: str = "{}"
) -> str:
    master, worker = says
    return TRAIN.format(
        name=name,
        image=IMAGE,
        master=master,
        worker=worker,
        gpus=gpus,
        workers=workers,
        policy=policy,
    )


def conditions(house: KubernetesHouse, place: str, what: str) -> dict[str, str]:
    found = json.loads(house.kubectl(f"get {what} {place} -o json"))
    listed: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    return {each["type"]: each["status"] for each in listed}


def phases(house: KubernetesHouse, place: str) -> dict[str, str]:
    listed = json.loads(house.kubectl(f"get pods {place} -o json"))["items"]
    return {each["metadata"]["name"]: each["status"]["phase"] for each in listed}


def ended(house: KubernetesHouse, name: str) -> int:
    """How many jobs of this name are over; their pods may say so a moment sooner."""
    return len(json.loads(house.shell(f"muster history --name {name} -o json").out))


def test_a_pytorchjob_is_one_job_whose_pods_find_each_other(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('torch')}"
    says = "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT $PET_NNODES; cat /etc/hosts"

    house.kubectl(f"apply {place} -f -", stdin=train("mnist", (says, says)))
    house.kubectl(f"wait {place} --for=condition=Succeeded pytorchjob/mnist {PATIENT}")

    until(lambda: set(phases(house, place).values()) == {"Succeeded"})
    logs = [
        house.kubectl(f"logs {place} mnist-{each}") for each in ("master-0", "worker-0", "worker-1")
    ]
    firsts = [each.splitlines()[0].split(":") for each in logs]
    assert [each[0] for each in firsts] == [
        f"rank {rank} of 3 at mnist-master-0" for rank in range(3)
    ]
    assert len({each[1] for each in firsts}) == 1, "they meet at one port"
    assert "mnist-master-0" in logs[2]
    until(lambda: ended(house, "mnist") == 1)
    shown = house.kubectl(f"get pytorchjob {place}").splitlines()
    assert shown[0].split() == ["NAME", "STATE", "AGE"]
    assert shown[1].split()[:2] == ["mnist", "Succeeded"]

    def succeeded() -> dict[str, int]:
        told = json.loads(house.kubectl(f"get pytorchjob mnist {place} -o json"))
        counted = told["status"]["replicaStatuses"]
        return {role: each.get("succeeded", 0) for role, each in counted.items()}

    until(lambda: succeeded() == {"Master": 1, "Worker": 2}, succeeded)


def a_replica(container: str, says: str, count: int = 1) -> dict[str, Any]:
    main = {
        "name": container,
        "image": IMAGE,
        "command": ["sh", "-c", says],
        "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [main]}
    return {"replicas": count, "template": {"spec": spec}}


def a_training(kind: str, name: str, **spec: Any) -> str:
    """A training job whose pods that still run go when it is over."""
    given = {"runPolicy": {"cleanPodPolicy": "Running"}, **spec}
    meta = {"name": name}
    return json.dumps(
        {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": meta, "spec": given}
    )


def test_the_same_gang_by_sbatch_and_by_kubectl_is_shown_alike(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('alike')}"
    slurm = 'eval "$(muster slurm env)";'
    asked = "-J alike -N 2 --ntasks-per-node=1 --gres=gpu:2 -c 1 --mem=64M -o /dev/null"
    sbatch = house.shell(f"{slurm} sbatch --parsable {asked} --wrap 'sleep 600'")
    job = int(sbatch.out)
    says = ("sleep 600", "sleep 600")
    house.kubectl(f"apply {place} -f -", stdin=train("alike", says, gpus=2, workers=1))

    def shown() -> list[dict[str, Any]]:
        listed = json.loads(house.shell("muster ps -o json").out)
        return [each for each in listed if each["name"].startswith("alike")]

    def nodes() -> dict[str, str]:
        listed = json.loads(house.kubectl("get pods -A -o json"))["items"]
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in listed
            if each["metadata"]["name"].startswith("alike") and each["status"]["phase"] == "Running"
        }

    until(lambda: len(nodes()) == 4)
    by_sbatch, by_kubectl = sorted(shown(), key=lambda each: each["id"] != job)
    pods = nodes()

    of_script = {node for name, node in pods.items() if name.startswith(f"alike-{job}-")}
    assert of_script == set(by_sbatch["nodes"])
    assert {pods["alike-master-0"], pods["alike-worker-0"]} == set(by_kubectl["nodes"])
    assert [by_sbatch["gpus"], by_kubectl["gpus"]] == [4, 4]
    house.kubectl(f"delete pytorchjob alike {place}")
    house.shell(f"{slurm} scancel {job}")
    until(lambda: not shown())


def test_a_tfjob_is_one_job_whose_processes_find_each_other(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('flow')}"
    says = 'echo "$TF_CONFIG"'
    replicas = {
        "Chief": a_replica("tensorflow", says),
        "PS": a_replica("tensorflow", "sleep 600"),
        "Worker": a_replica("tensorflow", says, 2),
    }

    manifest = a_training("TFJob", "convnet", tfReplicaSpecs=replicas)
    house.kubectl(f"apply {place} -f -", stdin=manifest)
    house.kubectl(f"wait {place} --for=condition=Succeeded tfjob/convnet {PATIENT}")

    told = json.loads(house.kubectl(f"logs {place} convnet-chief-0"))
    assert told["task"] == {"type": "chief", "index": 0}
    assert {role: len(found) for role, found in told["cluster"].items()} == {
        "chief": 1,
        "ps": 1,
        "worker": 2,
    }
    until(lambda: "convnet-ps-0" not in phases(house, place))
    until(lambda: ended(house, "convnet") == 1)


def test_the_launcher_of_an_mpijob_finds_a_list_of_its_workers(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('mpi')}"
    says = "cat /etc/mpi/hostfile; test -x /etc/mpi/kubexec.sh && echo $OMPI_MCA_plm_rsh_agent"
    replicas = {
        "Launcher": a_replica("main", says),
        "Worker": a_replica("main", "sleep 600", 2),
    }

    manifest = a_training("MPIJob", "ring", slotsPerWorker=2, mpiReplicaSpecs=replicas)
    house.kubectl(f"apply {place} -f -", stdin=manifest)
    house.kubectl(f"wait {place} --for=condition=Succeeded mpijob/ring {PATIENT}")

    assert house.kubectl(f"logs {place} ring-launcher").splitlines() == [
        "ring-worker-0 slots=2",
        "ring-worker-1 slots=2",
        "/etc/mpi/kubexec.sh",
    ]
    until(lambda: phases(house, place) == {"ring-launcher": "Succeeded"})
    until(lambda: ended(house, "ring") == 1)


def test_an_mpijob_of_version_2_runs_whole_and_its_workers_need_no_command(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('mpi-two')}"
    worker = a_replica("main", "", 1)
    del worker["template"]["spec"]["containers"][0]["command"]
    launcher = a_replica("main", "echo $K_MPI_JOB_ROLE; cat /etc/mpi/hostfile")
    replicas = {"Launcher": launcher, "Worker": worker}
    job = a_training("MPIJob", "two", runLauncherAsWorker=True, mpiReplicaSpecs=replicas)

    house.kubectl(
        f"apply {place} -f -", stdin=job.replace("kubeflow.org/v1", "kubeflow.org/v2beta1")
    )
    house.kubectl(
        f"wait {place} --for=condition=Succeeded mpijobs.v2beta1.kubeflow.org/two {PATIENT}"
    )

    said = house.kubectl(f"logs {place} two-launcher").splitlines()
    assert said == ["launcher", "two-launcher slots=1", "two-worker-0 slots=1"]
    until(lambda: phases(house, place) == {"two-launcher": "Succeeded"})


ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: launcher}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: launcher}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: launcher}]
"""


def test_the_launcher_of_an_mpijob_starts_processes_in_its_workers(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('ranks')}"
    house.kubectl(f"annotate namespace ranks {PERSON_ANNOTATION}={getpass.getuser()}")
    house.kubectl(f"apply {place} -f -", stdin=ACCOUNT)
    workers = "$(cut -d' ' -f1 /etc/mpi/hostfile)"
    ready = "until $OMPI_MCA_plm_rsh_agent $at true; do sleep 0.2; done 2>/dev/null"
    says = f"for at in {workers}; do {ready}; $OMPI_MCA_plm_rsh_agent $at hostname; done"
    launcher = a_replica("main", says)
    spec = launcher["template"]["spec"]
    spec["serviceAccountName"] = "launcher"
    program = str(Path(sys.executable).with_name("kubectl"))
    spec["volumes"] = [{"name": "kubectl", "hostPath": {"path": program}}]
    mount = {"name": "kubectl", "mountPath": "/opt/kube/kubectl", "readOnly": True}
    spec["containers"][0]["volumeMounts"] = [mount]
    replicas = {"Launcher": launcher, "Worker": a_replica("main", "sleep 600", 2)}

    manifest = a_training("MPIJob", "ranks", mpiReplicaSpecs=replicas)
    house.kubectl(f"apply {place} -f -", stdin=manifest)
    house.kubectl(f"wait {place} --for=condition=Succeeded mpijob/ranks {PATIENT}")

    said = house.kubectl(f"logs {place} ranks-launcher").splitlines()
    assert said == ["ranks-worker-0", "ranks-worker-1"]


def test_a_gang_that_fits_only_in_part_does_not_start_in_part(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('whole')}"
    taken = {"nvidia.com/gpu": "4", "cpu": "100m", "memory": "64Mi"}
    spec = {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "first",
                "image": IMAGE,
                "command": ["sleep", "600"],
                "resources": {"limits": taken},
            }
        ],
    }
    given = json.dumps({"spec": spec})
    house.kubectl(f"run first {place} --image={IMAGE} --overrides='{given}'")
    house.kubectl(f"wait {place} --for=condition=Ready pod/first {PATIENT}")

    manifest = train("large", ("sleep 600", "sleep 600"), gpus=4, workers=1)
    house.kubectl(f"apply {place} -f -", stdin=manifest)

    def reasons() -> list[str]:
        listed = json.loads(house.kubectl(f"get pods {place} -o json"))["items"]
        told = [
            condition.get("message", "")
            for each in listed
            for condition in each["status"].get("conditions", [])[:1]
        ]
        return [each for each in told if "nodes are available" in each]

    until(lambda: len(reasons()) == 2)
    waiting = phases(house, place)
    assert waiting == {"first": "Running", "large-master-0": "Pending", "large-worker-0": "Pending"}
    house.kubectl(f"delete pod first {place} {PATIENT}")
    until(lambda: set(phases(house, place).values()) == {"Running"})
    house.kubectl(f"delete pytorchjob large {place} {PATIENT}")
    until(lambda: not phases(house, place))


def test_a_gang_waits_for_all_of_its_pods(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('groups')}"

    def member(number: int) -> str:
        overrides = {
            "metadata": {
                "labels": {"kueue.x-k8s.io/pod-group-name": "sweep"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
            },
            "spec": {"terminationGracePeriodSeconds": 1},
        }
        given = json.dumps(overrides)
        line = f"run p{number} {place} --image={IMAGE} --restart=Never --overrides='{given}'"
        return house.kubectl(f"{line} --command -- sh -c 'sleep 1; exit {number}'")

    member(0)
    until(
        lambda: "gang sweep waits for 1 more of 2 pods" in house.kubectl(f"describe pod p0 {place}")
    )
    assert phases(house, place) == {"p0": "Pending"}
    member(1)

    until(lambda: phases(house, place) == {"p0": "Succeeded", "p1": "Failed"})
    until(lambda: ended(house, "sweep") == 1)


def test_the_pods_that_still_run_go_when_the_master_has_ended(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('clean')}"
    policy = "{cleanPodPolicy: Running}"

    house.kubectl(f"apply {place} -f -", stdin=train("tidy", ("true", "sleep 600"), policy=policy))

    house.kubectl(f"wait {place} --for=condition=Succeeded pytorchjob/tidy {PATIENT}")
    until(lambda: phases(house, place) == {"tidy-master-0": "Succeeded"})
    until(lambda: "tidy" not in house.shell("muster ps").out)
    assert "completed" in house.shell("muster history --name tidy").out.lower()


def test_a_gang_that_loses_a_pod_before_it_starts_waits_for_another(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('lost')}"
    limits = {"limits": {"nvidia.com/gpu": "4"}}

    def member(name: str) -> None:
        annotations = {"muster.io/gang": "trio", "muster.io/gang-size": "3"}
        container = {"name": "a", "image": IMAGE, "command": ["true"], "resources": limits}
        given = json.dumps(
            {
                "metadata": {"annotations": annotations},
                "spec": {"containers": [container], "restartPolicy": "Never"},
            }
        )
        house.kubectl(f"run {name} {place} --image={IMAGE} --overrides='{given}'")

    for name in ("a", "b"):
        member(name)
    until(lambda: "waits for 1 more of 3" in house.kubectl(f"describe pod a {place}"))
    house.kubectl(f"delete pod b {place} {PATIENT}")

    until(lambda: "waits for 2 more of 3" in house.kubectl(f"describe pod a {place}"))
    assert phases(house, place) == {"a": "Pending"}


KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohort: research
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: default-flavor
      resources: [{name: nvidia.com/gpu, nominalQuota: 2, borrowingLimit: 0}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: kueue}
spec: {clusterQueue: team-a}
"""

LABELLED = f"""
apiVersion: batch/v1
kind: Job
metadata: {{generateName: work-, labels: {{kueue.x-k8s.io/queue-name: main}}}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: {IMAGE}
        command: [sleep, "600"]
        resources: {{limits: {{nvidia.com/gpu: "2"}}}}
"""


def test_queues_of_kueue_are_queues_and_a_labelled_job_waits_in_its_own(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('kueue')}"
    made = house.shell("kubectl apply -f -", stdin=KUEUE)
    assert made.code == 0, made.err
    listed = house.shell("muster queues").out
    assert all(name in listed for name in ("research", "team-a", "main"))

    for _ in range(2):
        house.kubectl(f"create {place} -f -", stdin=LABELLED)

    def counts() -> tuple[int, int]:
        told = json.loads(house.kubectl("get clusterqueue team-a -o json")).get("status", {})
        return told.get("admittedWorkloads", 0), told.get("pendingWorkloads", 0)

    until(lambda: counts() == (1, 1))
    until(lambda: sorted(phases(house, place).values()) == ["Pending", "Running"])

    def local() -> tuple[int, int, str]:
        told = json.loads(house.kubectl(f"get localqueue main {place} -o json"))["status"]
        reason = told["conditions"][0]["reason"]
        return told["admittedWorkloads"], told["pendingWorkloads"], reason

    until(lambda: local() == (1, 1, "Ready"), local)
    used = json.loads(house.kubectl("get cq team-a -o json"))["status"]["flavorsUsage"]
    assert used[0]["resources"] == [{"name": "nvidia.com/gpu", "total": "2"}]
    house.kubectl(f"delete jobs --all {place} {PATIENT}")
    until(lambda: not phases(house, place))
