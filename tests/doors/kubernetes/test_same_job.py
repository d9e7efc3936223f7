"""The same job through three doors of one Muster: each door shows the jobs of the others."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house, until

pytestmark = pytest.mark.slow

SLURM = 'eval "$(muster slurm env)"; '
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: same}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  activeDeadlineSeconds: 1200
  containers:
  - name: main
    image: {IMAGE}
    command: [sleep, "600"]
    resources: {{limits: {{nvidia.com/gpu: "4", cpu: "1", memory: 64Mi}}}}
"""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            yield found


@pytest.fixture(autouse=True)
def tidy(house: KubernetesHouse) -> Iterator[None]:
    yield
    house.kubectl(f"delete pods --all --force {PATIENT}")
    until(lambda: not jobs(house))


def out(house: KubernetesHouse, line: str) -> str:
    ran = house.shell(line)
    assert ran.code == 0, f"{line}: {ran.out}{ran.err}"
    return ran.out


def jobs(house: KubernetesHouse) -> list[dict[str, Any]]:
    return json.loads(out(house, "muster ps -o json"))


def shown(house: KubernetesHouse, job: int) -> dict[str, Any]:
    return json.loads(out(house, f"muster show {job} -o json"))


def submit_thrice(house: KubernetesHouse) -> list[int]:
    """The same job, of which two fit: by sbatch, by muster submit, and as a pod."""
    submit_twice(house)
    house.kubectl("apply -f -", stdin=POD)
    return sorted(each["id"] for each in jobs(house))


def submit_twice(house: KubernetesHouse) -> list[int]:
    """By sbatch and by muster submit."""
    by_slurm = "sbatch -J same --gpus=4 -c 1 --mem=64M -t 20 --parsable --wrap 'sleep 600'"
    by_rest = "muster submit --name same --gpus 4 --cpus 1 --memory 64M --time 20m -- sleep 600"
    out(house, SLURM + by_slurm)
    out(house, by_rest)
    return sorted(each["id"] for each in jobs(house))


def test_one_job_through_three_doors_is_one_job(house: KubernetesHouse) -> None:
    ids = submit_thrice(house)

    assert len(ids) == 3
    asked = ("name", "user", "queue", "job_class", "time_limit", "task_count", "priority")
    amounts = ("cpus", "memory_mib", "gpus")
    specs = [{key: shown(house, job)[key] for key in (*asked, *amounts)} for job in ids]
    assert specs[0] == specs[1] == specs[2]
    until(lambda: [shown(house, job)["state"] for job in ids[:2]] == ["running"] * 2)
    assert shown(house, ids[2])["state"] == "pending"


def test_every_door_shows_the_jobs_of_the_others(house: KubernetesHouse) -> None:
    first, second, third = submit_thrice(house)

    listed = out(house, f"{SLURM} squeue -h -o '%i %j' --sort=i").splitlines()
    assert listed == [f"{job} same" for job in (first, second, third)]
    until(lambda: running(house) == {f"same-{first}", f"same-{second}"})
    pods = json.loads(house.kubectl("get pods -o json"))["items"]
    assert {each["metadata"]["name"] for each in pods} == {
        f"same-{first}",
        f"same-{second}",
        "same",
    }
    by_slurm = json.loads(house.kubectl(f"get pod same-{first} -o json"))
    assert by_slurm["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert "sleep" not in json.dumps(by_slurm["spec"])


def test_describe_explains_why_a_pod_waits_until_when_and_what_would_help() -> None:
    # A Muster that knows nothing yet: from jobs that ended it learns to expect room soon.
    with kubernetes_house() as fresh:
        first, _ = submit_twice(fresh)
        until(lambda: shown(fresh, first)["state"] == "running")
        out(fresh, f"muster cancel {first}")
        out(fresh, "muster submit --name small --gpus 2 --cpus 1 --time 20m -- sleep 600")
        until(lambda: len([each for each in jobs(fresh) if each["state"] == "running"]) == 2)
        fresh.kubectl("apply -f -", stdin=POD)

        # Each is an event of its own, and one comes after the other.
        wanted = ("FailedScheduling", "Explained", "ExpectedStart", "WouldHelp")
        until(lambda: all(each in fresh.kubectl("describe pod same") for each in wanted))
        told = fresh.kubectl("describe pod same")
        fresh.kubectl(f"delete pods --all --force {PATIENT}")
        until(lambda: not jobs(fresh))

    assert "2 Insufficient nvidia.com/gpu" in told
    assert "Needs 4 GPUs, 1 core and 64 MiB on one node" in told
    assert re.search(r"ExpectedStart.*Expected to start at 20\d\d-", told)
    assert re.search(r"WouldHelp.*With 2 GPUs instead of 4 it would start now", told)


def test_a_door_ends_the_jobs_of_the_others(house: KubernetesHouse) -> None:
    first, second, third = submit_thrice(house)
    until(lambda: f"same-{first}" in running(house))

    house.kubectl(f"delete pod same-{first} {PATIENT}")
    until(lambda: shown(house, first)["state"] == "cancelled")
    until(lambda: "same" in running(house))
    out(house, f"{SLURM} scancel {third}")
    until(lambda: phase(house, "same") == "Failed")
    out(house, f"muster cancel {second}")
    until(lambda: phase(house, f"same-{second}") == "Failed")

    assert "Reason:" in house.kubectl("describe pod same")
    assert "not found" in house.refused(f"get pod same-{first}")


def test_nobody_ends_the_job_of_somebody_else_by_deleting_its_pod(
    house: KubernetesHouse,
) -> None:
    first, _, _ = submit_thrice(house)
    until(lambda: f"same-{first}" in running(house))
    house.kubectl("create rolebinding mallory --clusterrole=edit --user=mallory")

    refused = house.refused(f"delete pod same-{first} --as=mallory")

    assert "forbidden" in refused
    assert shown(house, first)["state"] == "running"


def running(house: KubernetesHouse) -> set[str]:
    found = json.loads(house.kubectl("get pods -o json"))["items"]
    return {each["metadata"]["name"] for each in found if each["status"]["phase"] == "Running"}


def phase(house: KubernetesHouse, pod: str) -> str:
    return json.loads(house.kubectl(f"get pod {pod} -o json"))["status"]["phase"]
