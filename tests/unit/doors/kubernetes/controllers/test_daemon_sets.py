from typing import Any

from muster.doors.kubernetes.controllers.daemon_sets import sync
from muster.doors.kubernetes.objects.kinds import NODE
from muster.doors.kubernetes.objects.value import JsonObject, part
from properties.kubernetes_world import KubernetesWorld, template


def test_every_node_gets_one_pod_meant_for_it() -> None:
    world, agent = begun("n1", "n2")

    assert nodes(world) == ["n1", "n2"]
    keys = {each["key"] for each in world.pods()[0]["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys
    all_run(world)
    assert world.fresh(agent)["status"] == {
        "currentNumberScheduled": 2,
        "desiredNumberScheduled": 2,
        "numberAvailable": 2,
        "numberMisscheduled": 0,
        "numberReady": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 2,
    }


def test_a_node_that_comes_later_gets_one_too() -> None:
    world, _ = begun("n1")

    world.create(node("n2"))
    world.settles()

    assert nodes(world) == ["n1", "n2"]


def test_a_node_that_it_does_not_select_or_tolerate_gets_none() -> None:
    world = KubernetesWorld()
    world.create(node("gpu", labels={"gpu": "h200"}))
    world.create(node("plain"))
    tainted = node("bad", labels={"gpu": "h200"})
    tainted["spec"] = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
    world.create(tainted)
    wanted = template(app="agent")
    wanted["spec"]["nodeSelector"] = {"gpu": "h200"}

    world.create(daemon_set(template=wanted))
    world.settles()

    assert nodes(world) == ["gpu"]


def test_a_node_driven_empty_loses_its_pod() -> None:
    world, _ = begun("n1", "n2")
    all_run(world)
    held = world.of(NODE)[1]
    taints = [{"key": "maintenance", "effect": "NoExecute"}]
    world.update({**held, "spec": {"taints": taints}})
    world.settles()
    world.all_stop()
    world.settles()

    assert nodes(world) == ["n1"]


def test_a_new_template_replaces_one_pod_after_the_other() -> None:
    world, agent = begun("n1", "n2")
    all_run(world)

    world.edit(agent, template=template("two", app="agent"))
    world.settles()
    assert len(world.active()) == 1

    world.all_stop()
    world.settles()
    assert images(world) == {"one": 1, "two": 1}
    all_run(world)
    assert images(world) == {"two": 2}


def test_with_a_surge_the_new_pod_runs_before_the_old_one_goes() -> None:
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    world, agent = begun("n1", "n2", updateStrategy=strategy)
    all_run(world)

    world.edit(agent, template=template("two", app="agent"))
    world.settles()

    assert images(world) == {"one": 2, "two": 1}
    all_run(world)
    assert images(world) == {"two": 2}


def test_a_pod_that_failed_at_once_is_replaced_a_little_later() -> None:
    world, agent = begun("n1")
    world.ends(world.pods()[0], code=1)
    world.settles()
    assert len(world.pods()) == 1

    world.passes(10)
    world.settles()

    assert world.pods()[0]["status"]["phase"] == "Pending"
    assert "FailedDaemonPod" in {reason for reason, _ in world.said(agent)}


def test_what_muster_does_itself_is_answered_without_pods() -> None:
    world = KubernetesWorld()
    for name in ("n1", "n2"):
        world.create(node(name))
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.17.0"

    zeros = {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberReady": 0}
    asked = daemon_set(template=template(image, app="agent"))
    plugin = world.create({**asked, "status": {**zeros, "numberMisscheduled": 0}})
    world.settles()

    assert world.pods() == []
    status = world.fresh(plugin)["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (2, 2)
    words = "No pods are started: GPUs are offered as nvidia.com/gpu by Muster itself"
    assert world.said(plugin) == [("AnsweredByMuster", words)]


def test_looking_twice_changes_nothing() -> None:
    world, agent = begun("n1", "n2")
    all_run(world)

    assert sync(world.fresh(agent), world.objects, world.now).changes == ()


def begun(*names: str, **spec: Any) -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    for name in names:
        world.create(node(name))
    made = world.create(daemon_set(**spec))
    world.settles()
    return world, made


def daemon_set(**spec: Any) -> JsonObject:
    wanted: JsonObject = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": template("one", app="agent"),
    }
    kind = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}}
    return {**kind, "spec": {**wanted, **spec}}


def node(name: str, labels: dict[str, str] | None = None) -> JsonObject:
    about = {"name": name, "namespace": "", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "spec": {}}


def target(pod: JsonObject) -> str:
    required = part(pod, "spec", "affinity", "nodeAffinity")[
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    return required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


def nodes(world: KubernetesWorld) -> list[str]:
    return sorted(target(each) for each in world.active())


def images(world: KubernetesWorld) -> dict[str, int]:
    found = [each["spec"]["containers"][0]["image"] for each in world.active()]
    return {each: found.count(each) for each in sorted(set(found))}


def all_run(world: KubernetesWorld) -> None:
    for _ in range(10):
        for pod in world.active():
            if pod["status"]["phase"] == "Pending":
                world.runs(pod, target(pod))
        world.all_stop()
        world.settles()
