from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, JOB
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods.quota import count_refusal, quota_causes


def a_quota(hard: JsonObject, **spec: object) -> JsonObject:
    return {"metadata": {"name": "counts"}, "spec": {"hard": hard, **spec}}


def test_objects_are_counted_by_their_resource() -> None:
    quota = a_quota({"count/configmaps": "2", "count/jobs.batch": "1"})

    refused = count_refusal(CONFIG_MAP, "three", [quota], 2)

    assert refused is not None
    assert refused.message == (
        'configmaps "three" is forbidden: exceeded quota: counts, requested: count/configmaps=1, '
        "used: count/configmaps=2, limited: count/configmaps=2"
    )
    assert count_refusal(JOB, "one", [quota], 0) is None


def test_a_quota_of_some_pods_counts_nothing_else() -> None:
    quota = a_quota({"count/configmaps": "0"}, scopes=["BestEffort"])

    assert count_refusal(CONFIG_MAP, "one", [quota], 0) is None


def test_what_is_wrong_with_a_quota_is_told() -> None:
    wrong = a_quota({"pods": "-1"}, scopes=["Unknown"])

    assert [each.field for each in quota_causes(wrong, None)] == ["spec.hard[pods]", "spec.scopes"]
