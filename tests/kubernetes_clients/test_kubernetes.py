import pytest

from containers.images import IMAGE
from kubernetes_clients.desk import Desk

pytestmark = pytest.mark.slow


def test_kubernetes_runs_a_pod_watches_it_and_reads_its_log(desk: Desk) -> None:
    said = desk.runs("kubernetes_pods.py", IMAGE)

    assert said["made"] == "hello Pending"
    assert said["phases"].split()[-1] == "Failed"
    assert said["log"] == "hello from Python"
    assert said["exit"] == "3"
    assert {"Scheduled", "Created", "Started"} <= set(said["events"].split())
    assert said["selected"] == "1"
    assert said["missing"] == "404 Not Found"


def test_kubernetes_creates_what_a_file_has_and_runs_its_job(desk: Desk) -> None:
    said = desk.runs("kubernetes_jobs.py", IMAGE)

    assert said["logs"] == "0 0.1 1 0.1"
    assert "Conflict" in said["refused"]


def test_kubernetes_learns_a_kind_that_was_just_defined(desk: Desk) -> None:
    said = desk.runs("kubernetes_dynamic.py", "dynamic.example.org")

    assert said["applied"] == "me 3"
    assert said["done"] == "2 3"
    assert said["watched"] == "ADDED bert"
    assert "should be greater than or equal to 1" in said["refused"]


def test_kubernetes_elects_a_leader_and_another_when_it_steps_down(desk: Desk) -> None:
    assert desk.runs("kubernetes_leader.py") == {"leader": "first", "then": "second"}
