from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.changes_of import (
    asked_of_us,
    is_told_apart,
    other_images,
    with_pods_own,
    with_what_differs,
)
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.value import Duration, QueuePath, UserName, replace


def a_pod(
    *, image: str = "a:1", labels: dict[str, str] | None = None, **spec: object
) -> JsonObject:
    return {
        "metadata": {"name": "p", "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


SPEC = JobSpec(
    name="p",
    user=UserName("ann"),
    queue=QueuePath("default"),
    groups=(TaskGroup(each=Ask()),),
    labels={"app": "x", "kubernetes/pod": "default/p"},
)


def test_what_another_door_changed_stays_when_the_pod_changes() -> None:
    now = replace(SPEC, priority=7)
    wanted = replace(SPEC, labels={"app": "y"})

    assert with_what_differs(now, SPEC, wanted) == replace(now, labels={"app": "y"})


def test_a_pod_that_runs_has_new_labels_and_a_shorter_deadline() -> None:
    old = a_pod(labels={"app": "x", "tier": "a"})
    new = a_pod(labels={"app": "y"}, activeDeadlineSeconds=5)
    spec = replace(SPEC, labels={**SPEC.labels, "tier": "a"}, time_limit=Duration(60_000))

    changed = with_pods_own(spec, old, new, is_gang=False)

    assert changed.labels == {"app": "y", "kubernetes/pod": "default/p"}
    assert changed.time_limit == Duration(5_000)


def test_a_deadline_makes_no_limit_longer() -> None:
    spec = replace(SPEC, time_limit=Duration(2_000))

    changed = with_pods_own(spec, a_pod(), a_pod(activeDeadlineSeconds=5), is_gang=False)

    assert changed == spec


def test_a_gang_loses_a_label_that_one_of_its_pods_loses_and_gets_none() -> None:
    old, new = a_pod(labels={"app": "x"}), a_pod(labels={"more": "z"})

    changed = with_pods_own(SPEC, old, new, is_gang=True)

    assert changed.labels == {"kubernetes/pod": "default/p"}


def test_images_that_differ_are_named() -> None:
    assert other_images(a_pod(), a_pod(image="b:1")) == ["spec.containers[0].image"]


def test_other_annotations_tell_nothing_of_the_job() -> None:
    old, new, ours = a_pod(), a_pod(), a_pod()
    new["metadata"]["annotations"] = {"note": "x", "muster.io/warnings": "y"}
    ours["metadata"]["annotations"] = {"muster.io/priority": "3"}

    assert not is_told_apart(old, new)
    assert is_told_apart(old, ours)
    assert asked_of_us(ours) == {"muster.io/priority": "3"}
