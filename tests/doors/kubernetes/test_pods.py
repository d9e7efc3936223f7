"""Real kubectl, real containers: pods from their creation to their end."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until

pytestmark = pytest.mark.slow


TWO = f"""
apiVersion: v1
kind: Pod
metadata: {{name: two, labels: {{rank: "3"}}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: first
    image: {IMAGE}
    command: [sh, -c, "echo from first > /w/x"]
    volumeMounts: [{{name: w, mountPath: /w}}]
  containers:
  - name: main
    image: {IMAGE}
    command:
    - sh
    - -c
    - cat /w/x /cfg/lr; echo; echo $RANK $PW; echo $NVIDIA_VISIBLE_DEVICES; exit 3
    env:
    - {{name: RANK, valueFrom: {{fieldRef: {{fieldPath: "metadata.labels['rank']"}}}}}}
    - {{name: PW, valueFrom: {{secretKeyRef: {{name: sec, key: pw}}}}}}
    resources: {{limits: {{nvidia.com/gpu: "1", cpu: 100m, memory: 64Mi}}}}
    volumeMounts: [{{name: w, mountPath: /w}}, {{name: cfg, mountPath: /cfg}}]
  - {{name: beside, image: "{IMAGE}", command: [sh, -c, "echo beside"]}}
  volumes: [{{name: w, emptyDir: {{}}}}, {{name: cfg, configMap: {{name: cfg}}}}]
"""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


def a_pod(house: KubernetesHouse, place: str, name: str) -> dict[str, Any]:
    return json.loads(house.kubectl(f"get pod {name} {place} -o json"))


def test_a_pod_runs_as_a_job_and_is_shown_as_a_pod(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('two')}"
    house.kubectl(f"create configmap cfg {place} --from-literal=lr=0.1")
    house.kubectl(f"create secret generic sec {place} --from-literal=pw=hunter2")

    house.kubectl(f"apply {place} -f -", stdin=TWO)
    house.kubectl(f"wait {place} --for=jsonpath='{{.status.phase}}'=Failed pod/two {PATIENT}")

    pod = a_pod(house, place, "two")
    states = {each["name"]: each["state"] for each in pod["status"]["containerStatuses"]}
    assert states["main"]["terminated"]["exitCode"] == 3
    assert states["beside"]["terminated"]["reason"] == "Completed"
    log = house.kubectl(f"logs {place} two -c main").splitlines()
    assert log[:3] == ["from first", "0.1", "3 hunter2"]
    assert log[3]
    assert house.kubectl(f"logs {place} two -c beside") == "beside\n"
    described = house.kubectl(f"describe pod two {place}")
    assert "Successfully assigned two/two to" in described
    assert "spec.containers{main}: Container started" in described
    assert "main" in house.kubectl(f"get pod two {place} -o wide") or "two" in described
    assert "two" in house.shell("muster history").out


def test_a_pod_runs_when_its_container_does_and_not_before(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('phases')}"
    shown = "custom-columns=PHASE:.status.phase,AT:.status.containerStatuses[0].state.running"
    sees = f"kubectl get pods {place} -w --no-headers -o '{shown}' > phases.txt & watch=$!"
    makes = f"kubectl run brief {place} --image={IMAGE} --restart=Never --command -- sleep 1"
    waits = f"kubectl wait pod/brief --for=jsonpath='{{.status.phase}}'=Succeeded {PATIENT}"

    ran = house.shell(f"{sees}; {makes} && {waits} {place}; kill $watch")

    assert ran.code == 0, ran.err
    lines = [line.split() for line in (house.work / "phases.txt").read_text().splitlines()]
    phases = [phase for phase, _ in lines]
    assert phases == sorted(phases), lines
    assert len({at for _, at in lines if at != "<none>"}) == 1, lines


def test_a_pod_that_fits_nowhere_says_why(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('large')}"
    asked = {"name": "big", "image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    limits = json.dumps({"spec": {"containers": [asked]}})
    for name in ("one", "two", "three"):
        house.kubectl(f"run {name} {place} --image={IMAGE} --overrides='{limits}' -- sleep 100")

    def waiting() -> list[str]:
        listed = json.loads(house.kubectl(f"get pods {place} -o json"))["items"]
        return [
            condition["message"]
            for each in listed
            for condition in each["status"].get("conditions", ())
            if condition.get("reason") == "Unschedulable" and condition.get("message")
        ]

    until(lambda: any("Insufficient nvidia.com/gpu" in each for each in waiting()))
    assert waiting()[0].startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    house.kubectl(f"delete pods --all {place} --now {PATIENT}")


def test_logs_are_followed_and_a_deleted_pod_is_asked_to_end(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('follow')}"
    polite = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.1; done"

    house.kubectl(
        f'run polite {place} --image={IMAGE} --restart=Never --command -- sh -c "{polite}"'
    )
    house.kubectl(f"wait {place} --for=condition=Ready pod/polite {PATIENT}")
    # Who is told to end before it listens is ended after its grace, as anywhere.
    until(lambda: house.kubectl(f"logs polite {place}") == "up\n")
    ends = f"kubectl delete pod polite {place} {PATIENT}"
    followed = house.shell(f"kubectl logs -f polite {place} > followed.txt & {ends}; wait")

    assert followed.code == 0
    assert (house.work / "followed.txt").read_text().splitlines() == ["up", "bye"]
    assert "not found" in house.refused(f"get pod polite {place}")
    until(lambda: "polite" not in house.shell("muster ps").out)


def test_what_changes_of_a_pod_changes_of_its_job(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('changes')}"
    waits = {"spec": {"nodeSelector": {"rack": "nowhere"}, "restartPolicy": "Never"}}
    given = f"--image=local/none:1 --overrides='{json.dumps(waits)}'"
    house.kubectl(f'run late {place} {given} --command -- sh -c "echo it runs; sleep 600"')
    brief = json.dumps({"spec": {"terminationGracePeriodSeconds": 1}})
    house.kubectl(f"run on {place} --image={IMAGE} --overrides='{brief}' --command -- sleep 600")
    house.kubectl(f"wait {place} --for=condition=Ready pod/on {PATIENT}")

    house.kubectl(f"label pod late on {place} app=x")
    house.kubectl(f"set image pod/late {place} late={IMAGE}")
    house.kubectl(f"set image pod/on {place} on={IMAGE}-other")
    house.kubectl(f"patch pod on {place} -p '{json.dumps({'spec': {'activeDeadlineSeconds': 1}})}'")

    number = house.shell("muster ps").out.split("late")[0].split()[-1]
    assert "app: x" in house.shell(f"muster show -o yaml {number}").out
    until(lambda: a_pod(house, place, "on")["status"].get("reason") == "DeadlineExceeded")
    noted = a_pod(house, place, "on")["metadata"]["annotations"]["muster.io/warnings"]
    assert "spec.containers[0].image has no effect" in noted
    house.kubectl("label node --all rack=nowhere")
    house.kubectl(f"wait {place} --for=condition=Ready pod/late {PATIENT}")
    assert house.kubectl(f"logs late {place}") == "it runs\n"
    house.kubectl("label node --all rack-")
    house.kubectl(f"delete pods --all {place} --now {PATIENT}")


def test_a_pod_beyond_the_rights_of_its_person_is_refused(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('rights')}"
    overrides = '{"spec":{"hostNetwork":true}}'

    refused = house.refused(f"run bad {place} --image={IMAGE} --overrides='{overrides}'")

    assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in refused


def test_nodes_are_nodes(house: KubernetesHouse) -> None:
    until(lambda: house.kubectl("get nodes -o name").count("node/") == 2)
    nodes = json.loads(house.kubectl("get nodes -o json"))["items"]

    assert [each["status"]["capacity"]["nvidia.com/gpu"] for each in nodes] == ["4", "4"]
    assert "A100" in nodes[0]["metadata"]["labels"]["nvidia.com/gpu.product"]


READS_ON = f"""
apiVersion: v1
kind: Pod
metadata: {{name: reads}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command:
    - sh
    - -c
    - cat /cfg/lr; echo; until grep -q 0.2 /cfg/lr; do sleep 0.2; done; cat /cfg/lr
    volumeMounts: [{{name: cfg, mountPath: /cfg}}]
  volumes: [{{name: cfg, configMap: {{name: cfg}}}}]
"""


def test_a_running_pod_reads_what_its_config_map_says_now(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('reads')}"
    house.kubectl(f"create configmap cfg {place} --from-literal=lr=0.1")
    house.kubectl(f"apply {place} -f -", stdin=READS_ON)
    until(lambda: "0.1" in house.shell(f"kubectl logs {place} reads").out)

    house.kubectl(f'patch {place} configmap cfg --type merge -p \'{{"data":{{"lr":"0.2"}}}}\'')

    house.kubectl(f"wait {place} --for=jsonpath='{{.status.phase}}'=Succeeded pod/reads {PATIENT}")
    assert house.kubectl(f"logs {place} reads").split() == ["0.1", "0.2"]


SOMEBODY_ELSE = f"""
apiVersion: v1
kind: Pod
metadata: {{name: else}}
spec:
  restartPolicy: Never
  securityContext: {{runAsUser: 1234, runAsGroup: 2345, fsGroup: 3456}}
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "id; cat /sec/pw; echo bye > /dev/termination-log"]
    volumeMounts: [{{name: sec, mountPath: /sec}}]
  - {{name: beside, image: "{IMAGE}", command: [env], env: [{{name: data-1, value: dashed}}]}}
  volumes: [{{name: sec, secret: {{secretName: sec, defaultMode: 0400}}}}]
"""


def test_a_pod_of_root_may_run_as_somebody_else(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('else')}"
    house.kubectl(f"create secret generic sec {place} --from-literal=pw=hunter2")

    house.kubectl(f"apply {place} -f -", stdin=SOMEBODY_ELSE)
    house.kubectl(f"wait {place} --for=jsonpath='{{.status.phase}}'=Succeeded pod/else {PATIENT}")

    log = house.kubectl(f"logs {place} else -c main").splitlines()
    assert log == ["uid=1234 gid=2345 groups=2345,3456", "hunter2"]
    assert "data-1=dashed" in house.kubectl(f"logs {place} else -c beside").splitlines()
    states = a_pod(house, place, "else")["status"]["containerStatuses"]
    words = {each["name"]: each["state"]["terminated"].get("message") for each in states}
    assert words["main"] == "bye\n"
