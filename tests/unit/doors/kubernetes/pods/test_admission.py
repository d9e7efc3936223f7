import pytest

from muster.doors.kubernetes.pods import admission
from muster.doors.kubernetes.pods.admission import Known
from unit.doors.kubernetes.pods.golden import pod

KNOWN = Known(priorities={"high": 100, "low": -5}, preempts=frozenset({"high"}))


NO_NUMBER = (
    "the integer value of priority (5) must not be provided in pod spec; "
    "priority admission controller computed 0 from the given PriorityClass name"
)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("priorityClassName: nosuch", "no PriorityClass with name nosuch was found"),
        ("priority: 5", NO_NUMBER),
        (
            "serviceAccountName: ghost",
            'error looking up service account team-a/ghost: serviceaccount "ghost" not found',
        ),
        ("runtimeClassName: ghost", 'pod rejected: RuntimeClass "ghost" not found'),
        (
            "overhead: {cpu: 1}",
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
    ids=["class", "priority", "account", "runtime", "overhead"],
)
def test_a_pod_that_names_what_is_not_there_is_refused(manifest: str, told: str) -> None:
    refused = admission.refusal(pod(manifest), KNOWN)

    assert refused is not None
    assert refused.message == f'pods "p" is forbidden: {told}'


def test_a_pod_has_the_priority_of_its_class() -> None:
    high = admission.with_priority(pod("priorityClassName: high"), KNOWN)["spec"]
    low = admission.with_priority(pod("priorityClassName: low"), KNOWN)["spec"]
    none = admission.with_priority(pod("{}"), KNOWN)["spec"]

    assert (high["priority"], high["preemptionPolicy"]) == (100, "PreemptLowerPriority")
    assert (low["priority"], low["preemptionPolicy"]) == (-5, "Never")
    assert none == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert admission.refusal(pod("priorityClassName: system-node-critical"), KNOWN) is None
