import hashlib
import json
import os
from pathlib import Path

import pytest

from kubernetes_clients.desk import HERE, Desk, comes_true

pytestmark = pytest.mark.slow

CHART = str(HERE / "chart")
WAITING = ("--wait", "--timeout", "200s")


def test_helm_installs_upgrades_rolls_back_tests_and_uninstalls_a_chart(desk: Desk) -> None:
    def helm(*words: str) -> str:
        return desk.uses(built(), "--namespace", desk.place, *words).out

    helm("install", "bert", CHART, *WAITING)
    assert desk.kubectl("logs deploy/bert") == "0.1\n"
    helm("upgrade", "bert", CHART, "--set=replicas=2", "--set=learningRate=0.2", *WAITING)
    assert desk.kubectl("get deploy bert -o jsonpath={.status.readyReplicas}") == "2"
    listed = json.loads(helm("list", "--output=json"))
    assert [(each["name"], each["revision"], each["status"]) for each in listed] == [
        ("bert", "2", "deployed")
    ]
    helm("rollback", "bert", "1", *WAITING)
    assert desk.kubectl("get cm bert-numbers -o jsonpath={.data.lr}") == "0.1"
    assert "tested" in helm("test", "bert", "--logs", "--timeout=200s")
    assert len(json.loads(helm("history", "bert", "--output=json"))) == 3
    helm("uninstall", "bert", *WAITING)

    kinds = "deployments,services,secrets,replicasets"
    comes_true(lambda: not desk.kubectl(f"get {kinds} -o name"), lambda: "something is left")
    assert json.loads(helm("list", "--all", "--output=json")) == []


def built() -> str:
    """The helm that `make clients` built; without it the test is skipped."""
    sums = hashlib.sha256((HERE / "helm" / "go.sum").read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    helm = cache / "muster" / f"helm-{sums}" / "helm"
    if not helm.exists():
        pytest.skip("helm is not built, for want of Go: run make clients")
    return str(helm)
