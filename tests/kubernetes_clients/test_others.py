import pytest

from containers.images import IMAGE
from kubernetes_clients.desk import Desk

pytestmark = pytest.mark.slow


def test_asyncio_runs_pods_at_once_and_lets_a_suspended_job_go(desk: Desk) -> None:
    said = desk.runs("asyncio_pods.py", IMAGE)

    assert said["ended"] == "a=Succeeded b=Succeeded c=Succeeded"
    assert said["logs"] == "a b c"
    assert said["left"] == "0"
    assert "suspended" in said
    assert said["complete"] == "1"


def test_lightkube_applies_waits_watches_and_reads_logs(desk: Desk) -> None:
    said = desk.runs("lightkube_objects.py", IMAGE)

    assert said["applied"] == "{'lr': '0.2'}"
    assert said["patched"] == "{'seed': '1'}"
    assert said["complete"] == "1"
    assert said["log"] == "trained"
    assert said["watched"] == "ADDED Succeeded"
    assert said["here"] == "True"
    assert said["missing"] == "404 NotFound"


def test_kr8s_runs_a_pod_and_scales_a_deployment(desk: Desk) -> None:
    said = desk.runs("kr8s_objects.py", IMAGE)

    assert said["log"] == "hi"
    assert said["selected"] == "one"
    assert said["ready"] == "2 2"
    assert said["gpus"] == "4 4"
    assert "missing" in said
