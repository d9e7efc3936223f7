from collections.abc import Callable
from pathlib import Path

import pytest

from containers.images import IMAGE
from doors.kubernetes.cluster import PATIENT
from kubernetes_clients.desk import SCRIPTS, Desk, comes_true

pytestmark = pytest.mark.slow

WATCHED = f"--image={IMAGE} --restart=Never --labels=watched=yes --command -- sleep 1"
MODEL = f"""
apiVersion: models.example.org/v1
kind: Model
metadata: {{name: bert}}
spec: {{epochs: 3, image: "{IMAGE}"}}
"""


def test_kopf_watches_pods_marks_them_and_is_told_when_they_go(desk: Desk) -> None:
    with desk.beside(*operator(desk, "kopf_pods.py")) as said:
        desk.kubectl(f"run one {WATCHED}")
        desk.kubectl(f"wait pod/one --for=jsonpath='{{.status.phase}}'=Succeeded {PATIENT}")
        comes_true(has(said, "seen one MODIFIED Succeeded"), said.read_text)
        comes_true(has(said, "made one"), said.read_text)
        comes_true(lambda: "one is watched" in desk.kubectl("events"), said.read_text)
        desk.kubectl(f"delete pod one --now {PATIENT}")
        comes_true(has(said, "seen one DELETED"), said.read_text)

    assert "gone one" in said.read_text()


def test_kopf_runs_an_operator_with_a_kind_of_its_own(desk: Desk) -> None:
    desk.house.kubectl(f"apply -f {SCRIPTS / 'kopf_models.yaml'}")
    desk.house.kubectl(f"wait --for=condition=Established crd/models.models.example.org {PATIENT}")
    with desk.beside(*operator(desk, "kopf_models.py")) as said:
        desk.kubectl("apply -f -", stdin=MODEL)
        comes_true(lambda: "Trained" in desk.kubectl("get models"), said.read_text)
        desk.kubectl("""patch model bert --type=merge -p '{"spec":{"epochs":5}}'""")
        comes_true(lambda: "3 to 5 epochs" in desk.kubectl("events"), said.read_text)
        desk.kubectl(f"delete model bert {PATIENT}")

    comes_true(lambda: not desk.kubectl("get jobs,pods -o name"), lambda: "its job is left")


def operator(desk: Desk, script: str) -> tuple[str, ...]:
    return ("kopf", "run", str(SCRIPTS / script), "--namespace", desk.place, "--standalone")


def has(said: Path, words: str) -> Callable[[], bool]:
    return lambda: words in said.read_text()
