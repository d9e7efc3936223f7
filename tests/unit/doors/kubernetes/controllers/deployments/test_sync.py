from typing import Any

from muster.doors.kubernetes.controllers.deployments.revisions import (
    HISTORY,
    REVISION,
    replicas,
    revision,
)
from muster.doors.kubernetes.objects.kinds import DEPLOYMENT, REPLICA_SET
from muster.doors.kubernetes.objects.value import JsonObject, annotations_of, metadata, name_of
from properties.kubernetes_world import KubernetesWorld, deployment, template


def test_a_new_deployment_makes_a_replica_set_of_its_template() -> None:
    world, web = begun(replicas=2)

    made = world.of(REPLICA_SET)[0]
    assert name_of(made).startswith("web-")
    hashed = metadata(made)["labels"]["pod-template-hash"]
    assert name_of(made) == f"web-{hashed}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hashed}
    assert metadata(made)["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    assert annotations_of(world.fresh(web)) == {REVISION: "1"}
    scaled = f"Scaled up replica set {name_of(made)} from 0 to 2"
    assert world.said(web) == [("ScalingReplicaSet", scaled)]
    assert len(world.active(made)) == 2


def test_a_deployment_that_is_rolled_out_says_so_as_a_real_one_does() -> None:
    world, web = rolled_out(replicas=2)

    name = name_of(world.of(REPLICA_SET)[0])
    status = world.fresh(web)["status"]
    conditions = {each["type"]: each for each in status.pop("conditions")}
    assert status == {
        "availableReplicas": 2,
        "observedGeneration": 1,
        "readyReplicas": 2,
        "replicas": 2,
        "terminatingReplicas": 0,
        "updatedReplicas": 2,
    }
    told = {type_: (each["status"], each["reason"]) for type_, each in conditions.items()}
    assert told == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    message = f'ReplicaSet "{name}" has successfully progressed.'
    assert conditions["Progressing"]["message"] == message


def test_a_new_template_replaces_pods_one_after_the_other() -> None:
    world, web = rolled_out(replicas=2)

    web = world.edit(web, template=template("two"))
    world.settles()

    sizes = {image(each): replicas(each) for each in world.of(REPLICA_SET)}
    assert sizes == {"one": 2, "two": 1}
    all_run(world)
    sizes = {image(each): replicas(each) for each in world.of(REPLICA_SET)}
    assert sizes == {"one": 0, "two": 2}
    old, new = sorted(map(name_of, world.of(REPLICA_SET)), key=lambda name: size(world, name))
    assert [text for _, text in world.said(web)[1:]] == [
        f"Scaled up replica set {new} from 0 to 1",
        f"Scaled down replica set {old} from 2 to 1",
        f"Scaled up replica set {new} from 1 to 2",
        f"Scaled down replica set {old} from 1 to 0",
    ]


def test_going_back_reuses_the_old_replica_set_with_a_new_revision() -> None:
    world, web = rolled_out()
    web = world.edit(web, template=template("two"))
    world.settles()
    all_run(world)

    world.edit(web, template=template("one"))
    world.settles()
    all_run(world)

    revisions = {image(each): revision(each) for each in world.of(REPLICA_SET)}
    assert revisions == {"one": 3, "two": 2}
    again = next(each for each in world.of(REPLICA_SET) if image(each) == "one")
    assert annotations_of(again)[HISTORY] == "1"
    assert annotations_of(world.fresh(web))[REVISION] == "3"


def test_recreate_stops_all_old_pods_before_new_ones_start() -> None:
    world, web = rolled_out(replicas=2, strategy={"type": "Recreate"})

    world.edit(web, template=template("two"))
    world.settles()
    assert world.active() == []
    assert len(world.pods()) == 2

    world.all_stop()
    world.settles()
    assert len(world.active()) == 2


def test_a_rollout_that_does_not_get_on_is_said_to_have_timed_out() -> None:
    world, web = rolled_out(progressDeadlineSeconds=11)
    world.edit(web, template=template("two"))
    world.settles()

    world.passes(12)
    world.settles()

    conditions = {each["type"]: each for each in world.fresh(web)["status"]["conditions"]}
    new = next(name_of(each) for each in world.of(REPLICA_SET) if image(each) == "two")
    assert conditions["Progressing"]["reason"] == "ProgressDeadlineExceeded"
    assert conditions["Progressing"]["status"] == "False"
    assert conditions["Progressing"]["message"] == f'ReplicaSet "{new}" has timed out progressing.'


def test_a_paused_deployment_follows_its_size_and_not_its_template() -> None:
    world, web = rolled_out(replicas=2)
    web = world.edit(web, paused=True, template=template("two"))
    world.settles()
    assert [image(each) for each in world.of(REPLICA_SET)] == ["one"]

    web = world.edit(web, replicas=3)
    world.settles()
    assert len(world.active()) == 3
    progress = {each["type"]: each["reason"] for each in world.fresh(web)["status"]["conditions"]}
    assert progress["Progressing"] == "DeploymentPaused"

    world.edit(web, paused=False)
    world.settles()
    assert {image(each) for each in world.of(REPLICA_SET)} == {"one", "two"}


def test_a_change_of_size_in_the_middle_of_a_rollout_keeps_the_proportions() -> None:
    world, web = rolled_out(
        replicas=10,
        strategy={
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2},
        },
    )
    web = world.edit(web, template=template("two"))
    world.settles()
    sizes = {image(each): replicas(each) for each in world.of(REPLICA_SET)}
    assert sizes == {"one": 8, "two": 5}

    world.edit(web, replicas=15)
    for _ in range(3):
        world.step()

    sizes = {image(each): replicas(each) for each in world.of(REPLICA_SET)}
    assert sizes == {"one": 11, "two": 7}


def test_old_replica_sets_beyond_the_history_are_deleted() -> None:
    world, web = rolled_out(revisionHistoryLimit=1)

    for name in ("two", "three", "four"):
        web = world.edit(web, template=template(name))
        world.settles()
        all_run(world)

    assert sorted(image(each) for each in world.of(REPLICA_SET)) == ["four", "three"]


def test_a_replica_set_that_is_deleted_is_made_again() -> None:
    world, web = rolled_out(replicas=2)
    old = world.of(REPLICA_SET)[0]

    world.delete(old)
    world.settles()

    new = world.of(REPLICA_SET)[0]
    assert name_of(new) == name_of(old)
    assert len(world.active(new)) == 2
    assert world.is_there(web)


def test_pods_that_a_quota_refuses_are_said_in_the_conditions() -> None:
    world = KubernetesWorld()
    world.quota = 1
    web = world.create(deployment(replicas=2))

    world.settles()
    world.passes(1)
    world.settles()

    conditions = {each["type"]: each for each in world.fresh(web)["status"]["conditions"]}
    assert conditions["ReplicaFailure"]["reason"] == "FailedCreate"
    assert conditions["ReplicaFailure"]["message"] == "exceeded quota"


def test_a_name_that_another_replica_set_has_leads_to_another_hash() -> None:
    world, web = begun()
    taken = world.of(REPLICA_SET)[0]
    world.delete(web, "Orphan")
    world.settles()
    stranger = world.fresh(taken)
    stranger["metadata"]["labels"] = {"app": "stranger"}

    again = world.create(deployment())
    world.settles()

    names = {name_of(each) for each in world.of(REPLICA_SET)}
    assert len(names) == 2
    assert world.fresh(again)["status"]["collisionCount"] == 1


def test_orphaned_replica_sets_are_adopted_by_a_deployment_that_selects_them() -> None:
    world, web = rolled_out()
    world.delete(web, "Orphan")
    world.settles()
    assert world.of(DEPLOYMENT) == []
    assert "ownerReferences" not in metadata(world.of(REPLICA_SET)[0])

    again = world.create(deployment())
    world.settles()

    owners = metadata(world.of(REPLICA_SET)[0])["ownerReferences"]
    assert [each["uid"] for each in owners] == [metadata(again)["uid"]]


def begun(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    made = world.create(deployment(**spec))
    world.settles()
    return world, made


def rolled_out(**spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world, made = begun(**spec)
    all_run(world)
    return world, made


def all_run(world: KubernetesWorld) -> None:
    """Pods start and stop until nothing is left to do."""
    while waiting := [pod for pod in world.active() if pod["status"]["phase"] == "Pending"]:
        world.runs(waiting[0])
        world.all_stop()
        world.settles()
    world.all_stop()
    world.settles()


def image(replica_set: JsonObject) -> str:
    return replica_set["spec"]["template"]["spec"]["containers"][0]["image"]


def size(world: KubernetesWorld, name: str) -> int:
    return next(replicas(each) for each in world.of(REPLICA_SET) if name_of(each) == name)
