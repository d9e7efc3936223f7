from typing import Any

from muster.doors.kubernetes.controllers.conditions import found
from muster.doors.kubernetes.controllers.jobs.indexes import COMPLETION_INDEX
from muster.doors.kubernetes.controllers.jobs.rules import TRACKING
from muster.doors.kubernetes.controllers.jobs.sync import is_finished
from muster.doors.kubernetes.objects.kinds import JOB
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, items, metadata
from properties.kubernetes_world import START, KubernetesWorld, job

DONE = {
    "type": "Complete",
    "status": "True",
    "lastProbeTime": "2026-11-16T09:00:03Z",
    "lastTransitionTime": "2026-11-16T09:00:03Z",
    "reason": "CompletionsReached",
    "message": "Reached expected number of succeeded pods",
}


def test_a_job_that_succeeds_says_so_as_a_real_one_does() -> None:
    world, train = begun()
    world.runs(world.pods()[0])
    world.passes(3)

    world.ends(world.pods()[0])
    world.settles()

    assert world.fresh(train)["status"] == {
        "completionTime": "2026-11-16T09:00:03Z",
        "conditions": [{**DONE, "type": "SuccessCriteriaMet"}, DONE],
        "ready": 0,
        "startTime": "2026-11-16T09:00:00Z",
        "succeeded": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    name = world.pods()[0]["metadata"]["name"]
    assert world.said(train) == [
        ("SuccessfulCreate", f"Created pod: {name}"),
        ("Completed", "Job completed"),
    ]


def test_a_pod_of_a_job_is_tracked_until_it_is_counted() -> None:
    world, _ = begun()
    pod = world.pods()[0]
    assert metadata(pod)["finalizers"] == [TRACKING]

    world.ends(pod)
    world.settles()

    assert "finalizers" not in metadata(world.fresh(pod))


def test_after_too_many_failures_a_job_fails() -> None:
    world, train = begun(backoffLimit=1)
    world.ends(world.active()[0], code=3)
    world.settles()
    assert world.active() == []

    world.passes(10)
    world.settles()
    world.ends(world.active()[0], code=3)
    world.settles()

    status = world.fresh(train)["status"]
    assert [each["type"] for each in status["conditions"]] == ["FailureTarget", "Failed"]
    assert {each["reason"] for each in status["conditions"]} == {"BackoffLimitExceeded"}
    assert status["failed"] == 2
    assert "completionTime" not in status
    text = "Job has reached the specified backoff limit"
    assert world.said(train)[-1] == ("BackoffLimitExceeded", text)


def test_failures_are_followed_by_longer_and_longer_waits() -> None:
    world, _ = begun(backoffLimit=6)

    waits: list[int] = []
    for _ in range(4):
        world.ends(world.active()[0], code=1)
        world.settles()
        due = world.work.next_at()
        assert due is not None
        waits.append((due - world.now) // 1000)
        world.passes(waits[-1])
        world.settles()

    assert waits == [10, 20, 40, 80]


def test_a_rule_of_the_pod_failure_policy_ends_a_job_at_once() -> None:
    world, train = begun(podFailurePolicy={"rules": [FAIL_ON_42]})
    name = world.pods()[0]["metadata"]["name"]

    world.ends(world.pods()[0], code=42)
    world.settles()

    status = world.fresh(train)["status"]
    words = f"Container main for pod default/{name} failed with exit code 42"
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [
        ("FailureTarget", "PodFailurePolicy"),
        ("Failed", "PodFailurePolicy"),
    ]
    assert status["conditions"][0]["message"] == f"{words} matching FailJob rule at index 0"
    assert status["failed"] == 1


def test_a_failure_that_a_rule_ignores_does_not_count() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    world, train = begun(backoffLimit=0, podFailurePolicy={"rules": [rule]})
    pod = world.fresh(world.pods()[0])
    pod["status"] = {
        "phase": "Failed",
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    world.update_status(pod)
    world.settles()

    world.passes(10)
    world.settles()

    assert not is_finished(world.fresh(train))
    assert len(world.active()) == 1


def test_a_job_past_its_deadline_fails_when_its_pods_are_gone() -> None:
    world, train = begun(activeDeadlineSeconds=3)
    world.runs(world.pods()[0])
    world.passes(3)
    world.settles()
    status = world.fresh(train)["status"]
    assert [each["type"] for each in status["conditions"]] == ["FailureTarget"]
    assert (status["failed"], status["terminating"]) == (1, 1)

    world.passes(3)
    world.all_stop()
    world.settles()

    last = found(items(world.fresh(train), "status", "conditions"), "Failed")
    assert last is not None
    assert last["lastTransitionTime"] == "2026-11-16T09:00:06Z"
    assert last["message"] == "Job was active longer than specified deadline"
    assert world.fresh(train)["status"] | {"conditions": []} == {
        "conditions": [],
        "failed": 1,
        "ready": 0,
        "startTime": "2026-11-16T09:00:00Z",
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }


def test_a_suspended_job_has_no_pods_and_no_start() -> None:
    world, train = begun(parallelism=2, completions=2, suspend=True)
    assert world.pods() == []
    assert world.said(train) == [("Suspended", "Job suspended")]

    train = world.edit(train, suspend=False)
    world.settles()
    assert len(world.active()) == 2
    for pod in world.active():
        world.runs(pod)
    world.settles()
    assert world.fresh(train)["status"]["ready"] == 2

    world.edit(train, suspend=True)
    world.settles()
    world.all_stop()
    world.settles()

    assert world.pods() == []
    status = world.fresh(train)["status"]
    condition = status.pop("conditions")[0]
    assert (condition["status"], condition["reason"]) == ("True", "JobSuspended")
    assert status == {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}


def test_an_indexed_job_gives_each_pod_its_index() -> None:
    world, train = begun(parallelism=2, completions=4, completionMode="Indexed")
    assert [pod["spec"]["hostname"] for pod in world.pods()] == ["train-0", "train-1"]
    pod = world.pods()[1]
    assert metadata(pod)["generateName"] == "train-1-"
    assert metadata(pod)["labels"][COMPLETION_INDEX] == "1"
    assert annotations_of(pod)[COMPLETION_INDEX] == "1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"

    for _ in range(2):
        for each in world.active():
            world.ends(each)
        world.settles()

    status = world.fresh(train)["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
    assert is_finished(world.fresh(train))


def test_an_index_is_tried_as_often_as_its_own_limit_says() -> None:
    world, train = begun(
        parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1
    )
    first, second = world.active()
    world.ends(second)
    world.ends(first, code=1)
    world.settles()
    world.passes(10)
    world.settles()
    again = world.active()[0]
    assert annotations_of(again)["batch.kubernetes.io/job-index-failure-count"] == "1"

    world.ends(again, code=1)
    world.settles()

    status = world.fresh(train)["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("1", "0")
    assert status["failed"] == 2
    assert status["conditions"][-1]["reason"] == "FailedIndexes"


def test_a_success_policy_ends_a_job_before_all_indexes_are_done() -> None:
    rules = {"rules": [{"succeededIndexes": "0"}]}
    world, train = begun(
        parallelism=3, completions=3, completionMode="Indexed", successPolicy=rules
    )
    for pod in world.active():
        world.runs(pod)

    world.ends(world.pods()[0])
    world.settles()
    world.all_stop()
    world.settles()

    status = world.fresh(train)["status"]
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["conditions"][0]["message"] == "Matched rules at index 0"
    assert status["succeeded"] == 1
    assert "failed" not in status


def test_with_replacement_of_failed_pods_only_the_old_one_ends_first() -> None:
    world, _ = begun(podReplacementPolicy="Failed")
    world.runs(world.pods()[0])

    world.delete(world.pods()[0])
    world.settles()
    assert len(world.pods()) == 1

    world.all_stop()
    world.settles()
    world.passes(10)
    world.settles()
    assert len(world.active()) == 1


def test_a_work_queue_ends_when_one_pod_succeeds_and_all_have_ended() -> None:
    world, train = begun(parallelism=3, completions=None)
    first, second, third = world.active()

    world.ends(first)
    world.settles()
    assert len(world.active()) == 2

    world.ends(second)
    world.ends(third)
    world.settles()
    assert is_finished(world.fresh(train))
    assert world.fresh(train)["status"]["succeeded"] == 3


def test_a_finished_job_goes_when_its_time_is_up() -> None:
    world, train = begun(ttlSecondsAfterFinished=60)
    world.ends(world.pods()[0])
    world.settles()
    assert world.work.next_at() == START + 60_000

    world.passes(60)
    world.settles()

    assert not world.is_there(train)
    assert world.pods() == []


def test_pods_of_a_deleted_job_are_let_go() -> None:
    world, train = begun()

    world.delete(train)
    world.settles()

    assert world.of(JOB) == []
    assert world.pods() == []


def test_a_job_that_another_controller_manages_is_left_alone() -> None:
    world, train = begun(managedBy="kueue.x-k8s.io/multikueue")

    assert world.pods() == []
    assert "status" not in world.fresh(train)


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    made = world.create(job(**spec))
    world.settles()
    return world, made


FAIL_ON_42 = {
    "action": "FailJob",
    "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]},
}
