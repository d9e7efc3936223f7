import json
from typing import Any

import pytest

from muster.doors.kubernetes.catalogue import FOREIGN
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.kubeflow.rules import MOST_REPLICAS
from muster.doors.kubernetes.foreign.kinds import TF_JOB
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from properties.kubernetes_world import KubernetesWorld, template


def a_job(port: int | None = None, **given: Any) -> JsonObject:
    """given: how many replicas a role has, or a field of the spec."""
    pods = part(template(), "spec")
    ports = [] if port is None else [{"name": "tfjob-port", "containerPort": port}]
    pods["containers"] = [{"name": "tensorflow", "image": "one", "ports": ports}]
    replica = {"restartPolicy": "Never", "template": {"spec": pods}}
    roles = {name: count for name, count in given.items() if isinstance(count, int)}
    spec = {name: value for name, value in given.items() if name not in roles}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "None"},
            "tfReplicaSpecs": {
                role: {"replicas": count, **replica} for role, count in roles.items()
            },
            **spec,
        },
    }


def begun(**given: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    job = world.create(a_job(**given))
    world.settles()
    return world, job


def config_of(pod: JsonObject) -> Any:
    found = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    return json.loads(found["TF_CONFIG"])


def has_ended(world: KubernetesWorld, job: JsonObject) -> bool:
    return is_true(items(world.fresh(job), "status", "conditions"), "Succeeded")


def test_processes_learn_who_is_where_and_who_they_are() -> None:
    world, _ = begun(Chief=1, PS=1, Worker=2, Evaluator=1, port=2222)

    told = {name_of(each): config_of(each) for each in world.pods()}

    assert told["t-worker-1"]["task"] == {"type": "worker", "index": 1}
    assert told["t-evaluator-0"]["task"] == {"type": "evaluator", "index": 0}
    cluster = {
        "chief": ["t-chief-0:2222"],
        "ps": ["t-ps-0:2223"],
        "worker": ["t-worker-0:2224", "t-worker-1:2225"],
    }
    assert all(each["cluster"] == cluster for each in told.values())


@pytest.mark.parametrize("port", [None, 65_535])
def test_each_replica_has_a_port_of_its_own(port: int | None) -> None:
    world, _ = begun(Worker=3, port=port)

    told = config_of(world.pods()[0])["cluster"]["worker"]

    ports = {int(each.rpartition(":")[2]) for each in told}
    assert len(ports) == 3
    assert max(ports) < 65_536


def test_one_replica_alone_looks_for_nobody() -> None:
    world, _ = begun(Worker=1)

    assert not world.pods()[0]["spec"]["containers"][0]["env"]


def test_it_ends_with_its_chief() -> None:
    world, job = begun(Chief=1, Worker=1)

    for each in world.active():
        world.runs(each)
    world.ends(world.pods()[0])
    world.settles()

    assert has_ended(world, job)


def test_without_a_chief_it_ends_with_its_first_worker_or_with_all() -> None:
    for policy, first_ends_it in (("", True), ("AllWorkers", False)):
        world, job = begun(PS=1, Worker=2, successPolicy=policy)
        for each in world.active():
            world.runs(each)
        pods = {name_of(each): each for each in world.pods()}

        world.ends(pods["t-worker-0"])
        world.settles()
        assert has_ended(world, job) is first_ends_it
        world.ends(pods["t-worker-1"])
        world.settles()
        assert has_ended(world, job), "servers of parameters do not end by themselves"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"Chief": 2}, "must be 1"),
        ({"Worker": MOST_REPLICAS + 1}, "must be less than or equal to"),
        ({"Worker": -1}, "must be greater than or equal to 0"),
        ({"Boss": 1}, "must be one of Chief, Master, PS, Worker, Evaluator"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, int], told: str) -> None:
    rules = FOREIGN[TF_JOB]
    assert rules.validate is not None

    causes = rules.validate(a_job(**given), None)

    assert told in str(causes)


def test_a_job_without_replicas_waits_for_nothing() -> None:
    world, job = begun(Worker=0)

    assert not world.pods()
    assert not has_ended(world, job)
