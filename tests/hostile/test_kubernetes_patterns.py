"""Patterns in schemas that somebody defined: no value of a tenant keeps the server busy."""

import time
from collections.abc import Iterator

import pytest

from hostile.polite import DEFINITION
from hostile.teams import ANN, Kube, kube
from muster.doors.kubernetes.objects.value import JsonObject, copied

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABS = "/apis/stable.example.com/v1/namespaces/team-a/crontabs"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
MOST_S = 5.0


def defined(pattern: str) -> JsonObject:
    spec = copied(DEFINITION)
    schema = spec["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["name"] = {"type": "string", "pattern": pattern}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        made.made("root", DEFINITIONS, defined("^([a-z]+)+$"))
        rules = [{"apiGroups": ["*"], "resources": ["crontabs"], "verbs": ["*"]}]
        role = {"metadata": {"name": "tabs"}, "rules": rules, "kind": "ClusterRole"}
        made.made(
            "root", f"{RIGHTS}/clusterroles", {**role, "apiVersion": "rbac.authorization.k8s.io/v1"}
        )
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "tabs"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "tabs",
            },
            "subjects": [
                {"kind": "User", "name": ANN, "apiGroup": "rbac.authorization.k8s.io"},
            ],
        }
        made.made("root", f"{RIGHTS}/clusterrolebindings", binding)
        yield made


@pytest.mark.parametrize("length", [30, 10_000, 1_000_000])
def test_a_value_that_hardly_fails_is_refused_in_time(api: Kube, length: int) -> None:
    tab = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "x"}}
    begins = time.process_time()
    said = api.ask(ANN, "POST", TABS, {**tab, "spec": {"size": 1, "name": "a" * length + "!"}})

    assert said.code == 422, said.text[:300]
    assert time.process_time() - begins < MOST_S


def test_a_pattern_that_cannot_be_read_is_refused_when_it_is_defined(api: Kube) -> None:
    for pattern in ("[", "(?=a)", "a{1001}"):
        said = api.ask(
            "root", "PUT", f"{DEFINITIONS}/crontabs.stable.example.com", defined(pattern)
        )
        assert said.code == 422
        assert "must be a valid regular expression" in said.text


pytestmark = pytest.mark.slow
