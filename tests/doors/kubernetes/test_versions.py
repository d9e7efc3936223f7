"""Several versions of kubectl: they ask for other documents, in other ways, and all are served.

`make kubectls` installs them. Each types the same session, with pods that really run.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house, there_is

pytestmark = pytest.mark.slow

VERSIONS = ("1.28", "1.32", "1.36", "1.37")
OF_THE_TESTS = "1.36"
"""The one that the environment of the tests has."""

NODE = "pretend2"
POLITE = "trap 'exit 0' TERM; echo hi; while true; do sleep 0.1; done"
FILES = {
    "cfg.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {lr: "0.1"}
""",
    "changed.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {lr: "0.2"}
""",
    "work.yaml": f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, labels: {{app: p}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "{POLITE}"]
    resources: {{limits: {{nvidia.com/gpu: "1", cpu: 100m, memory: 64Mi}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: "{IMAGE}", command: [sh, -c, "{POLITE}"]}}]
""",
}

SESSION = f"""
version                                                       => Server Version
create namespace NS                                           => created
config set-context --current --namespace=NS                   => modified
create configmap cfg --from-literal=lr=0.1                    => configmap/cfg created
create configmap cfg                                          =1 already exists
apply -f cfg.yaml                                             => configmap/app created
apply -f cfg.yaml                                             => configmap/app unchanged
apply --server-side --force-conflicts -f cfg.yaml             => serverside-applied
diff -f changed.yaml                                          =1 +  lr: "0.2"
apply -f changed.yaml                                         => configmap/app configured
apply --dry-run=server -f changed.yaml                        => unchanged (server dry run)
replace -f changed.yaml                                       => replaced
get cm                                                        => app
get cm app -o yaml                                            => lr: "0.2"
get cm app -o json                                            => "lr": "0.2"
get cm app -o name                                            => configmap/app
get cm -o wide                                                => DATA
get cm app -o jsonpath='{{.data.lr}}'                         => 0.2
get cm app -o go-template='{{{{.data.lr}}}}'                  => 0.2
get cm -o custom-columns=N:.metadata.name                     => app
get cm nosuch                                                 =1 configmaps "nosuch" not found
label cm app app=x                                            => labeled
get cm -l app=x --show-labels                                 => app=x
annotate cm app note=1                                        => annotated
patch cm app -p '{{"data":{{"a":"1"}}}}'                      => patched
patch cm app --type=merge -p '{{"data":{{"a":"2"}}}}'         => patched
patch cm app --type=json -p '[{{"op":"remove","path":"/data/a"}}]' => patched
wait cm/app --for=jsonpath='{{.data.lr}}'=0.2 --timeout=180s  => condition met
explain configmap                                             => binaryData
explain pod.spec.containers                                   => livenessProbe
api-resources                                                 => poddisruptionbudgets
auth can-i create pods                                        => yes
auth can-i delete nodes --as=nobody                           =1 no
auth whoami                                                   => system:masters
create secret generic s --from-literal=a=b                    => created
create quota q --hard=pods=9,requests.nvidia.com/gpu=4        => created
create -f work.yaml                                           => deployment.apps/web created
wait --for=condition=Ready pod/p --timeout=180s               => condition met
get pods -o wide                                              => Running
describe pod p                                                => Container started
describe quota q                                              => requests.nvidia.com/gpu
logs p                                                        => hi
exec p -- echo visited                                        => visited
exec p -- sh -c 'echo no >&2; exit 3'                         =3 no
events --for pod/p                                            => Scheduled
get events                                                    => Started
get pod p -o jsonpath='{{.status.phase}}'                     => Running
rollout status deploy/web --timeout=180s                      => successfully rolled out
scale deploy web --replicas=2                                 => scaled
rollout status deploy/web --timeout=180s                      => successfully rolled out
set env deploy/web A=b                                        => env updated
rollout status deploy/web --timeout=180s                      => successfully rolled out
rollout history deploy/web                                    => 2
rollout undo deploy/web                                       => rolled back
rollout restart deploy/web                                    => restarted
rollout pause deploy/web                                      => paused
rollout resume deploy/web                                     => resumed
autoscale deploy web --max=3 --cpu-percent=80                 => autoscaled
get hpa                                                       => Deployment/web
expose deploy web --port=80                                   => exposed
get all                                                       => service/web
create job j --image={IMAGE} -- echo done                     => created
wait --for=condition=complete job/j --timeout=180s            => condition met
logs -f job/j                                                 => done
describe job j                                                => 1 Succeeded
get nodes                                                     => {NODE}
describe node {NODE}                                          => nvidia.com/gpu
label node {NODE} team=NS                                     => labeled
taint node {NODE} team=NS:NoSchedule                          => tainted
taint node {NODE} team-                                       => untainted
label node {NODE} team-                                       => unlabeled
cordon {NODE}                                                 => cordoned
drain {NODE} --force --ignore-daemonsets --delete-emptydir-data --timeout=180s => drained
uncordon {NODE}                                               => uncordoned
delete -f cfg.yaml                                            => deleted
delete deploy/web hpa/web svc/web                             => deleted
delete pod p --ignore-not-found --timeout=180s                =>
wait --for=delete pod/p --timeout=180s                        =>
delete namespace NS --timeout=180s                            => deleted
"""
"""A command in each line, what it ends with if that is not 0, and a part of what it says."""


@dataclass(frozen=True)
class Step:
    line: str
    code: int
    says: str


def steps(space: str) -> list[Step]:
    found: list[Step] = []
    for text in SESSION.strip().splitlines():
        line, _, rest = text.replace("NS", space).partition(" =")
        code = 0 if rest[0] == ">" else int(rest[0])
        found.append(Step(line.rstrip(), code, rest[1:].strip()))
    return found


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            for name, text in FILES.items():
                (found.work / name).write_text(text, encoding="utf-8")
            yield found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_of_kubectl_is_served(house: KubernetesHouse, version: str) -> None:
    program = of_version(version)

    wrong: dict[str, str] = {}
    for step in steps(f"v{version.replace('.', '-')}"):
        ran = house.shell(f"{program} {step.line}")
        if ran.code != step.code or step.says not in ran.out + ran.err:
            wrong[step.line] = f"ended with {ran.code}: {ran.out}{ran.err}"

    assert wrong == {}


def test_the_session_is_long_enough_to_mean_something() -> None:
    assert len(steps("x")) >= 60


@pytest.mark.parametrize("version", VERSIONS)
def test_a_watch_of_a_version_tells_what_comes(house: KubernetesHouse, version: str) -> None:
    program = of_version(version)
    name = f"seen-by-{version}"
    house.kubectl(f"create cm {name} -n default")
    with subprocess.Popen(  # noqa: S603  what a test types
        ["/bin/bash", "-c", f"exec {program} get cm {name} -n default -w -o name"],
        stdout=subprocess.PIPE,
        text=True,
        env=house.environ,
    ) as watch:
        assert watch.stdout is not None
        first = watch.stdout.readline()
        house.kubectl(f"label cm {name} -n default a=b")
        second = watch.stdout.readline()
        watch.terminate()

    assert (first, second) == (f"configmap/{name}\n", f"configmap/{name}\n")


def of_version(version: str) -> str:
    """What to type for this version."""
    return "kubectl" if version == OF_THE_TESTS else there_is(f"kubectl-{version}")
