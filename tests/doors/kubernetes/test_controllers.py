"""Real kubectl against the controllers of a real Muster, whose pods are real containers."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until

pytestmark = pytest.mark.slow

OVER = {"Succeeded", "Failed"}


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        for tag in ("1.36", "1.37"):
            podman.asks("tag", IMAGE, f"docker.io/library/busybox:{tag}")
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


class Space:
    """One namespace."""

    def __init__(self, house: KubernetesHouse, name: str) -> None:
        self.house = house
        house.has_namespace(name)
        self.name = name
        self._at = f"-n {name}"

    def kubectl(self, line: str, *, stdin: str = "") -> str:
        verb, _, rest = line.partition(" ")
        return self.house.kubectl(f"{verb} {self._at} {rest}", stdin=stdin)

    def refused(self, line: str) -> str:
        verb, _, rest = line.partition(" ")
        return self.house.refused(f"{verb} {self._at} {rest}")

    def get(self, what: str) -> Any:
        found = json.loads(self.kubectl(f"get {what} -o json"))
        return found["items"] if found["kind"].endswith("List") else found

    def comes_true(self, what: Callable[[], bool]) -> None:
        """Within a while, and sooner if it is so sooner."""
        until(what)

    def has_pods(self, count: int) -> list[Any]:
        self.comes_true(lambda: len(self.pods()) == count)
        return self.pods()

    def pods(self) -> list[Any]:
        return [each for each in self.get("pods") if "deletionTimestamp" not in each["metadata"]]

    def deploys(self, name: str = "web", replicas: int = 2) -> None:
        manifest = WEB.replace("web", name).replace("replicas: 2", f"replicas: {replicas}")
        self.kubectl("create -f -", stdin=manifest)

    def all_run(self) -> None:
        """Wait until every pod is ready."""
        self.comes_true(lambda: all(_is_ready(each) for each in self.pods()))

    def all_end(self) -> None:
        """Wait until every pod is over."""
        self.comes_true(lambda: all(each["status"]["phase"] in OVER for each in self.pods()))


def _is_ready(pod: Any) -> bool:
    found = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found)


def test_a_job_runs_and_is_complete(house: KubernetesHouse) -> None:
    space = Space(house, "jobs")
    # Without an engine this is a place of the machine, which others have, too.
    told_at = f"/dev/shm/told-{uuid4()}"  # noqa: S108 -- nobody knows its name
    until_told = f"sh -c 'until [ -e {told_at} ]; do sleep 0.1; done; rm {told_at}; echo hi'"
    space.kubectl(f"create job hello --image=busybox:1.36 -- {until_told}")
    pod = space.has_pods(1)[0]
    assert pod["metadata"]["labels"]["job-name"] == "hello"
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]

    space.kubectl(f"wait --for=condition=ready pod --all {PATIENT}")
    space.kubectl(f"exec {pod['metadata']['name']} -- touch {told_at}")
    space.all_end()
    space.kubectl(f"wait --for=condition=complete job/hello {PATIENT}")

    told = space.kubectl("describe job hello")
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in told
    assert "Created pod: hello-" in told
    assert "Job completed" in told
    assert space.kubectl("get jobs --no-headers").split()[:3] == ["hello", "Complete", "1/1"]
    assert "finalizers" not in space.get("pods")[0]["metadata"]
    space.kubectl("delete job hello")
    space.has_pods(0)


def test_pods_of_a_job_have_the_rights_of_who_created_it(house: KubernetesHouse) -> None:
    space = Space(house, "urgent")
    # More urgent than the usual class: only who administers the queue may ask for it.
    house.kubectl("create priorityclass vip --value=1000000000")
    urgent = INDEXED.replace("restartPolicy", "priorityClassName: vip\n      restartPolicy", 1)
    assert "vip" in urgent
    space.kubectl("create -f -", stdin=urgent)

    space.comes_true(lambda: bool(space.pods()))

    assert space.pods()[0]["spec"]["priorityClassName"] == "vip"
    assert "created-with" not in str(space.get("job indexed"))


def test_many_at_once_do_not_exceed_a_quota(house: KubernetesHouse) -> None:
    space = Space(house, "crowded")
    space.kubectl("create quota few --hard=secrets=3")

    create = "kubectl -n crowded create secret generic s$each --from-literal=a=b"
    house.shell(f"for each in 1 2 3 4 5 6 7 8; do {create} & done; wait")

    assert len(space.get("secrets")) == 3


def test_an_indexed_job_gives_out_its_indexes(house: KubernetesHouse) -> None:
    space = Space(house, "indexed")
    space.kubectl("create -f -", stdin=INDEXED)

    space.kubectl(f"wait --for=condition=complete job/indexed {PATIENT}")

    assert space.get("job indexed")["status"]["completedIndexes"] == "0-3"
    hosts = sorted(each["spec"]["hostname"] for each in space.pods())
    assert hosts == [f"indexed-{index}" for index in range(4)]


def test_a_suspended_job_waits_and_may_choose_its_place(house: KubernetesHouse) -> None:
    space = Space(house, "suspended")
    space.kubectl(
        "create -f -", stdin=INDEXED.replace("completions", "suspend: true\n  completions")
    )
    space.comes_true(lambda: bool(space.get("job indexed").get("status", {}).get("conditions")))
    assert space.pods() == []

    where = '{"spec":{"template":{"spec":{"nodeSelector":{"zone":"a"}}}}}'
    space.kubectl(f"patch job indexed --type=merge -p '{where}'")
    space.kubectl("""patch job indexed --type=merge -p '{"spec":{"suspend":false}}'""")

    assert space.has_pods(2)[0]["spec"]["nodeSelector"] == {"zone": "a"}
    refused = space.refused("""patch job indexed --type=merge -p '{"spec":{"completions":5}}'""")
    assert "spec.completions: Invalid value: 5: field is immutable" in refused


def test_a_deployment_is_rolled_out_undone_and_scaled(house: KubernetesHouse) -> None:
    space = Space(house, "apps")
    space.deploys()
    space.has_pods(2)
    space.all_run()
    status = space.kubectl(f"rollout status deployment/web {PATIENT}")
    assert status.endswith('deployment "web" successfully rolled out\n')
    assert space.kubectl("get deploy --no-headers").split()[:4] == ["web", "2/2", "2", "2"]

    space.kubectl("set image deployment/web busybox=busybox:1.37")
    finish_rollout(space)
    history = space.kubectl("rollout history deployment/web").split()
    assert history[-4:] == ["1", "<none>", "2", "<none>"]

    space.kubectl("rollout undo deployment/web")
    finish_rollout(space)
    notes = space.get("deploy web")["metadata"]["annotations"]
    assert notes["deployment.kubernetes.io/revision"] == "3"
    images = {each["spec"]["containers"][0]["image"] for each in space.pods()}
    assert images == {"busybox:1.36"}

    space.kubectl("scale deployment web --replicas=3")
    space.has_pods(3)
    space.kubectl("rollout restart deployment/web")
    finish_rollout(space)
    told = space.kubectl("describe deployment web")
    assert "Scaled up replica set web-" in told
    assert "NewReplicaSetAvailable" in told


def test_what_a_deployment_owns_goes_as_the_user_says(house: KubernetesHouse) -> None:
    space = Space(house, "cascades")
    for name in ("background", "foreground", "orphan"):
        space.deploys(name, replicas=1)
        space.comes_true(lambda name=name: bool(space.get(f"pods -l app={name}")))
        space.kubectl(f"delete deployment {name} --cascade={name} {PATIENT}")

    for name in ("background", "foreground"):
        space.comes_true(lambda name=name: not space.get(f"pods -l app={name}"))
        assert space.get(f"rs -l app={name}") == []
    kept = space.get("rs -l app=orphan")
    assert "ownerReferences" not in kept[0]["metadata"]
    assert len(space.get("pods -l app=orphan")) == 1


def test_a_cron_job_is_started_by_hand(house: KubernetesHouse) -> None:
    space = Space(house, "cron")
    space.kubectl("create cronjob nightly --image=busybox:1.36 --schedule='0 2 * * *' -- echo")
    refused = space.refused("create cronjob bad --image=busybox:1.36 --schedule='every day' -- x")
    assert "expected exactly 5 fields, found 2: [every day]" in refused

    space.kubectl("create job manual --from=cronjob/nightly")

    pod = space.has_pods(1)[0]
    assert pod["metadata"]["labels"]["job-name"] == "manual"
    shown = space.kubectl("get cronjobs --no-headers").split()
    assert shown[:9] == ["nightly", "0", "2", "*", "*", "*", "<none>", "False", "0"]
    space.kubectl("delete cronjob nightly")
    space.has_pods(0)


def test_a_stateful_set_starts_its_pods_in_order(house: KubernetesHouse) -> None:
    space = Space(house, "sets")
    space.kubectl("create -f -", stdin=DB)
    space.has_pods(3)
    space.all_run()
    begun = {
        each["metadata"]["name"]: each["metadata"]["creationTimestamp"] for each in space.pods()
    }
    assert sorted(begun, key=lambda name: (begun[name], name)) == ["db-0", "db-1", "db-2"]
    space.kubectl(f"rollout status statefulset/db {PATIENT}")

    space.kubectl("scale sts db --replicas=1")
    space.has_pods(1)

    # A pod that is ending counts until it has ended.
    space.comes_true(lambda: space.kubectl("get sts --no-headers").split()[:2] == ["db", "1/1"])


def test_a_budget_refuses_the_eviction_that_is_too_many(house: KubernetesHouse) -> None:
    space = Space(house, "budgets")
    space.deploys()
    space.has_pods(2)
    space.all_run()
    space.kubectl("create pdb guard --selector=app=web --min-available=1")
    space.comes_true(lambda: allows(space, 1))
    evict(space, space.pods()[0]["metadata"]["name"])
    # The next one is there soon: only a budget that needs all of them refuses for long.
    space.has_pods(2)
    space.all_run()
    space.kubectl("""patch pdb guard --type=merge -p '{"spec":{"minAvailable":2}}'""")
    space.comes_true(lambda: allows(space, 0))
    line, body = eviction("budgets", space.pods()[0]["metadata"]["name"])
    refused = house.refused(line, stdin=body)

    assert refused == (
        "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's"
        " disruption budget.\n"
    )
    shown = space.kubectl("get pdb --no-headers").split()
    assert shown[:4] == ["guard", "2", "N/A", "0"]


def test_an_autoscaler_says_that_nothing_is_measured(house: KubernetesHouse) -> None:
    space = Space(house, "scaled")
    space.deploys()
    space.kubectl("autoscale deployment web --min=1 --max=4 --cpu=80%")
    space.comes_true(lambda: bool(space.get("hpa web").get("status", {}).get("conditions")))

    told = space.kubectl("describe hpa web")

    assert "FailedGetResourceMetric" in told
    assert "AbleToScale" in told


def test_a_namespace_goes_with_everything_in_it(house: KubernetesHouse) -> None:
    space = Space(house, "leaving")
    space.deploys()
    space.has_pods(2)
    space.comes_true(lambda: bool(space.get("cm kube-root-ca.crt")))

    house.kubectl(f"delete namespace leaving {PATIENT}")

    assert "not found" in house.refused("get ns leaving")


def allows(space: Space, count: int) -> bool:
    """May so many go, by a budget that has seen its last change and two healthy pods?"""
    found = space.get("pdb guard")
    status = found.get("status", {})
    return (
        status.get("observedGeneration") == found["metadata"]["generation"]
        and status.get("currentHealthy") == 2
        and status.get("disruptionsAllowed") == count
    )


def evict(space: Space, pod: str) -> None:
    line, body = eviction(space.name, pod)
    space.house.kubectl(line, stdin=body)


def eviction(namespace: str, pod: str) -> tuple[str, str]:
    """A line that asks for it, and what is asked."""
    wanted = {"name": pod, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": wanted}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    return f"create --raw {path} -f -", json.dumps(body)


def finish_rollout(space: Space) -> None:
    def is_over() -> bool:
        found = space.get("deploy web")
        status, wanted = found["status"], found["spec"]["replicas"]
        counts = (status.get(each, 0) for each in ("updatedReplicas", "replicas", "readyReplicas"))
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return is_seen and all(each == wanted for each in counts)

    space.comes_true(is_over)


WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: busybox, image: "busybox:1.36", command: [sleep, "3600"]}]
"""
INDEXED = """
apiVersion: batch/v1
kind: Job
metadata: {name: indexed}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1.36", command: ["true"]}]
"""
DB = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "busybox:1.36", command: [sleep, "3600"]}]
"""
