"""Senseless bodies, patches and paths are refused with a Status, and never with our bug."""

import http.client
import json
import random
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from doors.kubernetes.cluster import PATIENCE_S, KubernetesHouse

REQUESTS = 600
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
KINDS = (
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/secrets", "v1", "Secret"),
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/api/v1/namespaces/default/resourcequotas", "v1", "ResourceQuota"),
    ("/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job"),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
    ),
)
NAMES = (
    "metadata name labels annotations finalizers ownerReferences managedFields spec data status "
    "stringData type rules roleRef subjects containers template selector matchLabels versions "
    "names group scope schema hard ports replicas uid resourceVersion a $patch kind apiVersion"
).split()
QUERIES = (
    "?dryRun=All",
    "?dryRun=x",
    "?fieldValidation=Strict",
    "?fieldManager=m&force=true",
    "?labelSelector=a%20in",
    "?fieldSelector=metadata.name%3Dx",
    "?limit=1&continue=e30",
    "?resourceVersion=x",
    "?limit=x",
    "?propagationPolicy=Foreground",
    "?gracePeriodSeconds=-1",
    "",
)


class Fuzzer:
    """Draws the same requests on every run."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - senseless, not secret

    def value(self, depth: int = 0) -> Any:
        dice = self._dice
        kinds = 4 if depth > 4 else 6
        match dice.randrange(kinds):
            case 0:
                return dice.choice([None, True, False, 0, -1, 3.5, 10**20])
            case 1 | 2:
                return dice.choice(
                    ["", "x", "a/b", "\x00", "ü" * 70, "5Gi", "2026-01-01T00:00:00Z"]
                )
            case 3:
                return dice.randrange(-5, 100)
            case 4:
                return [self.value(depth + 1) for _ in range(dice.randrange(3))]
            case _:
                names = [dice.choice(NAMES) for _ in range(dice.randrange(4))]
                return {name: self.value(depth + 1) for name in names}

    def request(self) -> tuple[str, str, str, bytes]:
        """Method, path, content type and body."""
        dice = self._dice
        path, version, kind = dice.choice(KINDS)
        query = dice.choice(QUERIES)
        name = dice.choice(["x", "nosuch", "default", "..", "a%2Fb"])
        match dice.choice(["POST", "POST", "PUT", "PATCH", "GET", "DELETE"]):
            case "POST":
                return "POST", path + query, self.media(), self.body(version, kind)
            case "PATCH":
                operations = [
                    {
                        "op": dice.choice(["add", "remove", "test"]),
                        "path": f"/{dice.choice(NAMES)}",
                        "value": self.value(),
                    }
                ]
                patch = dice.choice(
                    [operations, self.value(), {"metadata": self.value(), "spec": self.value()}]
                )
                return (
                    "PATCH",
                    f"{path}/{name}{query}",
                    dice.choice(PATCHES),
                    json.dumps(patch).encode(),
                )
            case method:
                return method, f"{path}/{name}{query}", self.media(), self.body(version, kind)

    def media(self) -> str:
        media = (
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
            "x/y",
        )
        return self._dice.choices(media, (8, 2, 1, 1))[0]

    def body(self, version: str, kind: str) -> bytes:
        dice = self._dice
        whole = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
        found = dice.choice(
            [
                self.value(),
                {**whole, "spec": self.value()},
                {**whole, dice.choice(NAMES): self.value()},
            ]
        )
        text = json.dumps(found).encode()
        return text[: dice.randrange(len(text) + 1)] if dice.random() < 0.1 else text


def test_no_request_meets_a_bug_of_ours(house: KubernetesHouse) -> None:
    fuzzer = Fuzzer(seed=1)
    answers = answered(house, [fuzzer.request() for _ in range(REQUESTS)])

    bugs = [
        (asked, said) for asked, code, said in answers if code >= 500 and "typed patch" not in said
    ]

    assert bugs == []
    assert house.kubectl("get namespace default -o name") == "namespace/default\n"


def answered(
    house: KubernetesHouse, requests: list[tuple[str, str, str, bytes]]
) -> Iterator[tuple[tuple[str, str, str, bytes], int, str]]:
    config = json.loads(house.kubectl("config view --raw -o json"))
    host, _, port = (
        config["clusters"][0]["cluster"]["server"].removeprefix("https://").partition(":")
    )
    token = next(each["user"]["token"] for each in config["users"] if each["name"] == "kept")
    # Whose server it is does not matter here.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=PATIENCE_S)
    for asked in requests:
        method, path, media, body = asked
        headers = {"Authorization": f"Bearer {token}", "Content-Type": media}
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        yield asked, response.status, response.read().decode(errors="replace")
    connection.close()


pytestmark = pytest.mark.slow
