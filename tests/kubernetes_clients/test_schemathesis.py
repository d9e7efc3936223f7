import json
import re

import pytest

from kubernetes_clients.desk import Desk

pytestmark = pytest.mark.slow

DOCUMENTS = {
    "api/v1": "/(configmaps|secrets|services|resourcequotas|limitranges)",
    "apis/batch/v1": "/(jobs|cronjobs)",
    "apis/apps/v1": "/(deployments|statefulsets)",
}
"""What the server says of itself, and of which resources senseless bodies are made."""

KEPT = {"a": "b"}


@pytest.mark.parametrize("document", DOCUMENTS, ids="core batch apps".split())
def test_schemathesis_meets_no_bug_and_loses_no_object(desk: Desk, document: str) -> None:
    desk.kubectl("create configmap kept --from-literal=a=b")
    config = json.loads(desk.house.kubectl("config view --raw -o json"))
    server = config["clusters"][0]["cluster"]["server"]
    users = {each["name"]: each["user"] for each in config["users"]}
    settings = desk.folder / "schemathesis.toml"
    settings.write_text(f'[parameters]\nnamespace = "{desk.place}"\n', encoding="utf-8")
    changing = [word for verb in ("POST", "PUT", "PATCH") for word in ("--include-method", verb)]

    ran = desk.tries(
        *("st", "--config-file", str(settings), "run", f"{server}/openapi/v3/{document}"),
        *("--url", server, "--tls-verify", "false", "--no-color", "--warnings", "off"),
        *("--header", f"Authorization: Bearer {users['kept']['token']}"),
        *("--checks", "not_a_server_error", "--phases", "fuzzing", "--seed", "1", "--no-shrink"),
        *("--include-path-regex", DOCUMENTS[document], *changing),
        *("--max-time", "20", "--request-timeout", "60", "--continue-on-failure"),
    )

    assert ran.code == 0, ran.out + ran.err
    assert re.search(r"(\d+) generated", ran.out), ran.out
    assert json.loads(desk.kubectl("get configmap kept -o json"))["data"] == KEPT
