"""Users of a real Kubernetes go on with kubectl, and Muster gives their pods nodes and turns.

Muster has no other rights there than those of `deploy/kubernetes`.
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.backends.kubernetes_engine import kubernetes_lab
from kubernetes_real.daemons import Daemon, free_port
from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab, built
from live.house import PATIENT, Process, folder, until
from muster import Client
from muster.api.jobs import JobDocument
from muster.settings import KubernetesCluster, Settings

pytestmark = pytest.mark.slow

GPUS_EACH = 4
FINAL = {"completed", "failed", "cancelled"}
DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
ACCOUNT = ("--serviceaccount", "muster:muster")
BINDINGS = (
    ("clusterrolebinding", "muster-sees-jobs", "--clusterrole", "muster-sees-jobs"),
    ("-n", "nlp", "rolebinding", "muster-adopts-pods", "--clusterrole", "muster-adopts-pods"),
)
KINDS = (("scheduling.x-k8s.io", "v1alpha1", "PodGroup"), ("kubeflow.org", "v1", "PyTorchJob"))


class Site:
    """A Muster without GPUs beside a Kubernetes, whose pods of namespace `nlp` it adopts."""

    def __init__(self, place: Path, lab: Lab) -> None:
        self.place, self.lab = place, lab
        lab.write_kubeconfig(place / "kubeconfig", self._allowed())
        cluster = KubernetesCluster(
            name="lab",
            kubeconfig=str(place / "kubeconfig"),
            namespace="muster",
            image=BUSYBOX,
            adopts={"nlp": "nlp:ada"},
        )
        settings = Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        self.process = Process(place / "home", settings)
        self.process.start()
        with self.client as client:
            rules = yaml.safe_load(client.site())
            client.apply(yaml.safe_dump({**rules, "queues": {**rules["queues"], "nlp": {}}}))
        until(self._gpus, lambda count: count == 2 * GPUS_EACH)

    @property
    def client(self) -> Client:
        return self.process.client()

    def kubectl(self, *words: str, given: object = None) -> str:
        run = subprocess.run(  # noqa: S603 -- what a test types
            ("kubectl", "--kubeconfig", self.lab.kubeconfig, *words),  # noqa: S607
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def makes(self, *objects: Any) -> None:
        self.kubectl(
            "apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": objects}
        )

    def see(self, kind: str, name: str) -> Any:
        """Of namespace `nlp`; nothing where there is none."""
        said = self.kubectl("-n", "nlp", "get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said else {}

    def phase(self, name: str) -> str:
        return str(self.see("pod", name).get("status", {}).get("phase", "gone"))

    def until_phase(self, name: str, phase: str) -> None:
        until(lambda: self.phase(name), lambda seen: seen == phase)

    def until_told(self, name: str, text: str) -> None:
        def told() -> str:
            conditions = self.see("pod", name).get("status", {}).get("conditions") or ()
            return " ".join(each.get("message", "") for each in conditions)

        until(told, lambda said: text in said)

    def job_of(self, name: str) -> JobDocument:
        """That of a pod that has a node."""
        id = int(self.see("pod", name)["metadata"]["annotations"]["muster.io/job"])
        with self.client as client:
            return client.job(id)

    def until_state(self, job: int, *states: str) -> JobDocument:
        with self.client as client:
            return until(lambda: client.job(job), lambda it: it.state in states)

    def live(self) -> list[JobDocument]:
        with self.client as client:
            return [job for job in client.all_jobs() if job.state not in FINAL]

    def said(self, name: str) -> list[str]:
        path = self.place / "said" / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def until_said(self, name: str, *lines: str) -> None:
        until(lambda: self.said(name), lambda seen: seen == [*lines])

    def tells(self) -> None:
        (self.place / "said" / "go").touch()

    def clears_up(self) -> None:
        self.kubectl("-n", "nlp", "delete", "jobs,pods", "--all", "--grace-period=1")
        with self.client as client:
            live = [job.id for job in self.live()]
            if live:
                client.cancel(live)
        until(self.live, lambda jobs: not jobs)
        (self.place / "said" / "go").unlink(missing_ok=True)

    def _allowed(self) -> str:
        """The token of an account that has what we ship, and nothing else."""
        self.kubectl("apply", "-k", str(DEPLOY))
        self.kubectl("create", "namespace", "nlp")
        self.makes(*(definition(*kind) for kind in KINDS))
        self.kubectl("wait", "--for=condition=established", "crd", "--all", PATIENT)
        for words in BINDINGS:
            where = words[:2] if words[0] == "-n" else ()
            self.kubectl(*where, "create", *words[len(where) :], *ACCOUNT)
        secret = ("-n", "muster", "get", "secret", "muster-token", "-o", "jsonpath={.data.token}")
        said = until(lambda: self.kubectl(*secret), bool)
        return base64.b64decode(said).decode()

    def _gpus(self) -> int:
        with self.client as client:
            return sum(node.gpus for node in client.nodes())


@pytest.fixture(scope="module")
def shared() -> Iterator[Site]:
    with kubernetes_lab() as lab, folder() as place:
        (place / "said").mkdir()
        (place / "said").chmod(0o777)
        found = Site(place, lab)
        try:
            yield found
        finally:
            found.process.stop()


@pytest.fixture
def here(shared: Site) -> Iterator[Site]:
    yield shared
    shared.clears_up()


def test_a_pod_is_a_job_and_stays_its_user_s(here: Site) -> None:
    here.makes(pod(here, "train", "echo trained", gpus=2))

    here.until_phase("train", "Succeeded")

    job = here.until_state(here.job_of("train").id, "completed")
    assert (job.user, job.queue, job.name, job.gpus) == ("ada", "nlp", "train", 2)
    with here.client as client:
        assert b"".join(client.log(job.id)) == b"trained\n"
    assert here.kubectl("-n", "nlp", "logs", "train") == "trained\n"


def test_a_gate_of_ours_is_opened_and_those_of_others_are_left(here: Site) -> None:
    ours, theirs = "muster.io/admission", "example.com/theirs"
    here.makes(
        gated(pod(here, "both", "true"), ours, theirs),
        gated(pod(here, "ours", "exit 3"), ours),
    )

    here.until_phase("ours", "Failed")

    job = here.until_state(here.job_of("ours").id, "failed")
    assert job.exit_code == 3
    assert here.see("pod", "both")["spec"]["schedulingGates"] == [{"name": ours}, {"name": theirs}]
    assert "nodeName" not in here.see("pod", "both")["spec"]


def test_a_pod_group_starts_whole_or_not_at_all(here: Site) -> None:
    here.makes(custom("scheduling.x-k8s.io/v1alpha1", "PodGroup", "big", {"minMember": 3}))
    labels = {"scheduling.x-k8s.io/pod-group": "big"}
    gang = [pod(here, f"big-{n}", "echo $MUSTER_JOB_ID", gpus=2, labels=labels) for n in range(3)]

    here.makes(*gang[:2])
    here.until_told("big-0", "waits for 1 more of 3")
    assert not here.live()
    here.makes(gang[2])

    for number in range(3):
        here.until_phase(f"big-{number}", "Succeeded")
    jobs = {here.job_of(f"big-{number}").id for number in range(3)}
    assert len(jobs) == 1
    assert here.until_state(jobs.pop(), "completed").gpus == 6
    assert len({here.see("pod", f"big-{n}")["spec"]["nodeName"] for n in range(3)}) == 2


def test_replicas_of_a_training_job_start_together(here: Site) -> None:
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    fit = custom("kubeflow.org/v1", "PyTorchJob", "fit", {"pytorchReplicaSpecs": replicas})
    labels = {
        "training.kubeflow.org/job-name": "fit",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
    }
    names = ("fit-master-0", "fit-worker-0", "fit-worker-1")
    pods = [pod(here, name, "true", gpus=1, labels=labels) for name in names]

    here.makes(fit, *pods[:1])
    here.until_told(names[0], "waits for 2 more of 3")
    here.makes(*pods[1:])

    for name in names:
        here.until_phase(name, "Succeeded")
    assert len({here.job_of(name).id for name in names}) == 1


def test_a_job_that_stands_in_a_queue_goes_on_and_its_pods_wait_together(here: Site) -> None:
    here.makes(job(here, "sweep", "true", at_once=2, gpus=GPUS_EACH, completions=4))

    def ended() -> int:
        return int(here.see("job", "sweep").get("status", {}).get("succeeded", 0))

    until(ended, lambda count: count == 4)
    until(here.live, lambda jobs: not jobs)


def test_a_job_that_must_make_room_has_its_grace_stands_and_goes_on_later(here: Site) -> None:
    text = (
        "trap 'sleep 2; echo saved >> /said/low; exit 1' TERM; echo begins >> /said/low; "
        "until test -e /said/go; do sleep 0.2; done; echo ends >> /said/low"
    )
    rank = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    here.makes({**rank, "metadata": {"name": "low"}, "value": -10})
    other = "until test -e /said/go; do sleep 0.2; done"
    for name, runs in (("low", text), ("other", other)):
        low = job(here, name, runs, gpus=GPUS_EACH)
        low["spec"]["template"]["spec"]["priorityClassName"] = "low"
        here.makes(low)
    here.until_said("low", "begins")

    with here.client as client:
        asked: dict[str, Any] = {"job_class": "high", "tasks": 2, "gpus": GPUS_EACH}
        high = client.submit(["sleep", "2"], pools=("lab",), workdir="/", **asked).id

    here.until_said("low", "begins", "saved")
    until(lambda: here.see("job", "low")["spec"]["suspend"], bool)
    here.until_state(high, "completed")
    here.until_said("low", "begins", "saved", "begins")
    here.tells()
    here.until_said("low", "begins", "saved", "begins", "ends")
    status = until(lambda: here.see("job", "low")["status"], lambda it: it.get("succeeded") == 1)
    assert not status.get("failed")


def test_who_cancels_the_job_means_the_pod(here: Site) -> None:
    here.makes(pod(here, "large", "sleep 600", gpus=GPUS_EACH))
    here.makes(pod(here, "larger", "sleep 600", gpus=GPUS_EACH))
    for name in ("large", "larger"):
        here.until_phase(name, "Running")
    here.makes(pod(here, "late", "sleep 600", gpus=1))
    here.until_told("late", "waits")
    late = next(each for each in here.live() if each.name == "late")

    with here.client as client:
        client.cancel([late.id, here.job_of("large").id])

    here.until_phase("late", "gone")
    here.until_phase("large", "gone")
    assert here.phase("larger") == "Running"


def test_a_job_that_was_cancelled_stands_until_its_user_lets_it_go_on(here: Site) -> None:
    here.makes(job(here, "sweep", "until test -e /said/go; do sleep 0.2; done", gpus=1))
    running = until(lambda: [each.id for each in here.live() if each.state == "running"], bool)

    with here.client as client:
        client.cancel(running)

    held = until(lambda: here.see("job", "sweep"), lambda it: it["spec"]["suspend"])
    assert held["metadata"]["annotations"]["muster.io/hold"] == "true"
    here.tells()
    here.kubectl("-n", "nlp", "annotate", "job", "sweep", "muster.io/hold-")
    until(lambda: here.see("job", "sweep")["status"].get("succeeded"), bool)


def test_a_muster_that_was_killed_knows_its_pods_again_and_none_runs_twice(here: Site) -> None:
    waits = "until test -e /said/go; do sleep 0.2; done"
    for name in ("one", "two"):
        here.makes(pod(here, name, f"echo begins >> /said/{name}; {waits}", gpus=GPUS_EACH))
    here.makes(pod(here, "next", "echo begins >> /said/next", gpus=GPUS_EACH))
    for name in ("one", "two"):
        here.until_said(name, "begins")
    here.until_told("next", "waits")
    before = {each.id for each in here.live()}

    here.process.kill()
    here.tells()
    for name in ("one", "two"):
        here.until_phase(name, "Succeeded")
    here.process.start()

    here.until_phase("next", "Succeeded")
    for name in ("one", "two", "next"):
        assert here.until_state(here.job_of(name).id, "completed").id in before
        assert here.said(name) == ["begins"]


def test_the_same_gang_runs_through_sbatch_and_through_kubectl(here: Site) -> None:
    here_bin = here.place / "bin"
    ran(here, sys.executable, "-m", "muster", "slurm", "install", str(here_bin), "--force")
    script = here.place / "gang.sh"
    script.write_text("#!/bin/sh\n#SBATCH -p lab -n 2 --gpus-per-task=3 -J gang\nsleep 3\n")
    marks = {"muster.io/gang": "gang", "muster.io/gang-size": "2"}

    number = int(ran(here, str(here_bin / "sbatch"), "--parsable", str(script)))
    here.makes(*(pod(here, f"gang-{n}", "sleep 3", gpus=3, notes=marks) for n in range(2)))

    for index in range(2):
        here.until_phase(f"gang-{index}", "Succeeded")
    theirs = here.until_state(here.job_of("gang-0").id, "completed")
    ours = here.until_state(number, "completed")
    assert theirs.id == here.job_of("gang-1").id
    assert [each.gpus for each in (ours, theirs)] == [6, 6]
    assert set(ours.nodes) == set(theirs.nodes)


def test_kube_scheduler_packs_as_muster_does_with_its_extender(here: Site) -> None:
    port, config = free_port(), here.place / "scheduler.yaml"
    config.write_text(json.dumps(scheduler(here.lab, port)), encoding="ascii")
    programs = built()
    assert programs is not None
    listen, kubeconfig = f"127.0.0.1:{port}", here.place / "kubeconfig"
    words = (sys.executable, "-m", "muster", "extender")
    extender = Daemon(
        (*words, "--kubeconfig", kubeconfig, "--listen", listen), here.place / "extender.log"
    )
    theirs = Daemon(
        (programs / "kube-scheduler", f"--config={config}", "--secure-port=0"),
        here.place / "scheduler.log",
    )
    names = [f"packed-{number}" for number in range(5)]
    extender.start()
    theirs.start()
    try:
        until(lambda: answers(port), bool)
        for name in names[:3]:
            here.makes(pod(here, name, "sleep 600", gpus=1, scheduler="packer"))
            here.until_phase(name, "Running")
        nodes = [here.see("pod", name)["spec"]["nodeName"] for name in names[:3]]
        here.makes(pod(here, names[3], "sleep 600", gpus=2, scheduler="packer"))
        here.until_phase(names[3], "Running")
        # Who only gives advice stops nobody.
        extender.kill()
        here.makes(pod(here, names[4], "sleep 600", gpus=1, scheduler="packer"))
        here.until_phase(names[4], "Running")
    finally:
        extender.kill()
        theirs.kill()

    assert len(set(nodes)) == 1
    assert here.see("pod", names[3])["spec"]["nodeName"] not in nodes
    assert not here.live()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def scheduler(lab: Lab, port: int) -> Any:
    """Of a kube-scheduler that asks our extender."""
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 10,
        "nodeCacheCapable": True,
        "ignorable": True,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(lab.keys / "scheduler.kubeconfig")},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "packer"}],
        "extenders": [extender],
    }


def ran(here: Site, *words: str) -> str:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("SLURM")}
    environ |= {"MUSTER_HOME": str(here.process.home)}
    run = subprocess.run(  # noqa: S603 -- what a test types
        words, env=environ, cwd=here.place, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def pod(
    here: Site,
    name: str,
    text: str,
    *,
    gpus: int = 1,
    scheduler: str = "muster",
    labels: dict[str, str] | None = None,
    notes: dict[str, str] | None = None,
) -> Any:
    """One that runs a line of shell."""
    metadata = {
        "name": name,
        "namespace": "nlp",
        "labels": labels or {},
        "annotations": notes or {},
    }
    spec = {**template(here, text, gpus), "schedulerName": scheduler}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def template(here: Site, text: str, gpus: int) -> Any:
    # A pod that asks for no CPU is given next to none where the machine is busy.
    amounts = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"cpu": "200m"}}
    container = {
        "name": "main",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", text],
        "resources": amounts,
        "volumeMounts": [{"name": "said", "mountPath": "/said"}],
    }
    return {
        "schedulerName": "muster",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 20,
        "containers": [container],
        "volumes": [{"name": "said", "hostPath": {"path": str(here.place / "said")}}],
    }


def gated(pod: Any, *names: str) -> Any:
    gates = [{"name": name} for name in names]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}


def job(
    here: Site, name: str, text: str, *, gpus: int, at_once: int = 1, completions: int = 0
) -> Any:
    """A Job of batch/v1 that stands in a queue, as Kueue's users make them."""
    spec = {
        "suspend": True,
        "parallelism": at_once,
        "completions": completions or at_once,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [IGNORES_DISRUPTION]},
        "template": {"spec": template(here, text, gpus)},
    }
    labels = {"kueue.x-k8s.io/queue-name": "nlp"}
    metadata = {"name": name, "namespace": "nlp", "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


IGNORES_DISRUPTION = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


def custom(version: str, kind: str, name: str, spec: Any) -> Any:
    metadata = {"name": name, "namespace": "nlp"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def definition(group: str, version: str, kind: str) -> Any:
    """What makes the API server know a kind; its fields are its own."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        },
    }
