from decimal import Decimal
from typing import Any

import pytest

from muster.doors.kubernetes.pods import quota
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.model.queue import Meter, Queue, Quota, Scope
from muster.model.value import QueuePath
from unit.doors.kubernetes.pods.golden import pod

POD = """
containers:
- {name: main, image: i, resources: {limits: {nvidia.com/gpu: 3, cpu: 100m, memory: 32Mi}}}
"""


def a_quota(name: str = "gpus", **spec: Any) -> dict[str, Any]:
    return {"kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


HARD = {"requests.nvidia.com/gpu": "4", "pods": "3", "cpu": "2", "memory": "1Gi"}
USED = {
    "requests.nvidia.com/gpu": Decimal(3),
    "cpu": Decimal("0.1"),
    "memory": Decimal(32 << 20),
    "pods": Decimal(1),
}


def test_a_pod_within_the_quota_is_let_in() -> None:
    assert quota.refusal(defaulted(pod(POD)), [a_quota(hard=HARD)], {}) is None


def test_a_pod_over_the_quota_is_refused_in_the_words_of_kubernetes() -> None:
    refused = quota.refusal(defaulted(pod(POD)), [a_quota(hard=HARD)], {"gpus": USED})

    assert refused is not None
    assert refused.message == (
        'pods "p" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=3, '
        "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
    )


def test_all_that_is_exceeded_is_named_at_once() -> None:
    more = POD.replace("gpu: 3", "gpu: 2").replace("100m", "2").replace("32Mi", "2Gi")

    refused = quota.refusal(defaulted(pod(more)), [a_quota(hard=HARD)], {"gpus": USED})

    assert refused is not None
    assert refused.message == (
        'pods "p" is forbidden: exceeded quota: gpus, requested: cpu=2,memory=2Gi,'
        "requests.nvidia.com/gpu=2, used: cpu=100m,memory=32Mi,requests.nvidia.com/gpu=3, "
        "limited: cpu=2,memory=1Gi,requests.nvidia.com/gpu=4"
    )


def test_what_a_quota_limits_must_be_said() -> None:
    silent = defaulted(pod("containers: [{name: noreq, image: i}]"))

    refused = quota.refusal(silent, [a_quota(hard=HARD)], {})

    assert refused is not None
    assert refused.message == (
        'pods "p" is forbidden: failed quota: gpus: must specify cpu for: noreq; memory for: noreq'
    )


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, True),
        ({"scopes": ["PriorityClass"]}, False),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["prod"]}
                    ]
                }
            },
            False,
        ),
        ({}, True),
    ],
    ids=["best effort", "others", "with a class", "of one class", "all"],
)
def test_scopes_choose_the_pods_that_count(spec: dict[str, Any], *, counts: bool) -> None:
    assert quota.matches(a_quota(hard={}, **spec), defaulted(pod(POD))["spec"]) is counts


def test_used_and_hard_are_shown_alike() -> None:
    assert quota.status_of_quota(a_quota(hard=HARD), USED) == {
        "hard": HARD,
        "used": {"requests.nvidia.com/gpu": "3", "cpu": "100m", "memory": "32Mi", "pods": "1"},
    }


def test_a_quota_is_a_limit_of_the_queue_for_every_door() -> None:
    gpus, cpus = Scope(meter=Meter.GPU), Scope(meter=Meter.CPU)
    queue = Queue(path=QueuePath("team"), quotas=(Quota(scope=gpus, guaranteed=1_000),))
    more = a_quota(
        "more", hard={"requests.nvidia.com/gpu": "9", "requests.nvidia.com/mig-1g.5gb": "2"}
    )

    found = quota.queue_with(
        queue, [a_quota(hard=HARD), more, a_quota("s", hard={"pods": "1"}, scopes=["BestEffort"])]
    )

    assert found.max_submitted == 3
    assert found.quotas == (
        Quota(scope=gpus, guaranteed=1_000, limit=4_000),
        Quota(scope=cpus, limit=2_000),
        Quota(scope=Scope(meter=Meter.MEMORY), limit=1_024),
        Quota(scope=Scope(meter=Meter.MIG, profile="1g.5gb"), limit=2),
    )
    assert quota.hard_of(found) == {
        "requests.nvidia.com/gpu": "4",
        "requests.cpu": "2",
        "requests.memory": "1Gi",
        "requests.nvidia.com/mig-1g.5gb": "2",
        "pods": "3",
    }
