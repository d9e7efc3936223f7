from muster.doors.kubernetes.controllers.changes import Create
from muster.doors.kubernetes.controllers.cluster import Objects
from muster.doors.kubernetes.controllers.namespaces import furnish
from muster.doors.kubernetes.objects.kinds import NAMESPACE
from muster.doors.kubernetes.objects.value import JsonObject, metadata, name_of
from properties.kubernetes_world import KubernetesWorld, pod


def test_a_new_namespace_gets_an_account_and_the_root_certificate() -> None:
    space = namespace()

    changes = furnish(space, Objects(), "PEM").changes

    made = [each.object for each in changes if isinstance(each, Create)]
    assert [(each["kind"], name_of(each)) for each in made] == [
        ("ServiceAccount", "default"),
        ("ConfigMap", "kube-root-ca.crt"),
    ]
    assert made[1]["data"] == {"ca.crt": "PEM"}
    there = [{**each, "metadata": {**metadata(each), "uid": name_of(each)}} for each in made]
    assert furnish(space, Objects(there), "PEM").changes == ()


def test_a_namespace_that_goes_takes_its_pods_first_and_then_the_rest() -> None:
    world, space = emptied_with_a_running_pod()
    assert len(world.pods()) == 1
    assert world.objects.within("default") != []
    conditions = world.fresh(space)["status"]["conditions"]
    assert [each["status"] for each in conditions] == ["False"] * 5

    world.all_stop()
    world.settles()

    assert list(world.objects.all()) == []


def test_what_a_finalizer_holds_is_named_in_the_conditions() -> None:
    world = KubernetesWorld()
    space = world.create(namespace())
    about = {"name": "held", "finalizers": ["example.com/wait"]}
    held = world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about})

    world.delete(space)
    world.settles()

    told = {each["type"]: each for each in world.fresh(space)["status"]["conditions"]}
    assert told["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert told["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining:"
        " example.com/wait in 1 resource instances"
    )
    world.update({**world.fresh(held), "metadata": {**metadata(held), "finalizers": []}})
    world.settles()
    assert world.of(NAMESPACE) == []


def emptied_with_a_running_pod() -> tuple[KubernetesWorld, JsonObject]:
    world = KubernetesWorld()
    space = world.create(namespace())
    world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
    world.runs(world.create(pod("p")))
    world.delete(space)
    world.settles()
    return world, space


def namespace() -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "namespace": ""},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
