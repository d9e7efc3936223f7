from typing import Any

import msgspec
import pytest
import yaml

from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.pods.defaults import admitted, defaulted
from muster.doors.kubernetes.pods.job_of import job_of
from muster.doors.kubernetes.pods.launch_of import pod_launch
from muster.model.pod import Container
from unit.doors.kubernetes.pods.golden import cases, pod
from unit.doors.kubernetes.pods.worlds import WORLD

JOBS = cases("jobs.txt")
LAUNCHES = cases("launches.txt")
PLAIN = "containers: [{name: a, image: i}]"


@pytest.mark.parametrize("name", JOBS)
def test_a_pod_is_a_job(name: str) -> None:
    manifest, expected = JOBS[name]

    found = told(manifest)

    assert found == yaml.safe_load(expected)


@pytest.mark.parametrize("name", LAUNCHES)
def test_containers_run_what_the_manifest_says(name: str) -> None:
    manifest, expected = LAUNCHES[name]
    launch = plain_json(pod_launch(defaulted(pod(manifest, uid="u"))))
    plain = plain_json(pod_launch(defaulted(pod(PLAIN, uid="u"))))
    blank = plain_json(Container(name="", image=""))

    found = differing(launch, plain)
    found["containers"] = [
        {key: value for key, value in each.items() if value != blank[key] and key != "image"}
        for each in launch["containers"]
    ]
    for each in found["containers"]:
        if each.get("pull") == "always":
            del each["pull"]

    assert found == yaml.safe_load(expected)


def test_what_the_api_puts_in_changes_nothing_that_was_asked_for() -> None:
    manifest = "containers: [{name: a, image: i, command: [b], resources: {limits: {cpu: 1}}}]"
    plain = job_of(defaulted(pod(manifest)), WORLD)

    found = job_of(admitted(defaulted(pod(manifest)), None), WORLD)

    assert found.warnings == plain.warnings == ()
    assert found.spec.groups == plain.spec.groups
    assert found.spec.launch.argv == ("b",)


def test_a_pod_that_a_webhook_gave_another_container_has_one_volume_with_its_token() -> None:
    made = admitted(defaulted(pod(PLAIN)), None)
    made["spec"]["initContainers"] = [{"name": "added", "image": "i"}]

    again = admitted(defaulted(made), None)

    (volume,) = again["spec"]["volumes"]
    (added,) = again["spec"]["initContainers"]
    assert [each["name"] for each in added["volumeMounts"]] == [volume["name"]]


def told(manifest: str) -> dict[str, Any]:
    """What is asked for beyond what every pod asks for."""
    try:
        wanted = job_of(defaulted(pod(manifest)), WORLD)
    except StatusError as refused:
        return {"refused": refused.message}
    plain = job_of(defaulted(pod(PLAIN)), WORLD)
    found = differing(plain_json(wanted.spec), plain_json(plain.spec))
    launch = differing(found.pop("launch", {}), plain_json(plain.spec.launch))
    launch.pop("pod", None)
    if launch:
        found["launch"] = launch
    if wanted.held:
        found["held"] = True
    if wanted.warnings:
        found["warnings"] = list(wanted.warnings)
    return found


def plain_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def differing(found: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value != plain.get(key)}
