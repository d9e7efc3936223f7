"""Real kubectl, real containers: jobs and queues of Volcano and KAI, and Workloads of Kueue."""

import json
from collections.abc import Iterator

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until

pytestmark = pytest.mark.slow

SMALL = {"cpu": "100m", "memory": "64Mi"}


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


def template(says: str, **limits: str) -> dict[str, object]:
    main = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", says],
        "resources": {"limits": {**SMALL, **limits}},
    }
    spec = {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [main]}
    return {"spec": spec}


def manifest(api: str, kind: str, name: str, **spec: object) -> str:
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})


def queue(name: str, **spec: object) -> str:
    return manifest("scheduling.volcano.sh/v1beta1", "Queue", name, **spec)


def test_a_job_of_volcano_is_one_job_in_its_queue(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('volcano')}"
    house.kubectl("apply -f -", stdin=queue("lab", weight=2))
    house.kubectl("apply -f -", stdin=queue("vision", parent="lab"))
    assert "lab/vision" in house.shell("muster queues -o json").out
    says = 'echo "$RANK $VC_WORKER_HOSTS"; cat /etc/volcano/worker.host'
    tasks = [
        {"name": "master", "replicas": 1, "template": template(says, **{"nvidia.com/gpu": "1"})},
        {"name": "worker", "replicas": 2, "template": template(says)},
    ]

    plugins: dict[str, list[str]] = {"svc": [], "env": [], "pytorch": []}
    job = manifest(
        "batch.volcano.sh/v1alpha1",
        "Job",
        "net",
        minAvailable=3,
        schedulerName="volcano",
        queue="vision",
        plugins=plugins,
        tasks=tasks,
    )
    house.kubectl(f"apply {place} -f -", stdin=job)
    house.kubectl(
        f"wait {place} --for=jsonpath='{{.status.state.phase}}'=Completed vcjob/net {PATIENT}"
    )

    told = house.kubectl(f"logs {place} net-worker-1").splitlines()
    assert told == ["2 net-worker-0,net-worker-1", "net-worker-0", "net-worker-1"]
    job_of_muster = (f"net-{uid(house, place)}", "lab/vision")
    until(lambda: ended(house).count(job_of_muster) == 1)
    shown = house.kubectl(f"get vcjob {place}").splitlines()
    assert shown[1].split()[:2] == ["net", "Completed"]
    until(lambda: "Completed" in house.kubectl(f"get podgroups.scheduling.volcano.sh {place}"))
    house.kubectl(f"delete vcjob net {place} {PATIENT}")
    until(lambda: house.kubectl(f"get pods {place} -o name") == "")
    house.kubectl("delete queues.scheduling.volcano.sh vision lab")
    assert "lab" not in house.shell("muster queues").out


def ended(house: KubernetesHouse) -> list[tuple[str, str]]:
    """Name and queue of each job that is over; its pods may say so a moment sooner."""
    history = json.loads(house.shell("muster history -o json").out)
    return [(each["name"], each["queue"]) for each in history]


def uid(house: KubernetesHouse, place: str) -> str:
    return house.kubectl(f"get vcjob net {place} -o jsonpath='{{.metadata.uid}}'")


def test_a_job_of_volcano_in_a_queue_that_is_not_there_says_so(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('nowhere')}"
    tasks = [{"name": "main", "replicas": 1, "template": template("true")}]
    job = manifest("batch.volcano.sh/v1alpha1", "Job", "lost", queue="no-such", tasks=tasks)

    house.kubectl(f"apply {place} -f -", stdin=job)

    until(
        lambda: (
            'Queue of Volcano "no-such" not found' in house.kubectl(f"describe vcjob lost {place}")
        )
    )


def test_a_pod_waits_in_the_queue_of_kai_that_it_names(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('kai')}"
    gpus = {"gpu": {"quota": 1, "limit": 1, "overQuotaWeight": 1}}
    house.kubectl(
        "apply -f -", stdin=manifest("scheduling.run.ai/v2", "Queue", "tiny", resources=gpus)
    )
    labels = json.dumps({"metadata": {"labels": {"kai.scheduler/queue": "tiny"}}})
    limits = {**SMALL, "nvidia.com/gpu": "2"}
    spec = json.dumps(
        {
            **json.loads(labels),
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "p", "image": IMAGE, "resources": {"limits": limits}}],
            },
        }
    )

    refused = house.shell(f"kubectl run p {place} --image={IMAGE} --overrides='{spec}'")

    said = refused.err + house.shell(f"kubectl describe pod p {place}").out
    assert "tiny allows" in said or "limit" in said, said
    house.shell(f"kubectl delete pod p {place} {PATIENT}")


def test_a_job_in_a_queue_of_kueue_has_a_workload(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('kueue')}"
    covered = ["nvidia.com/gpu"]
    flavors = [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 2}]}]
    api = "kueue.x-k8s.io/v1beta1"
    house.kubectl("apply -f -", stdin=manifest(api, "ResourceFlavor", "f"))
    house.kubectl(
        "apply -f -",
        stdin=manifest(
            api,
            "ClusterQueue",
            "crew",
            namespaceSelector={},
            resourceGroups=[{"coveredResources": covered, "flavors": flavors}],
        ),
    )
    house.kubectl(
        f"apply {place} -f -", stdin=manifest(api, "LocalQueue", "main", clusterQueue="crew")
    )
    job = json.loads(manifest("batch/v1", "Job", "quick", suspend=True, template=template("true")))
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}

    house.kubectl(f"apply {place} -f -", stdin=json.dumps(job))
    named = "-l kueue.x-k8s.io/job-uid"
    house.kubectl(f"wait {place} --for=condition=Complete job/quick {PATIENT}")
    until(lambda: "True" in house.kubectl(f"get workloads.kueue.x-k8s.io {place} {named}"))
    house.kubectl(
        f"wait {place} --for=condition=Finished workloads.kueue.x-k8s.io {named} {PATIENT}"
    )

    shown = house.kubectl(f"get workloads.kueue.x-k8s.io {place}").splitlines()
    assert shown[0].split() == ["NAME", "QUEUE", "RESERVED", "IN", "ADMITTED", "FINISHED", "AGE"]
    assert shown[1].split()[1:5] == ["main", "crew", "True", "True"]
    house.kubectl(f"delete job quick {place} {PATIENT}")
    until(lambda: house.kubectl(f"get workloads.kueue.x-k8s.io {place} -o name") == "")
