import pytest

from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.pods import admission
from muster.doors.kubernetes.pods.admission import Known
from muster.doors.kubernetes.pods.runtime_classes import runtime_causes
from unit.doors.kubernetes.pods.golden import pod

SANDBOX: JsonObject = {
    "metadata": {"name": "sandbox"},
    "handler": "kata",
    "overhead": {"podFixed": {"memory": "128Mi", "cpu": "250m"}},
    "scheduling": {
        "nodeSelector": {"sandboxes": "yes"},
        "tolerations": [{"key": "sandboxes", "operator": "Exists"}],
    },
}
KNOWN = Known(
    priorities={"high": 100, "low": -5},
    preempts=frozenset({"high"}),
    runtimes={"sandbox": SANDBOX, "plain": {"handler": "runc"}},
)


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
        (
            "{overhead: {cpu: 1}, runtimeClassName: plain}",
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            "{overhead: {cpu: 1}, runtimeClassName: sandbox}",
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            "{nodeSelector: {sandboxes: no-way}, runtimeClassName: sandbox}",
            (
                "conflict: runtimeClass.scheduling.nodeSelector[sandboxes] = yes; "
                "pod.spec.nodeSelector[sandboxes] = no-way"
            ),
        ),
    ],
    ids=["class", "priority", "account", "runtime", "overhead", "alone", "other", "selector"],
)
def test_a_pod_that_names_what_is_not_there_is_refused(manifest: str, told: str) -> None:
    refused = admission.refusal(pod(manifest), KNOWN)

    assert refused is not None
    assert refused.message == f'pods "p" is forbidden: {told}'


def test_a_pod_has_what_its_runtime_class_says() -> None:
    wanted = "{runtimeClassName: sandbox, nodeSelector: {zone: a}, tolerations: [{key: t}]}"

    spec = admission.filled(pod(wanted), KNOWN)["spec"]

    assert spec["overhead"] == {"memory": "128Mi", "cpu": "250m"}
    assert spec["nodeSelector"] == {"zone": "a", "sandboxes": "yes"}
    assert [each["key"] for each in spec["tolerations"]] == ["t", "sandboxes"]
    assert admission.refusal(pod("runtimeClassName: plain"), KNOWN) is None


def test_a_pod_without_a_runtime_class_is_as_it_was() -> None:
    spec = admission.filled(pod("{}"), KNOWN)["spec"]

    assert not {"overhead", "nodeSelector", "tolerations"} & spec.keys()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "handler: Required value"),
        ({"handler": "No!"}, 'handler: Invalid value: "No!"'),
        ({"handler": "a", "overhead": {"podFixed": {"nvidia.com/gpu": "1"}}}, "cpu or memory"),
        ({"handler": "a", "overhead": {"podFixed": {"cpu": "-1"}}}, "greater than or equal to 0"),
        ({"handler": "a", "scheduling": {"nodeSelector": {"a b": "c"}}}, "nodeSelector"),
        ({"handler": "a", "scheduling": {"tolerations": [{"effect": "Flee"}]}}, "tolerations[0]"),
    ],
    ids="handler letters gpu amount label toleration".split(),
)
def test_a_runtime_class_that_cannot_be_is_refused(given: JsonObject, told: str) -> None:
    cause = runtime_causes(given, None)[0]

    assert told in f"{cause.field}: {cause.message}"


def test_the_handler_of_a_runtime_class_stays() -> None:
    assert runtime_causes({"handler": "b"}, {"handler": "a"})[0].field == "handler"
    assert not runtime_causes(SANDBOX, SANDBOX)


def test_a_pod_has_the_priority_of_its_class() -> None:
    high = admission.with_priority(pod("priorityClassName: high"), KNOWN)["spec"]
    low = admission.with_priority(pod("priorityClassName: low"), KNOWN)["spec"]
    none = admission.with_priority(pod("{}"), KNOWN)["spec"]

    assert (high["priority"], high["preemptionPolicy"]) == (100, "PreemptLowerPriority")
    assert (low["priority"], low["preemptionPolicy"]) == (-5, "Never")
    assert none == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert admission.refusal(pod("priorityClassName: system-node-critical"), KNOWN) is None
