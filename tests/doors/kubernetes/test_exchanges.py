"""Single requests that a real Kubernetes 1.36 answered, sent again: status, headers and bodies."""

import base64
import json

import pytest
import yaml

from doors.kubernetes.cluster import PATIENT, KubernetesHouse
from doors.kubernetes.exchanges import Exchange, Wire, all_exchanges

pytestmark = pytest.mark.slow

KEEPS_ONE = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {minAvailable: 1, selector: {matchLabels: {"n": "2"}}}
"""

HOLDS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: holds, finalizers: [example.com/held]}
"""
LETS_GO = """patch configmap holds -n raw-tmp -p '{"metadata":{"finalizers":null}}'"""


def test_requests_are_answered_as_a_real_kubernetes_does(real_house: KubernetesHouse) -> None:
    _begins(real_house)
    wire = _wire(real_house)

    answers = {each.name: (each, wire.answers(each)) for each in all_exchanges()}
    real_house.kubectl(LETS_GO)

    assert {name: _report(*found) for name, found in answers.items() if _surprises(*found)} == {}


def _begins(house: KubernetesHouse) -> None:
    """What was there when they were recorded."""
    for name in ("raw", "rawf", "raw-tmp"):
        house.has_namespace(name)
    for space, number in (("raw", 1), ("raw", 2), ("raw", 3), ("rawf", 2)):
        called = f"r{number} -n {space} --labels=n={number}"
        house.kubectl(f"run {called} --image=busybox:1.36 -- sleep 3600")
    house.kubectl("create -n rawf -f -", stdin=KEEPS_ONE)
    # Then it is still there when it is deleted for the second time.
    house.kubectl("create -n raw-tmp -f -", stdin=HOLDS)
    for space in ("raw", "rawf"):
        house.kubectl(f"wait -n {space} pods --all --for=condition=Ready {PATIENT}")
    house.kubectl(f"wait -n rawf pdb/b --for=jsonpath={{.status.currentHealthy}}=1 {PATIENT}")


def _wire(house: KubernetesHouse) -> Wire:
    config = yaml.safe_load((house.root / "kubeconfig").read_text(encoding="utf-8"))
    cluster = config["clusters"][0]["cluster"]
    entry = json.loads(house.shell("muster kubeconfig --credential").out)
    return Wire(
        server=cluster["server"],
        ca=base64.b64decode(cluster["certificate-authority-data"]).decode(),
        token=entry["status"]["token"],
    )


def _surprises(exchange: Exchange, found: list[str]) -> bool:
    return (exchange.answer == found) is bool(exchange.differs)


def _report(exchange: Exchange, found: list[str]) -> list[str]:
    wanted = [line for line in exchange.answer if line not in found]
    return [exchange.differs, *wanted, "but found", *(x for x in found if x not in exchange.answer)]
