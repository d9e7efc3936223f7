import pytest

from muster.doors.kubernetes.objects.errors import Cause, StatusError
from muster.doors.kubernetes.pods.checks.pod import pod_causes
from muster.doors.kubernetes.pods.defaults import defaulted
from unit.doors.kubernetes.pods.golden import cases, pod

INVALID = cases("invalid-pods.txt")
CHANGED = cases("changed-pods.txt")


@pytest.mark.parametrize("name", INVALID)
def test_a_pod_is_refused_in_the_words_of_kubernetes(name: str) -> None:
    manifest, expected = INVALID[name]

    found = lines(pod_causes(defaulted(pod(manifest)), None))

    assert found == expected.splitlines()


@pytest.mark.parametrize("name", CHANGED)
def test_few_fields_of_a_pod_may_change(name: str) -> None:
    before, after, expected = CHANGED[name]

    found = lines(pod_causes(defaulted(pod(after)), defaulted(pod(before))))

    assert found == expected.splitlines()


def test_an_amount_that_is_none_is_no_pod() -> None:
    manifest = "containers: [{name: a, image: i, resources: {limits: {cpu: one}}}]"

    with pytest.raises(StatusError) as refused:
        defaulted(pod(manifest))

    assert refused.value.code == 400
    assert refused.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular '
        "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


def lines(causes: list[Cause]) -> list[str]:
    return [f"{each.field}: {each.message}" for each in causes]
