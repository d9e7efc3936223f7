"""Pods of Muster's Kubernetes API as pods of a real Kubernetes, with a real kubectl."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contracts.backends.kubernetes_engine import kubernetes_lab
from doors.kubernetes.cluster import KubernetesHouse
from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab
from live.house import Process, ended, folder, until
from muster.settings import KubernetesCluster, KubernetesListen, Settings

pytestmark = pytest.mark.slow

Json = dict[str, Any]

THERE = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with kubernetes_lab() as found:
        yield found


@pytest.fixture(scope="module")
def site(lab: Lab) -> Iterator["Site"]:
    with one_site(lab) as found:
        yield found


class Site:
    """A Muster on a machine without GPUs, with one Kubernetes cluster beside it, and kubectl."""

    def __init__(self, house: KubernetesHouse, process: Process, lab: Lab) -> None:
        self.house, self.process, self.lab = house, process, lab

    def enters(self) -> None:
        """Have kubectl use this Muster, wherever it listens now."""
        entry = self.house.shell("muster kubeconfig")
        assert entry.code == 0, entry.err
        self.house.keeps_its_token()

    def applies(self, *documents: Json) -> str:
        listed = {"apiVersion": "v1", "kind": "List", "items": documents}
        return self.house.kubectl("apply -f -", stdin=json.dumps(listed))

    def pod(self, name: str) -> Json:
        found: Json = json.loads(self.house.kubectl(f"get pod {name} -o json"))
        return found

    def until_phase(self, name: str, phase: str) -> Json:
        return until(lambda: self.pod(name), lambda pod: pod["status"].get("phase") == phase)

    def until_logged(self, name: str, text: str) -> str:
        return until(
            lambda: self.house.shell(f"kubectl logs {name}").out, lambda said: text in said
        )

    def there(self) -> dict[str, Json]:
        """The pods of the cluster, by those that they are here."""
        return {
            each["metadata"]["annotations"]["muster.io/pod"].partition("/")[2]: each
            for each in self.lab.ask(THERE)["items"]
            if "muster.io/pod" in each["metadata"].get("annotations", {})
        }


@contextmanager
def one_site(lab: Lab) -> Generator[Site]:
    with folder() as place:
        place.chmod(0o777)
        (place / "work").mkdir()
        house = KubernetesHouse(root=place)
        cluster = KubernetesCluster(name="lab", kubeconfig=str(lab.kubeconfig), image=BUSYBOX)
        process = Process(
            place / "home",
            Settings(
                mail_program="none",
                nodes=1,
                gpus="0",
                clusters=(cluster,),
                kubernetes=KubernetesListen(host="127.0.0.1", port=0),
            ),
        )
        process.start()
        try:
            with process.client() as client:
                until(lambda: sum(each.gpus for each in client.nodes()), bool)
            found = Site(house, process, lab)
            found.enters()
            yield found
        finally:
            with process.client() as client:
                jobs = [job.id for job in client.all_jobs()]
                if jobs:
                    client.cancel(jobs)
                    ended(client, jobs)
            process.stop()


def container(text: str, **more: Any) -> Json:
    """A line of shell, with a GPU."""
    return {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sh", "-c", text],
        "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 1, "memory": "64Mi"}},
    } | more


def pod(name: str, text: str, **spec: Any) -> Json:
    own = container(text, **spec.pop("container", {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | spec.pop("metadata", {}),
        "spec": {"restartPolicy": "Never", "containers": [own]} | spec,
    }


def state_of(document: Json) -> Json:
    found: Json = document["status"]["containerStatuses"][0]
    return found


def test_a_pod_runs_there_and_says_how_it_ended(site: Site) -> None:
    site.applies(pod("one", 'echo "on $MUSTER_NODE with $NVIDIA_VISIBLE_DEVICES"; exit 3'))

    over = site.until_phase("one", "Failed")

    ran = state_of(over)["state"]["terminated"]
    assert (ran["exitCode"], ran["reason"]) == (3, "Error")
    assert ran["startedAt"] <= ran["finishedAt"]
    assert over["spec"]["nodeName"].startswith("muster-node")
    said = site.house.kubectl("logs one")
    assert said.startswith(f"on {over['spec']['nodeName']} with ")
    assert said.split()[-1] not in {"with", "void"}
    stamped = site.house.kubectl("logs one --timestamps")
    assert stamped.partition(" ")[0] > ran["startedAt"].removesuffix("Z")


def test_init_containers_configmaps_secrets_and_volumes_are_there_too(site: Site) -> None:
    site.house.kubectl("create configmap rates --from-literal=rate=0.1")
    site.house.kubectl("create secret generic key --from-literal=token='s3 $cret'")
    fields = {"NODE": "spec.nodeName", "HOST": "status.hostIP", "OWN": "status.podIP"}
    env = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
        {"name": "SAID", "value": "rate=$(rate)"},
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]
    mounts = [
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "rates", "mountPath": "/rates"},
        {"name": "key", "mountPath": "/key", "readOnly": True},
    ]
    text = "cat /scratch/made /rates/rate /key/in/token; echo; env; sleep 2"
    more: Json = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "rates"}}],
        "volumeMounts": mounts,
        "readinessProbe": {"exec": {"command": ["test", "-e", "/scratch/made"]}},
    }
    init = {
        "name": "first",
        "image": BUSYBOX,
        "command": ["sh", "-c", "echo init; echo -n 'made '> /scratch/made"],
        "volumeMounts": mounts[:1],
    }
    items = [{"key": "token", "path": "in/token", "mode": 0o400}]
    volumes: list[Json] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "rates", "configMap": {"name": "rates"}},
        {"name": "key", "secret": {"secretName": "key", "items": items}},
    ]
    site.applies(pod("reads", text, container=more, initContainers=[init], volumes=volumes))

    there = until(site.there, lambda found: "reads" in found)["reads"]
    over = site.until_phase("reads", "Succeeded")

    said = site.house.kubectl("logs reads").splitlines()
    assert said[0] == "made 0.1s3 $cret"
    assert {"TOKEN=s3 $cret", "SAID=rate=0.1", f"NODE={over['spec']['nodeName']}"} <= set(said)
    assert f"OWN={over['status']['podIP']}" in said
    assert f"HOST={over['status']['hostIP']}" in said
    assert site.house.kubectl("logs reads -c first") == "init\n"
    assert over["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert "s3" not in str(there["spec"])


def test_a_container_that_fails_begins_again_and_is_counted(site: Site) -> None:
    text = "test -e /kept/once && exit 0; echo first; touch /kept/once; exit 4"
    kept: Json = {"volumeMounts": [{"name": "kept", "mountPath": "/kept"}]}
    volumes: list[Json] = [{"name": "kept", "emptyDir": {}}]
    site.applies(pod("again", text, container=kept, volumes=volumes, restartPolicy="OnFailure"))

    status = state_of(site.until_phase("again", "Succeeded"))

    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 4
    assert site.house.kubectl("logs again --previous") == "first\n"


def test_a_deleted_pod_has_its_grace_and_its_last_words_are_heard(site: Site) -> None:
    text = "trap 'echo bye; sleep 1; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    site.applies(pod("leaves", text, terminationGracePeriodSeconds=20))
    site.until_logged("leaves", "up")

    following = "kubectl logs -f leaves & kubectl delete pod leaves --wait; wait"
    assert "bye" in site.house.shell(following).out
    until(site.there, lambda found: "leaves" not in found)


def test_a_pod_waits_for_the_configmap_that_it_names(site: Site) -> None:
    more = {"envFrom": [{"configMapRef": {"name": "later"}}]}
    site.applies(pod("early", "echo $late", container=more))

    def waiting() -> str:
        listed: list[Json] = site.pod("early")["status"].get("containerStatuses") or []
        return str([each["state"] for each in listed])

    assert 'configmap "later" not found' in until(waiting, lambda said: "ConfigError" in said)
    site.house.kubectl("create configmap later --from-literal=late=there")
    site.until_phase("early", "Succeeded")

    assert site.house.kubectl("logs early") == "there\n"


def test_a_muster_that_was_killed_takes_its_pods_over(site: Site) -> None:
    text = "echo begins; until test -e /tmp/go; do sleep 0.2; done; exit 6"
    site.applies(pod("long", text))
    site.until_logged("long", "begins")
    before = site.there()["long"]["metadata"]["uid"]

    site.process.kill()
    site.process.start()
    site.enters()

    assert site.until_phase("long", "Running")["status"]["podIP"]
    assert site.there()["long"]["metadata"]["uid"] == before
    site.house.kubectl("exec long -- touch /tmp/go")
    over = site.until_phase("long", "Failed")
    assert state_of(over)["state"]["terminated"]["exitCode"] == 6
    assert state_of(over)["restartCount"] == 0
    assert site.house.kubectl("logs long") == "begins\n"


def test_people_type_into_containers_that_take_it(site: Site) -> None:
    where = f"--image={BUSYBOX} --restart=Never --annotations=muster.io/cluster=lab"

    said = site.house.shell(
        f"kubectl run typed -i -q {where} -- sh", stdin="echo $((6 * 7)); exit 3\n"
    )

    assert said.out == "42\n", said.err
    assert said.code == 3
    over = site.until_phase("typed", "Failed")
    assert state_of(over)["state"]["terminated"]["exitCode"] == 3


def test_people_get_into_their_pods_there(site: Site) -> None:
    text = "echo beats > /tmp/index.html; httpd -p 8080 -h /tmp; while :; do echo up; sleep 1; done"
    site.applies(pod("open", text, terminationGracePeriodSeconds=1))
    site.until_logged("open", "up")

    assert site.house.kubectl("exec open -- cat /tmp/index.html") == "beats\n"
    assert site.house.kubectl("exec -i open -- wc -c", stdin="12345") == "5\n"
    failed = site.house.shell("kubectl exec open -- sh -c 'echo wrong >&2; exit 7'")
    assert (failed.code, failed.err.splitlines()[0]) == (7, "wrong")
    missing = site.house.shell("kubectl exec open -- no-such-program")
    assert 'exec: "no-such-program"' in missing.err
    assert missing.err.count("error executing command in container") == 1
    assert missing.code
    site.house.shell("echo copied > mine")
    site.house.kubectl("cp mine open:/tmp/theirs")
    assert site.house.kubectl("exec open -- cat /tmp/theirs") == "copied\n"
    watched = site.house.shell("timeout 5 kubectl attach open")
    assert "up" in watched.out
    forwarded = site.house.shell(
        "kubectl port-forward pod/open :8080 > ports & "
        "until grep -q Forwarding ports; do sleep 0.1; done; "
        "port=$(sed -n 's/.*127.0.0.1:\\([0-9]*\\) .*/\\1/p' ports); "
        "curl -sS http://127.0.0.1:$port/; kill %1"
    )
    assert forwarded.out == "beats\n", forwarded.err
    site.house.kubectl("delete pod open")


def test_what_is_not_to_be_had_there_is_refused_in_words(site: Site) -> None:
    volumes = [{"name": "data", "hostPath": {"path": "/data"}}]
    document = pod("hosted", "sleep 1", volumes=volumes)
    document["metadata"]["annotations"] = {"muster.io/cluster": "lab"}

    said = site.house.refused("apply -f -", stdin=json.dumps(document))

    assert "Cluster lab mounts no folders of its nodes in pods" in said


def test_a_pod_that_only_this_machine_can_run_says_why_it_waits(site: Site) -> None:
    site.applies(
        pod(
            "waits",
            "true",
            container={"lifecycle": {"stopSignal": "SIGUSR1"}},
            os={"name": "linux"},
        )
    )

    said = until(
        lambda: site.house.kubectl("describe pod waits"), lambda text: "FailedScheduling" in text
    )

    assert "node(s) of cluster lab, which ends containers with SIGTERM alone" in " ".join(
        said.split()
    )
    site.house.kubectl("delete pod waits")


def test_a_job_of_kubernetes_runs_its_pods_there(site: Site) -> None:
    site.applies(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "parts"},
            "spec": {
                "completions": 3,
                "parallelism": 2,
                "completionMode": "Indexed",
                "template": {"spec": pod("", 'echo "part $JOB_COMPLETION_INDEX"')["spec"]},
            },
        }
    )

    site.house.kubectl("wait --for=condition=complete job/parts --timeout=55s")

    logs = site.house.kubectl("logs -l job-name=parts --prefix=false --tail=-1")
    assert sorted(logs.splitlines()) == ["part 0", "part 1", "part 2"]


def a_gang(name: str, master: str, worker: str, gpus: int = 3) -> Json:
    """Two pods that start together, and end as the first of them does."""
    specs = [pod("", text)["spec"] for text in (master, worker)]
    for each in specs:
        each["containers"][0]["name"] = "pytorch"
        each["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus
    replicas = [{"replicas": 1, "template": {"spec": each}} for each in specs]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": replicas[0], "Worker": replicas[1]}},
    }


def test_a_pytorchjob_is_a_gang_there(site: Site) -> None:
    text = 'echo "rank $RANK of $WORLD_SIZE on $(hostname) meets $MASTER_ADDR:$PET_MASTER_PORT"; '
    site.applies(a_gang("train", f"{text} sleep 3", f"{text} sleep 600"))

    said = site.until_logged("train-worker-0", "meets")
    site.until_logged("train-master-0", "meets")
    there = site.there()
    site.house.kubectl("wait --for=condition=Succeeded pytorchjob/train --timeout=55s")

    master = there["train-master-0"]
    service = master["spec"]["subdomain"]
    assert said.startswith(
        f"rank 1 of 2 on train-worker-0 meets train-master-0.{service}.default.svc:"
    )
    assert said.strip().rpartition(":")[2].isdecimal()
    nodes = {there[f"train-{each}-0"]["spec"]["nodeName"] for each in ("master", "worker")}
    assert len(nodes) == 2
    assert "train-worker-0" in site.there()
    site.house.kubectl("delete pytorchjob train")
    until(site.there, lambda found: not {"train-master-0", "train-worker-0"} & found.keys())


def test_one_pod_of_a_gang_can_be_deleted_while_the_other_goes_on(site: Site) -> None:
    spec = pod("", "sleep 600")["spec"]
    marks = {"muster.io/gang": "pair", "muster.io/gang-size": "2"}
    site.applies(
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "annotations": marks},
                "spec": {**spec, "terminationGracePeriodSeconds": 1},
            }
            for name in ("pair-a", "pair-b")
        )
    )
    for name in ("pair-a", "pair-b"):
        site.until_phase(name, "Running")

    site.house.kubectl("delete pod pair-b --wait")

    assert site.pod("pair-a")["status"]["phase"] == "Running"
    until(site.there, lambda found: "pair-b" not in found)
    site.house.kubectl("delete pod pair-a --wait")
    until(site.there, lambda found: "pair-a" not in found)


def test_the_same_gang_by_sbatch_and_by_kubectl_is_shown_alike(site: Site) -> None:
    slurm = 'eval "$(muster slurm env)";'
    asked = "-p lab -J same -N 2 --ntasks-per-node=1 --gres=gpu:2 -c 1 --mem=64M"
    job = int(site.house.shell(f"{slurm} sbatch --parsable {asked} --wrap 'sleep 600'").out)
    site.applies(a_gang("same", "sleep 600", "sleep 600", gpus=2))

    def shown() -> list[Json]:
        listed: list[Json] = json.loads(site.house.shell("muster ps -o json").out)
        return [each for each in listed if each["name"].startswith("same")]

    both = until(shown, lambda found: [each["state"] for each in found] == ["running"] * 2)
    by_sbatch, by_kubectl = sorted(both, key=lambda each: each["id"] != job)
    pods = until(lambda: running_pods(site), lambda found: len(found) == 4)

    of_script = {node for name, node in pods.items() if name.startswith(f"same-{job}-")}
    assert of_script == set(by_sbatch["nodes"])
    assert {pods["same-master-0"], pods["same-worker-0"]} == set(by_kubectl["nodes"])
    squeue = site.house.shell(f"{slurm} squeue -h -n same,same-master-0 -o '%T %D'").out
    there = [
        each["spec"]["nodeName"]
        for each in site.lab.ask(THERE)["items"]
        if each["metadata"]["labels"].get("muster.io/job") in {str(job), str(by_kubectl["id"])}
    ]
    assert "RUNNING 2" in squeue
    assert sorted(there) == sorted(pods.values())
    site.house.kubectl("delete pytorchjob same")
    site.house.kubectl(f"delete pod -l muster.io/job={job} --grace-period=1")
    until(shown, lambda found: not found)


def running_pods(site: Site) -> dict[str, str]:
    """The nodes of those that run, as Muster's own API shows them."""
    listed = json.loads(site.house.kubectl("get pods -o json"))["items"]
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in listed
        if each["metadata"]["name"].startswith("same") and each["status"]["phase"] == "Running"
    }
