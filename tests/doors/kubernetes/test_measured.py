"""kubectl top, and an autoscaler that looks at GPUs, on pretend GPUs that follow a script."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from containers.images import MODEST, own_podman
from doors.kubernetes.cluster import PATIENCE_S, KubernetesHouse, kubernetes_house

pytestmark = pytest.mark.slow

RULES = """
queues: {default: {}}
classes: {normal: {}}
telemetry: {interval: 5s}
"""
SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 1
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: serve
        image: busybox:1.36
        command: [sh, -c, "while true; do :; done"]
        resources: {requests: {cpu: 500m}, limits: {nvidia.com/gpu: 1}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: server}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: server}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - type: Pods
    pods:
      metric: {name: DCGM_FI_DEV_GPU_UTIL}
      target: {type: AverageValue, averageValue: "60"}
"""


@pytest.fixture(scope="module")
def busy_house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        podman.has_busybox("docker.io/library/busybox:1.36")
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            load = found.root / "home" / "pretend-load.json"
            load.write_text(json.dumps({"*": [{"busy_milli": 900}]}), encoding="utf-8")
            rules = found.root / "rules.yaml"
            rules.write_text(RULES, encoding="utf-8")
            assert found.shell(f"muster apply -f {rules}").code == 0
            found.kubectl("apply -f -", stdin=SERVER)
            yield found


def until(look: Callable[[], str], is_so: Callable[[str], bool]) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)
    return seen


def test_top_shows_what_pods_and_nodes_use(busy_house: KubernetesHouse) -> None:
    # A job of another door is a pod, too; what containers use is told where cgroups can be used.
    assert busy_house.shell("muster submit -- sh -c 'while :; do :; done'").code == 0

    def loop() -> str:
        lines = busy_house.shell("kubectl top pods --no-headers").out.splitlines()
        return next((line for line in lines if not line.startswith("server-")), "")

    _, cpu, memory = until(loop, lambda line: "m " in line and " 0m" not in line).split()
    nodes = busy_house.kubectl("top nodes")
    containers = busy_house.kubectl("top pods -l app=server --containers --no-headers").split()
    busy_house.shell("muster cancel --all")

    assert int(cpu.removesuffix("m")) > 100
    assert memory.endswith("Mi")
    assert (containers[0][:7], containers[1]) == ("server-", "serve")
    assert nodes.splitlines()[0].split()[:2] == ["NAME", "CPU(cores)"]
    assert len(nodes.splitlines()) == 3


def test_an_autoscaler_grows_what_its_gpus_have_too_much_of(busy_house: KubernetesHouse) -> None:
    replicas = until(
        lambda: busy_house.kubectl("get deployment server -o jsonpath={.spec.replicas}"),
        lambda text: text != "1",
    )
    shown = until(
        lambda: busy_house.kubectl("get hpa server --no-headers"), lambda text: "90/60" in text
    )

    assert int(replicas) >= 2
    assert "Deployment/server" in shown


def test_metrics_of_pods_are_served_as_adapters_serve_them(busy_house: KubernetesHouse) -> None:
    place = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods"

    text = until(
        lambda: busy_house.kubectl(f"get --raw '{place}/*/DCGM_FI_DEV_GPU_UTIL'"),
        lambda text: bool(json.loads(text)["items"]),
    )
    listed = json.loads(busy_house.kubectl("get --raw /apis/custom.metrics.k8s.io/v1beta2"))

    (value, *_) = json.loads(text)["items"]
    assert value["value"] == "90000m"
    assert value["describedObject"]["name"].startswith("server-")
    assert "pods/DCGM_FI_DEV_GPU_UTIL" in {each["name"] for each in listed["resources"]}


def test_a_pod_that_is_not_there_has_no_metrics(busy_house: KubernetesHouse) -> None:
    said = busy_house.shell("kubectl top pod nowhere")

    assert said.code == 1
    assert "not found" in said.err
