from typing import Any

from muster.doors.kubernetes.controllers.stateful_sets import ordinal, sync
from muster.doors.kubernetes.objects.kinds import CONTROLLER_REVISION
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, name_of
from properties.kubernetes_world import KubernetesWorld, template


def test_pods_are_created_one_after_the_other() -> None:
    world, db = begun(replicas=3)
    assert names(world) == ["db-0"]

    world.runs(world.active()[0])
    world.settles()
    assert names(world) == ["db-0", "db-1"]

    all_run(world)
    assert names(world) == ["db-0", "db-1", "db-2"]
    assert world.said(db) == [
        ("SuccessfulCreate", f"Create Pod db-{each} in StatefulSet db successful")
        for each in range(3)
    ]


def test_a_pod_has_its_name_its_number_and_its_revision() -> None:
    world, db = begun(serviceName="db")
    pod = world.pods()[0]
    revision = name_of(world.of(CONTROLLER_REVISION)[0])

    assert labels_of(pod) == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": "db-0",
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert world.fresh(db)["status"]["currentRevision"] == revision


def test_in_parallel_all_are_created_at_once() -> None:
    world, _ = begun(replicas=3, podManagementPolicy="Parallel")

    assert names(world) == ["db-0", "db-1", "db-2"]


def test_the_last_pods_go_first() -> None:
    world, db = rolled_out(replicas=3)

    world.edit(db, replicas=1)
    world.settles()
    assert names(world) == ["db-0", "db-1"]

    world.all_stop()
    world.settles()
    assert names(world) == ["db-0"]
    assert ("SuccessfulDelete", "delete Pod db-2 in StatefulSet db successful") in world.said(db)


def test_a_new_template_replaces_pods_from_the_last_to_the_first() -> None:
    world, db = rolled_out(replicas=2)
    old = world.fresh(db)["status"]["currentRevision"]

    world.edit(db, template=template("two", app="db"))
    world.settles()
    assert names(world) == ["db-0"]
    world.all_stop()
    world.settles()
    assert images(world) == {"db-0": "one", "db-1": "two"}
    status = world.fresh(db)["status"]
    assert status["currentRevision"] == old
    assert status["updateRevision"] != old

    all_run(world)
    assert images(world) == {"db-0": "two", "db-1": "two"}
    status = world.fresh(db)["status"]
    assert status["currentRevision"] == status["updateRevision"] != old


def test_pods_below_the_partition_keep_their_revision_even_when_made_again() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    world, db = rolled_out(replicas=2, updateStrategy=strategy)
    world.edit(db, template=template("two", app="db"))
    world.settles()
    all_run(world)
    assert images(world) == {"db-0": "one", "db-1": "two"}

    world.delete(world.pods()[0])
    all_run(world)

    assert images(world) == {"db-0": "one", "db-1": "two"}


def test_on_delete_a_pod_is_new_when_it_is_made_again() -> None:
    world, db = rolled_out(updateStrategy={"type": "OnDelete"})
    world.edit(db, template=template("two", app="db"))
    world.settles()
    assert images(world) == {"db-0": "one"}

    world.delete(world.pods()[0])
    all_run(world)

    assert images(world) == {"db-0": "two"}


def test_a_pod_that_failed_is_made_again() -> None:
    world, _ = rolled_out()

    world.ends(world.pods()[0], code=1)
    world.settles()

    assert names(world) == ["db-0"]
    assert world.pods()[0]["status"]["phase"] == "Pending"


def test_templates_that_nobody_uses_are_forgotten_beyond_the_history() -> None:
    world, db = rolled_out(revisionHistoryLimit=1)

    for image in ("two", "three", "four"):
        db = world.edit(db, template=template(image, app="db"))
        world.settles()
        all_run(world)

    assert sorted(each["revision"] for each in world.of(CONTROLLER_REVISION)) == [3, 4]


def test_going_back_gives_the_old_revision_a_new_number() -> None:
    world, db = rolled_out()
    db = world.edit(db, template=template("two", app="db"))
    world.settles()
    all_run(world)

    world.edit(db, template=template("one", app="db"))
    world.settles()
    all_run(world)

    assert sorted(each["revision"] for each in world.of(CONTROLLER_REVISION)) == [2, 3]


def test_pods_that_have_ended_do_not_hold_up_those_that_must_go() -> None:
    world, db = rolled_out(replicas=3)
    world.edit(db, replicas=0)
    for pod in world.pods()[:2]:
        world.ends(pod, code=1)

    all_run(world)

    assert world.pods() == []


def test_deleted_in_the_foreground_it_goes_after_its_pods_and_revisions() -> None:
    world, db = rolled_out(replicas=2)

    world.delete(db, "Foreground")
    world.settles()
    assert world.is_there(db)

    world.all_stop()
    world.settles()
    assert list(world.objects.all()) == []


def test_looking_twice_changes_nothing() -> None:
    world, db = rolled_out(replicas=3)

    assert sync(world.fresh(db), world.objects, world.now).changes == ()


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    wanted: JsonObject = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "db"}},
        "template": template("one", app="db"),
    }
    about = {"name": "db"}
    kind = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    made = world.create({**kind, "metadata": about, "spec": {**wanted, **spec}})
    world.settles()
    return world, made


def rolled_out(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world, made = begun(**spec)
    all_run(world)
    return world, made


def all_run(world: KubernetesWorld) -> None:
    for _ in range(20):
        for pod in world.active():
            if pod["status"]["phase"] == "Pending":
                world.runs(pod)
        world.all_stop()
        world.settles()


def names(world: KubernetesWorld) -> list[str]:
    return [name_of(each) for each in sorted(world.active(), key=ordinal)]


def images(world: KubernetesWorld) -> dict[str, str]:
    return {name_of(each): each["spec"]["containers"][0]["image"] for each in world.active()}
