from typing import Any

from muster.doors.kubernetes.controllers.cron_jobs.sync import SCHEDULED_AT
from muster.doors.kubernetes.objects.kinds import JOB
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, metadata, name_of
from properties.kubernetes_world import START, KubernetesWorld, job


def test_a_job_is_started_when_it_is_due() -> None:
    world, cron = begun()
    assert world.of(JOB) == []
    assert "status" not in world.fresh(cron)

    world.passes(60)
    world.settles()

    made = world.of(JOB)[0]
    assert name_of(made) == f"tick-{(START + 60_000) // 60_000}"
    assert annotations_of(made) == {SCHEDULED_AT: "2026-11-16T09:01:00Z"}
    assert metadata(made)["ownerReferences"][0]["blockOwnerDeletion"] is True
    status = world.fresh(cron)["status"]
    assert status["lastScheduleTime"] == "2026-11-16T09:01:00Z"
    assert [each["uid"] for each in status["active"]] == [metadata(made)["uid"]]
    assert world.said(cron) == [("SuccessfulCreate", f"Created job {name_of(made)}")]


def test_a_job_that_is_over_is_no_longer_active() -> None:
    world, cron = begun()
    world.passes(60)
    world.settles()
    name = name_of(world.of(JOB)[0])

    world.passes(5)
    world.ends(world.pods()[0])
    world.settles()

    status = world.fresh(cron)["status"]
    assert status == {
        "lastScheduleTime": "2026-11-16T09:01:00Z",
        "lastSuccessfulTime": "2026-11-16T09:01:05Z",
    }
    words = f"Saw completed job: {name}, condition: Complete"
    assert world.said(cron)[-1] == ("SawCompletedJob", words)


def test_with_forbid_no_second_job_starts_beside_the_first() -> None:
    world, cron = begun(concurrencyPolicy="Forbid")
    for _ in range(3):
        world.passes(60)
        world.settles()

    assert len(world.of(JOB)) == 1
    assert world.said(cron)[-1][0] == "JobAlreadyActive"


def test_with_replace_the_new_job_takes_the_place_of_the_old() -> None:
    world, cron = begun(concurrencyPolicy="Replace")
    world.passes(60)
    world.settles()
    old = name_of(world.of(JOB)[0])

    world.passes(60)
    world.settles()

    assert [name_of(each) for each in world.of(JOB)] != [old]
    assert ("SuccessfulDelete", f"Deleted job {old}") in world.said(cron)


def test_with_allow_jobs_run_beside_each_other() -> None:
    world, cron = begun()
    for _ in range(3):
        world.passes(60)
        world.settles()

    assert len(world.of(JOB)) == 3
    assert len(world.fresh(cron)["status"]["active"]) == 3


def test_a_suspended_one_starts_nothing() -> None:
    world, _ = begun(suspend=True)
    world.passes(600)
    world.settles()

    assert world.of(JOB) == []


def test_after_a_long_stop_only_the_latest_is_started() -> None:
    world, cron = begun()

    world.passes(3600 * 5)
    world.settles()

    assert [annotations_of(each)[SCHEDULED_AT] for each in world.of(JOB)] == [
        "2026-11-16T14:00:00Z"
    ]
    assert world.said(cron)[0][0] == "TooManyMissedTimes"


def test_what_is_later_than_its_deadline_is_not_started() -> None:
    world, _ = begun(schedule="0 * * * *", startingDeadlineSeconds=30)

    world.passes(3600 + 31)
    world.settles()

    assert world.of(JOB) == []


def test_only_as_many_jobs_as_the_history_keeps_stay() -> None:
    world, _ = begun(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    for code in (0, 0, 1, 0):
        world.passes(60)
        world.settles()
        for pod in world.active():
            world.ends(pod, code=code)
        world.settles()

    assert len(world.of(JOB)) == 2


def test_no_job_is_started_before_its_time_when_some_were_missed() -> None:
    # At seven and nineteen minutes past every other hour; it is 9:00 now.
    world, cron = begun(schedule="7,19 */2 * * *", suspend=True)
    world.passes(91 * 60)

    world.edit(cron, suspend=False)
    world.settles()

    at = [metadata(each)["annotations"][SCHEDULED_AT] for each in world.of(JOB)]
    assert at == ["2026-11-16T10:19:00Z"]


def test_a_job_made_by_hand_is_not_counted() -> None:
    world, cron = begun(suspend=True)
    made = job("manual")
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "tick",
            "uid": metadata(cron)["uid"],
            "controller": True,
        }
    ]

    world.create(made)
    world.settles()

    assert "status" not in world.fresh(cron)


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    wanted = {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
        "jobTemplate": {"spec": {**job()["spec"], "backoffLimit": 0}},
    }
    cron: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick"},
        "spec": {**wanted, **spec},
    }
    made = world.create(cron)
    world.settles()
    return world, made
