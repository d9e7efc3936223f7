from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, JOB, SERVICE
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.quota import count_refusal, objects_usage, quota_causes


def a_quota(hard: JsonObject, **spec: object) -> JsonObject:
    return {"metadata": {"name": "counts"}, "spec": {"hard": hard, **spec}}


def named(name: str) -> JsonObject:
    return {"metadata": {"name": name}}


def a_service(name: str, kind: str, **spec: object) -> JsonObject:
    return {**named(name), "spec": {"type": kind, "ports": [{"port": 80}, {"port": 81}], **spec}}


def test_services_are_also_counted_by_what_they_ask_of_nodes_and_balancers() -> None:
    quota = a_quota({"services": "10", "services.nodeports": "2", "services.loadbalancers": "1"})
    used = objects_usage(SERVICE, 1, [a_service("there", "NodePort")])

    refused = count_refusal(SERVICE, a_service("new", "LoadBalancer"), [quota], used)

    assert refused is not None
    assert refused.message == (
        'services "new" is forbidden: exceeded quota: counts, requested: services.nodeports=2, '
        "used: services.nodeports=2, limited: services.nodeports=2"
    )
    without_ports = a_service("new", "LoadBalancer", allocateLoadBalancerNodePorts=False)
    assert count_refusal(SERVICE, without_ports, [quota], used) is None
    assert count_refusal(SERVICE, a_service("new", "ClusterIP"), [quota], used) is None


def test_objects_are_counted_by_their_resource() -> None:
    quota = a_quota({"count/configmaps": "2", "count/jobs.batch": "1"})

    refused = count_refusal(CONFIG_MAP, named("three"), [quota], objects_usage(CONFIG_MAP, 2))

    assert refused is not None
    assert refused.message == (
        'configmaps "three" is forbidden: exceeded quota: counts, requested: count/configmaps=1, '
        "used: count/configmaps=2, limited: count/configmaps=2"
    )
    assert count_refusal(JOB, named("one"), [quota], objects_usage(JOB, 0)) is None


def test_a_quota_of_some_pods_counts_nothing_else() -> None:
    quota = a_quota({"count/configmaps": "0"}, scopes=["BestEffort"])

    assert count_refusal(CONFIG_MAP, named("one"), [quota], objects_usage(CONFIG_MAP, 0)) is None


def test_what_is_wrong_with_a_quota_is_told() -> None:
    wrong = a_quota({"pods": "-1"}, scopes=["Unknown"])

    assert [each.field for each in quota_causes(wrong, None)] == ["spec.hard[pods]", "spec.scopes"]
