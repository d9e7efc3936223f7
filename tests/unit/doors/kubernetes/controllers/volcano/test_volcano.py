from typing import Any

from muster.doors.kubernetes.catalogue import FOREIGN
from muster.doors.kubernetes.foreign.kinds import POD_GROUPS, VOLCANO_JOB
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, SERVICE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    labels_of,
    name_of,
    part,
)
from muster.doors.kubernetes.pods.gang_marks import VOLCANO
from properties.kubernetes_world import KubernetesWorld, template


def task(name: str, replicas: int, **more: Any) -> JsonObject:
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": part(template(), "spec")},
        **more,
    }


def a_job(*tasks: JsonObject, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"tasks": list(tasks) or [task("ps", 1), task("worker", 2)], **spec},
    }


def begun(*tasks: JsonObject, **spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    job = world.create(a_job(*tasks, **spec))
    world.settles()
    return world, job


def state(world: KubernetesWorld, job: JsonObject) -> str:
    return str(part(world.fresh(job), "status", "state").get("phase"))


def variables(pod: JsonObject) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0].get("env", [])}


def test_its_tasks_are_one_gang() -> None:
    world, job = begun(minAvailable=3, queue="team")

    (group,) = world.objects.list(POD_GROUPS[VOLCANO], "default")
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (3, "team")
    assert [name_of(each) for each in world.pods()] == ["t-ps-0", "t-worker-0", "t-worker-1"]
    for pod in world.pods():
        assert annotations_of(pod)["scheduling.k8s.io/group-name"] == name_of(group)
        assert labels_of(pod)["volcano.sh/queue-name"] == "team"
    assert state(world, job) == "Pending"


def test_it_runs_when_enough_do_and_is_completed_when_all_are() -> None:
    world, job = begun()

    for pod in world.active():
        world.runs(pod)
    world.settles()
    assert state(world, job) == "Running"
    (group,) = world.objects.list(POD_GROUPS[VOLCANO], "default")
    assert (group["status"]["phase"], group["status"]["running"]) == ("Running", 3)

    for pod in world.active():
        world.ends(pod)
    world.settles()
    assert state(world, job) == "Completed"
    assert world.fresh(job)["status"]["succeeded"] == 3


def test_a_policy_says_what_becomes_of_it_when_a_pod_fails() -> None:
    world, job = begun(policies=[{"event": "PodFailed", "action": "AbortJob"}])
    for pod in world.active():
        world.runs(pod)
    world.settles()

    world.ends(world.active()[0], code=1)
    world.settles()

    assert state(world, job) == "Aborted"
    assert world.active() == []


def test_it_is_completed_when_a_task_is_if_its_policy_says_so() -> None:
    done = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    world, job = begun(task("master", 1, policies=done), task("worker", 2))
    for pod in world.active():
        world.runs(pod)
    world.settles()

    world.ends(world.active()[0])
    world.settles()

    assert state(world, job) == "Completed"
    assert world.active() == []


def test_a_gang_that_is_restarted_too_often_has_failed() -> None:
    world, job = begun(policies=[{"event": "*", "action": "RestartJob"}], maxRetry=1)

    for _ in range(2):
        for pod in world.active():
            world.runs(pod)
        world.settles()
        world.ends(world.active()[0], code=1)
        world.settles()
        world.all_stop()
        world.settles()

    assert state(world, job) == "Failed"
    assert world.fresh(job)["status"]["retryCount"] == 1


def test_pods_find_each_other_by_the_plugins_that_are_asked_for() -> None:
    world, _ = begun(
        task("master", 1),
        task("worker", 2),
        plugins={"svc": [], "env": [], "pytorch": ["--master=master", "--port=2222"]},
    )

    told = [variables(pod) for pod in world.pods()]
    assert [each["RANK"] for each in told] == ["0", "1", "2"]
    assert {each["MASTER_ADDR"] for each in told} == {"t-master-0"}
    assert {each["VC_WORKER_HOSTS"] for each in told} == {"t-worker-0,t-worker-1"}
    assert [each["VC_TASK_INDEX"] for each in told] == ["0", "0", "1"]
    assert world.objects.get(SERVICE, "default", "t") is not None
    config = world.objects.get(CONFIG_MAP, "default", "t-svc")
    assert config is not None
    assert config["data"]["worker.host"] == "t-worker-0\nt-worker-1"


def test_what_is_wrong_with_one_is_said_by_field() -> None:
    rules = FOREIGN[VOLCANO_JOB]
    assert rules.default is not None
    assert rules.validate is not None
    bad = [{"event": "PodFailed", "action": "Explode"}]

    job = rules.default(a_job(task("a", 1), task("a", -1, policies=bad), minAvailable=9))

    assert [cause.field for cause in rules.validate(job, None)] == [
        "spec.tasks[1].name",
        "spec.tasks[1].policies[0].action",
        "spec.tasks[1].replicas",
        "spec.minAvailable",
    ]
