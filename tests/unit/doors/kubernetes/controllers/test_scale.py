from muster.doors.kubernetes.controllers.scale import scale_causes, scale_of, scaled_to
from muster.doors.kubernetes.objects.value import JsonObject

WEB: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "apps",
        "uid": "u",
        "resourceVersion": "1372",
        "creationTimestamp": "2026-11-16T09:16:00Z",
        "labels": {"app": "web"},
    },
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
    "status": {"replicas": 3},
}


def test_a_scale_is_what_a_real_one_is() -> None:
    assert scale_of(WEB) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "web",
            "namespace": "apps",
            "uid": "u",
            "resourceVersion": "1372",
            "creationTimestamp": "2026-11-16T09:16:00Z",
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 3, "selector": "app=web"},
    }


def test_no_replicas_are_not_written() -> None:
    none = scaled_to(WEB, {"spec": {"replicas": 0}})

    assert none["spec"]["replicas"] == 0
    assert scale_of(none)["spec"] == {}


def test_fewer_than_none_are_refused() -> None:
    causes = scale_causes({"spec": {"replicas": -1}})

    words = "Invalid value: -1: must be greater than or equal to 0"
    assert [(each.field, each.message) for each in causes] == [("spec.replicas", words)]
