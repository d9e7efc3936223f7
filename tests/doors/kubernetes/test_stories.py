"""Stories of teams that share a cluster: examples/kubernetes, with kubectl and real containers."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from containers.images import MODEST, Podman, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "kubernetes"


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        found.has_busybox("docker.io/library/busybox:1.36")
        yield found


@contextmanager
def machine(podman: Podman, pretend: str) -> Generator[KubernetesHouse]:
    options = f"{' '.join(podman.folders)} {MODEST}"
    with kubernetes_house(podman=options, pretend=pretend) as found:
        yield found


def applied(house: KubernetesHouse, example: str, place: str = "") -> None:
    house.kubectl(f"apply {place} -f {EXAMPLES / example}")


def pods(house: KubernetesHouse, namespace: str) -> list[dict[str, Any]]:
    return json.loads(house.kubectl(f"get pods -n {namespace} -o json"))["items"]


def phases(house: KubernetesHouse, namespace: str) -> list[str]:
    return sorted(each["status"]["phase"] for each in pods(house, namespace))


def nodes_of(house: KubernetesHouse, namespace: str) -> set[str]:
    return {each["spec"].get("nodeName", "") for each in pods(house, namespace)}


def a_job(name: str, pods: int, gpus: int, *, queue: str = "", pool: str = "") -> str:
    """A Job whose pods run at the same time, each with so many GPUs."""
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "100m", "memory": "64Mi"}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sleep", "600"],
                "resources": {"limits": limits},
            }
        ],
    }
    if pool:
        spec["nodeSelector"] = {"muster.io/pool": pool}
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"parallelism": pods, "completions": pods, "backoffLimit": 20, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}
    return json.dumps(job)


def test_tenants_of_one_gpu_have_a_slice_each(podman: Podman) -> None:
    with machine(podman, "--nodes 1 --gpus 1xA100-40GB") as house:
        applied(house, "mig-tenants.yaml")

        until(
            lambda: phases(house, "tenant-a") == phases(house, "tenant-b") == ["Running"],
            lambda: house.kubectl("describe pods -A"),
        )
        slices = {house.kubectl(f"logs -n tenant-{each} job/train") for each in "ab"}
        more = a_job("more", 1, 1).replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb")
        house.kubectl("create -n tenant-a -f -", stdin=more)
        over = "exceeded quota: slices, requested: requests.nvidia.com/mig-1g.5gb=1"
        until(lambda: over in house.kubectl("describe job more -n tenant-a"))
        until(lambda: int(node_capacity(house).get("nvidia.com/mig-1g.5gb", "0")) >= 2)
        told = house.kubectl("describe quota slices -n tenant-a").split()

    assert len(slices) == 2, "each sees a slice of its own"
    assert all(each.startswith("on MIG-") for each in slices)
    assert told[told.index("requests.nvidia.com/mig-1g.5gb") + 1 :] == ["1", "1"]


def node_capacity(house: KubernetesHouse) -> dict[str, str]:
    """Of the only node."""
    (node,) = json.loads(house.kubectl("get nodes -o json"))["items"]
    return node["status"]["capacity"]


def test_product_takes_back_what_research_borrowed(podman: Podman) -> None:
    with machine(podman, "--nodes 5 --gpus 2xA100-40GB") as house:
        applied(house, "research-product.yaml")
        sweep = a_job("sweep", 5, 2, queue="main")
        house.kubectl("create -n research -f -", stdin=sweep)
        until(lambda: phases(house, "research") == ["Running"] * 5)

        serve = a_job("serve", 2, 2, queue="main")
        house.kubectl("create -n product -f -", stdin=serve)

        def shared() -> tuple[int, int]:
            return phases(house, "research").count("Running"), phases(house, "product").count(
                "Running"
            )

        until(lambda: shared() == (3, 2), lambda: house.kubectl("get pods -A -o wide"))

        def used() -> dict[str, str]:
            told = json.loads(house.kubectl("get clusterqueues -o json"))["items"]
            return {
                each["metadata"]["name"]: each["status"]["flavorsUsage"][0]["resources"][0]["total"]
                for each in told
            }

        until(lambda: used() == {"research": "6", "product": "4"}, used)


def test_one_team_has_a_quota_one_its_own_nodes_and_one_slices(podman: Podman) -> None:
    with machine(podman, "--nodes 4 --gpus 2xA100-40GB") as house:
        until(lambda: len(json.loads(house.kubectl("get nodes -o json"))["items"]) == 4)
        own = json.loads(house.kubectl("get nodes -o json"))["items"][-1]["metadata"]["name"]
        house.kubectl(f"label node {own} team=team-b")
        house.kubectl(f"taint node {own} team=team-b:NoSchedule")
        applied(house, "three-teams.yaml")

        until(
            lambda: (
                phases(house, "team-a") == ["Running"] * 2
                and phases(house, "team-b") == ["Running"]
                and phases(house, "team-c") == ["Running"] * 3
            ),
            lambda: house.kubectl("describe pods -A"),
        )
        others = nodes_of(house, "team-a") | nodes_of(house, "team-c")
        of_team_b = nodes_of(house, "team-b")
        more = a_job("more", 1, 1)
        house.kubectl("create -n team-a -f -", stdin=more)
        until(lambda: "exceeded quota: gpus" in house.kubectl("describe job more -n team-a"))

    assert of_team_b == {own}
    assert own not in others


def test_a_team_neither_sees_nor_changes_what_another_has(podman: Podman) -> None:
    with machine(podman, "--nodes 2 --gpus 4xA100-40GB") as house:
        applied(house, "two-teams.yaml")
        for person, team in (("ada", "team-a"), ("grace", "team-b")):
            house.kubectl(f"create configmap own -n {team} --as={person}")

        told = [
            house.refused(f"{line} -n {team} --as={person}")
            for person, team in (("ada", "team-b"), ("grace", "team-a"))
            for line in (
                "get pods",
                "delete configmap own",
                "get secrets",
                "logs own",
                "describe quota",
            )
        ]
        site = house.root / "two-teams-pools.yaml"
        site.write_text((EXAMPLES / "two-teams-pools.yaml").read_text())
        dry = house.shell(f"muster apply -f {site} --dry-run")

    assert all("forbidden" in each for each in told)
    assert dry.code == 0, dry.err


def test_a_job_that_ran_out_of_memory_says_so_and_runs_with_more(podman: Podman) -> None:
    with machine(podman, "--nodes 1 --gpus 1xA100-40GB") as house:
        place = f"-n {house.has_namespace('memory')}"
        applied(house, "out-of-memory.yaml", place)
        house.kubectl(f"wait {place} --for=condition=Failed job/load {PATIENT}")
        ended = pods(house, "memory")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
        house.kubectl(f"delete job load {place} {PATIENT}")

        applied(house, "out-of-memory-mended.yaml", place)
        house.kubectl(f"wait {place} --for=condition=Complete job/load {PATIENT}")

    assert ended["reason"] == "OOMKilled"
    assert ended["exitCode"] == 137


def test_projects_borrow_from_each_other_and_have_their_own_back(
    podman: Podman, tmp_path: Path
) -> None:
    racks = tmp_path / "nodes.yaml"
    racks.write_text(
        "- {nodes: 3, gpus: 4xT4-16GB, pool: on-demand}\n- {nodes: 2, gpus: 4xT4-16GB, pool: spot}"
    )
    with machine(podman, f"--pretend {racks}") as house:
        applied(house, "projects.yaml")
        first = a_job("first", 5, 4, queue="training")
        house.kubectl("create -n project-a -f -", stdin=first)
        until(lambda: phases(house, "project-a") == ["Running"] * 5)

        for pool in ("on-demand", "spot"):
            own = a_job(pool, 1, 4, queue="notebooks", pool=pool)
            house.kubectl("create -n project-b -f -", stdin=own)
        house.kubectl("create -n project-c -f -", stdin=a_job("own", 1, 4, queue="training"))

        def running() -> list[int]:
            return [phases(house, f"project-{each}").count("Running") for each in "abc"]

        until(lambda: running() == [2, 2, 1], lambda: house.kubectl("get pods -A -o wide"))


def test_a_pod_is_ready_when_it_has_written_a_checkpoint(podman: Podman, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    manifest = (EXAMPLES / "checkpoint-ready.yaml").read_text().replace("/srv/bert", str(tmp_path))
    with machine(podman, "--nodes 1 --gpus 1xA100-40GB") as house:
        place = f"-n {house.has_namespace('ready')}"
        # One that is older than the pod does not count.
        (tmp_path / "step-1.pt").write_text("before")

        house.kubectl(f"apply {place} -f -", stdin=manifest)
        until(lambda: phases(house, "ready") == ["Running"])
        unready = pods(house, "ready")[0]["status"]["containerStatuses"][0]["ready"]
        (tmp_path / "go").touch()

        house.kubectl(f"wait {place} --for=condition=Ready pod/bert {PATIENT}")

    assert not unready
