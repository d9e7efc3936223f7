"""Pods of Muster's Kubernetes API under a real Slurm, with a real kubectl."""

import json
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import slurm_lab
from doors.kubernetes.cluster import KubernetesHouse
from live.house import PATIENT, Process, ended, folder, until
from muster.app.engines import SITE_NAME
from muster.backends.kept import CLUSTERS
from muster.backends.slurm.pods import FOLDER
from muster.settings import KubernetesListen, Settings, SlurmCluster

pytestmark = pytest.mark.slow

SLURM = 'eval "$(muster slurm env)";'
Json = dict[str, Any]
RULES = """
classes: {normal: {}}
queues: {default: {images_on_host: true}}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with slurm_lab(look=Look(settings={"MinJobAge": 300})) as found:
        yield found


@pytest.fixture(scope="module")
def site(lab: Lab) -> Iterator["Site"]:
    with one_site(lab) as found:
        yield found


class Site:
    """A Muster on a machine without GPUs, with one Slurm cluster beside it, and kubectl."""

    def __init__(self, house: KubernetesHouse, process: Process) -> None:
        self.house, self.process = house, process

    def applies(self, document: Json) -> str:
        return self.house.kubectl("apply -f -", stdin=json.dumps(document))

    def pod(self, name: str) -> Json:
        found: Json = json.loads(self.house.kubectl(f"get pod {name} -o json"))
        return found

    def until_phase(self, name: str, phase: str) -> Json:
        return until(lambda: self.pod(name), lambda pod: pod["status"].get("phase") == phase)

    def until_logged(self, name: str, text: str) -> str:
        line = f"kubectl logs {name}"
        return until(lambda: self.house.shell(line).out, lambda said: text in said)


@contextmanager
def one_site(lab: Lab) -> Generator[Site]:
    with folder() as place:
        (place / "work").mkdir()
        house = KubernetesHouse(root=place)
        process = Process(
            place / "home",
            Settings(
                mail_program="none",
                nodes=1,
                gpus="0",
                clusters=(SlurmCluster(name="lab", conf=lab.layout.conf),),
                kubernetes=KubernetesListen(host="127.0.0.1", port=0),
            ),
        )
        process.start()
        try:
            with process.client() as client:
                until(lambda: sum(each.gpus for each in client.nodes()), bool)
                client.apply(RULES)
            entry = house.shell("muster kubeconfig")
            assert entry.code == 0, entry.err
            house.keeps_its_token()
            yield Site(house, process)
        finally:
            with process.client() as client:
                jobs = [job.id for job in client.all_jobs()]
                if jobs:
                    client.cancel(jobs)
                    ended(client, jobs)
            process.stop()
            tidied(process.home)


def tidied(home: Path) -> None:
    """What pods wrote of themselves stays with their user, who is whoever runs the tests."""
    name = (home / CLUSTERS / SITE_NAME).read_text(encoding="ascii")
    kept = Path.home() / FOLDER
    for each in kept.glob(f"{name}.*"):
        shutil.rmtree(each)
    # Those of others stay, and so does what they are in.
    with suppress(OSError):
        kept.rmdir()
        kept.parent.rmdir()


def pod(name: str, text: str, **spec: Any) -> Json:
    container: Json = {
        "name": "main",
        "image": "python:3.12",
        "command": ["sh", "-c"],
        "args": [text],
        "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 1, "memory": "64Mi"}},
    } | spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | spec.pop("metadata", {}),
        "spec": {"restartPolicy": "Never", "containers": [container]} | spec,
    }


def state_of(document: Json) -> Json:
    found: Json = document["status"]["containerStatuses"][0]
    return found


def test_a_pod_runs_under_slurm_and_says_how_it_ended(site: Site) -> None:
    site.applies(pod("one", 'echo "on $SLURMD_NODENAME with $CUDA_VISIBLE_DEVICES"; exit 3'))

    over = site.until_phase("one", "Failed")

    ran = state_of(over)["state"]["terminated"]
    assert (ran["exitCode"], ran["reason"]) == (3, "Error")
    assert ran["startedAt"] <= ran["finishedAt"]
    assert over["spec"]["nodeName"].startswith("node")
    said = site.house.kubectl("logs one")
    assert said.startswith(f"on {over['spec']['nodeName']} with ")
    assert said.split()[-1].isdecimal()


def test_variables_of_configmaps_and_secrets_reach_the_command(site: Site) -> None:
    site.house.kubectl("create configmap rates --from-literal=rate=0.1 --from-literal=log.level=2")
    site.house.kubectl("create secret generic key --from-literal=token='s3 $cret'")
    env = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
        {"name": "SAID", "value": "rate=$(rate)"},
    ]
    container = {"env": env, "envFrom": [{"configMapRef": {"name": "rates"}}], "workingDir": "/usr"}
    # Shells forget variables with a dot in their name.
    container |= {"command": ["/usr/bin/env"], "args": ["--"]}
    site.applies(pod("reads", "", container=container))

    site.until_phase("reads", "Succeeded")

    said = set(site.house.kubectl("logs reads").splitlines())
    assert {"TOKEN=s3 $cret", "SAID=rate=0.1", "rate=0.1", "log.level=2", "PWD=/usr"} <= said
    assert not any(line.startswith("MUSTER_POD_") for line in said)


def test_a_container_that_fails_begins_again_and_is_counted(site: Site) -> None:
    text = 'test -e "$HOME/again.$MUSTER_JOB_ID" && { rm "$HOME/again.$MUSTER_JOB_ID"; exit 0; }; '
    text += 'echo first; touch "$HOME/again.$MUSTER_JOB_ID"; exit 4'
    site.applies(pod("again", text, restartPolicy="OnFailure"))

    status = state_of(site.until_phase("again", "Succeeded"))

    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 4
    assert site.house.kubectl("logs again --previous") == "first\n"


def test_a_deleted_pod_has_its_grace(site: Site) -> None:
    text = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    site.applies(pod("leaves", text, terminationGracePeriodSeconds=20))
    site.until_logged("leaves", "up")

    following = "kubectl logs -f leaves & kubectl delete pod leaves --wait; wait"
    assert "bye" in site.house.shell(following).out


def test_what_slurm_cannot_do_for_a_pod_is_refused_in_words(site: Site) -> None:
    document = pod("probed", "sleep 1", container={"livenessProbe": {"exec": {"command": ["ls"]}}})
    document["metadata"]["annotations"] = {"muster.io/cluster": "lab"}

    said = site.house.refused("apply -f -", stdin=json.dumps(document))

    assert "Cluster lab has no probes and hooks of containers" in said


def test_a_pod_that_only_this_machine_can_run_says_why_it_waits(site: Site) -> None:
    spec: Json = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    container = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    site.applies(pod("waits", "true", container=container, **spec))

    def described() -> str:
        return site.house.kubectl("describe pod waits")

    said = until(described, lambda text: "FailedScheduling" in text)

    assert "node(s) of cluster lab, which mounts no volumes in pods" in " ".join(said.split())
    site.house.kubectl("delete pod waits")


def test_a_job_of_kubernetes_runs_its_pods_under_slurm(site: Site) -> None:
    template = pod("", 'echo "part $JOB_COMPLETION_INDEX"')
    site.applies(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "parts"},
            "spec": {
                "completions": 3,
                "parallelism": 2,
                "completionMode": "Indexed",
                "template": {"spec": template["spec"]},
            },
        }
    )

    site.house.kubectl(f"wait --for=condition=complete job/parts {PATIENT}")

    logs = site.house.kubectl("logs -l job-name=parts --prefix=false --tail=-1")
    assert sorted(logs.splitlines()) == ["part 0", "part 1", "part 2"]


def test_a_pytorchjob_is_a_gang_under_slurm(site: Site) -> None:
    text = 'echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME meets $MASTER_ADDR:$MASTER_PORT"; '
    master = pod("", f"{text} sleep 1; exit 0")["spec"]
    worker = pod("", f"{text} sleep 600")["spec"]
    for each in (master, worker):
        each["containers"][0]["name"] = "pytorch"
        each["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 3
    site.applies(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "train"},
            "spec": {
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": {"spec": master}},
                    "Worker": {"replicas": 1, "template": {"spec": worker}},
                },
            },
        }
    )

    site.until_logged("train-worker-0", "meets")
    site.until_logged("train-master-0", "meets")
    nodes = [site.pod(name)["spec"]["nodeName"] for name in ("train-master-0", "train-worker-0")]
    said = site.house.kubectl("logs train-worker-0")
    site.house.kubectl(f"wait --for=condition=Succeeded pytorchjob/train {PATIENT}")

    assert len(set(nodes)) == 2
    assert said.startswith(f"rank 1 of 2 on {nodes[1]} meets {nodes[0]}:")


def a_gang(name: str, text: str, gpus: int) -> Json:
    """Two pods that start together."""
    spec = pod("", text)["spec"]
    spec["containers"][0] |= {"name": "pytorch"}
    spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus
    replicas = {"replicas": 1, "template": {"spec": spec}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": replicas, "Worker": replicas}},
    }


def test_the_same_gang_by_sbatch_and_by_kubectl_is_shown_alike(site: Site, lab: Lab) -> None:
    asked = "-J same -N 2 --ntasks-per-node=1 --gres=gpu:3 -c 1 --mem=64M -o /dev/null"
    line = f"{SLURM} sbatch --parsable {asked} --wrap 'sleep 600'"
    job = int(site.house.shell(line).out)
    site.applies(a_gang("same", "sleep 600", 3))

    def shown() -> list[Json]:
        listed: list[Json] = json.loads(site.house.shell("muster ps -o json").out)
        return listed

    both = until(shown, lambda found: [each["state"] for each in found] == ["running"] * 2)
    by_sbatch, by_kubectl = sorted(both, key=lambda each: each["id"] != job)
    pods = until(lambda: running_pods(site), lambda found: len(found) == 4)

    of_script = {node for name, node in pods.items() if name.startswith(f"same-{job}-")}
    of_pods = {pods["same-master-0"], pods["same-worker-0"]}
    assert of_script == set(by_sbatch["nodes"])
    assert of_pods == set(by_kubectl["nodes"])
    assert len(of_script | of_pods) == 4
    squeue = "squeue -h -o '%T %D %N' --sort=N"
    assert sorted(site.house.shell(f"{SLURM} {squeue}").out.splitlines()) == sorted(
        lab.ask("squeue", "-h", "-t", "R", "-o", "%T %D %N").splitlines()
    )
    site.house.kubectl("delete pytorchjob same")
    site.house.kubectl(f"delete pod -l muster.io/job={job} --grace-period=1")
    until(shown, lambda found: not found)


def running_pods(site: Site) -> dict[str, str]:
    """The nodes of those that run."""
    listed = json.loads(site.house.kubectl("get pods -o json"))["items"]
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in listed
        if each["status"]["phase"] == "Running"
    }


def test_one_list_shows_pods_under_slurm_and_what_came_through_other_doors(site: Site) -> None:
    site.applies(pod("here", "sleep 600"))
    site.until_phase("here", "Running")
    with site.process.client() as client:
        job = client.submit(
            ["sleep", "600"], name="scripted", gpus=1, workdir="/", stdout="/dev/null"
        ).id

    def listed() -> dict[str, list[str]]:
        lines = site.house.kubectl("get pods -o wide --no-headers").splitlines()
        return {line.split()[0]: line.split() for line in lines}

    rows = until(listed, lambda found: found.get(f"scripted-{job}", [""] * 3)[2] == "Running")

    assert rows["here"][2] == "Running"
    assert rows["here"][6].startswith("node")
    assert rows[f"scripted-{job}"][6].startswith("node")
    site.house.kubectl("delete pod here --grace-period=1")
    with site.process.client() as client:
        client.cancel([job])
