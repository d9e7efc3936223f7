from typing import Any

import yaml

from muster.doors.kubernetes.pods import limits
from muster.doors.kubernetes.pods.defaults import defaulted
from unit.doors.kubernetes.pods.golden import pod

RANGE = """
metadata: {name: lr}
spec:
  limits:
  - type: Container
    min: {cpu: 10m, memory: 4Mi}
    max: {cpu: 1, memory: 128Mi, nvidia.com/gpu: 2}
    default: {cpu: 500m, memory: 64Mi}
    defaultRequest: {cpu: 100m, memory: 32Mi}
  - {type: Pod, max: {cpu: 2}}
"""


def a_range() -> dict[str, Any]:
    return limits.defaulted_range(yaml.safe_load(RANGE))


def test_a_maximum_is_also_the_default() -> None:
    first = a_range()["spec"]["limits"][0]

    assert first["default"] == {"cpu": "500m", "memory": "64Mi", "nvidia.com/gpu": "2"}
    assert first["defaultRequest"] == {"cpu": "100m", "memory": "32Mi", "nvidia.com/gpu": "2"}


def test_a_container_that_says_nothing_has_the_defaults() -> None:
    silent = defaulted(pod("containers: [{name: d, image: i}]"))

    found = limits.filled(silent, [a_range()])

    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "64Mi", "nvidia.com/gpu": "2"},
        "requests": {"cpu": "100m", "memory": "32Mi", "nvidia.com/gpu": "2"},
    }
    assert found["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: cpu, memory, nvidia.com/gpu request for container d; "
            "cpu, memory, nvidia.com/gpu limit for container d"
        )
    }


def test_who_asks_for_too_much_or_too_little_is_told_all_of_it() -> None:
    large = asking("cpu: 3, memory: 1Gi, nvidia.com/gpu: 1")
    small = asking("cpu: 5m, memory: 1Mi, nvidia.com/gpu: 1")

    too_large = limits.refusal(large, [a_range()])
    too_small = limits.refusal(small, [a_range()])

    assert too_large is not None
    assert too_large.message == (
        'pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 3, '
        "maximum memory usage per Container is 128Mi, but limit is 1Gi, "
        "maximum cpu usage per Pod is 2, but limit is 3]"
    )
    assert too_small is not None
    assert too_small.message == (
        'pods "p" is forbidden: [minimum cpu usage per Container is 10m, but request is 5m, '
        "minimum memory usage per Container is 4Mi, but request is 1Mi]"
    )


def test_a_default_above_the_maximum_is_refused() -> None:
    bad = limits.defaulted_range(yaml.safe_load(RANGE.replace("cpu: 500m", "cpu: 4")))

    found = [f"{each.field}: {each.message}" for each in limits.range_causes(bad, None)]

    why = "default value 4 is greater than max value 1"
    assert found == [f'spec.limits[0].default[cpu]: Invalid value: "1": {why}']


def asking(limits: str) -> dict[str, Any]:
    manifest = f"containers: [{{name: a, image: i, resources: {{limits: {{{limits}}}}}}}]"
    return defaulted(pod(manifest))
