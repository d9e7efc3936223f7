from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.launch_of import pod_launch
from muster.doors.kubernetes.pods.links import links_to, with_links
from muster.model.pod import Text
from unit.doors.kubernetes.pods.golden import pod

DB: JsonObject = {
    "metadata": {"name": "my-db"},
    "spec": {"clusterIP": "127.5.0.9", "ports": [{"name": "sql", "port": 5432}]},
}
HEADLESS: JsonObject = {
    "metadata": {"name": "ranks"},
    "spec": {"clusterIP": "None", "ports": [{"port": 29500}]},
}


def test_containers_find_the_api_where_it_listens() -> None:
    found = dict(links_to("127.0.0.1:6443", ()))

    assert found["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert found["KUBERNETES_SERVICE_PORT"] == "6443"


def test_services_are_named_as_kubelets_name_them() -> None:
    found = dict(links_to("127.0.0.1:6443", (DB, HEADLESS)))

    assert found["MY_DB_SERVICE_HOST"] == "127.5.0.9"
    assert found["MY_DB_SERVICE_PORT_SQL"] == "5432"
    assert found["MY_DB_PORT"] == "tcp://127.5.0.9:5432"
    assert found["MY_DB_PORT_5432_TCP_ADDR"] == "127.5.0.9"
    assert not [name for name in found if name.startswith("RANKS")]


def test_what_a_container_says_itself_comes_last() -> None:
    launch = pod_launch(pod("containers: [{name: a, env: [{name: X, value: own}]}]"))

    [container] = with_links(launch, (("X", "given"),)).containers

    assert [each.value for each in container.env] == [Text(value="given"), Text(value="own")]
