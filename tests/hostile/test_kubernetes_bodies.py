"""Bodies and patches of a hostile tenant: refused in words, and nobody else is hurt.

What `Kube.ask` raises would have been a 500.
"""

import base64
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile.teams import ANN, Kube, kube, object_of
from muster.doors.kubernetes.objects.value import JsonObject, is_map

MAPS = "/api/v1/namespaces/team-a/configmaps"
REVISIONS = "/apis/apps/v1/namespaces/team-a/controllerrevisions"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def _token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        made.made(ANN, MAPS, object_of("ConfigMap", "victim", data={"a": "x" * 1_000}))
        yield made


def everything_is_still_read(api: Kube) -> bool:
    """An object that cannot be written down would take every list with it."""
    lists = (MAPS, REVISIONS, "/api/v1/configmaps", f"{MAPS}?watch=true")
    return all(api.ask("root", "GET", path).code == 200 for path in lists)


def revision(data: str) -> bytes:
    """An object with anything in it, as text."""
    head = '"apiVersion":"apps/v1","kind":"ControllerRevision","revision":1'
    return f'{{{head},"metadata":{{"generateName":"r-"}},"data":{data}}}'.encode(errors="replace")


@pytest.mark.parametrize(
    "data",
    [
        r'{"a":"\ud800"}',
        r'{"\udfff":1}',
        r'{"a":"\ud83d\ude00"}',
        '{"a":1e400}',
        '{"a":-1e999}',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":' + "9" * 5_000 + "}",
        "[" * 300 + "]" * 300,
        '{"a":' * 900 + "1" + "}" * 900,
        "[" * 100_000 + "]" * 100_000,
        '{"a":1,"a":2}',
        '"\x00"',
    ],
    ids=range(13),
)
def test_what_cannot_be_written_down_is_not_kept(api: Kube, data: str) -> None:
    for media in ("application/json", YAML):
        said = api.ask("root", "POST", REVISIONS, revision(data), content_type=media)
        assert said.code in {201, 400, 422}, said.text[:300]

    assert everything_is_still_read(api)


@pytest.mark.parametrize(
    "value",
    [
        "!!binary aGk=",
        "!!set {a: }",
        "!!omap [a: 1]",
        "!!python/object/apply:os.system [id]",
        ".nan",
        "-.inf",
        "{1: 2}",
        "{null: 2}",
        "{true: 2}",
        "{[1]: 2}",
        "&x {y: *x}",
        "&x [*x, *x]",
        '"\\ud800"',
        "<<: {a: 1}",
        "2026-01-01",
        "0o17",
        "*nothing",
        "%",
    ],
)
def test_yaml_is_json_or_nothing(api: Kube, value: str) -> None:
    head = "apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {generateName: y-}\n"
    body = f"{head}revision: 1\ndata: {{a: {value}}}\n".encode()
    said = api.ask("root", "POST", REVISIONS, body, content_type=YAML)

    assert said.code in {201, 400, 422}, said.text[:300]
    assert everything_is_still_read(api)


def test_a_few_lines_of_yaml_do_not_stand_for_a_million(api: Kube) -> None:
    names = "abcdefghij"
    lines = [f"a: &a [{','.join('x' * 10)}]"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]")
    head = "apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: bomb}\nrevision: 1\n"
    body = f"{head}data:\n" + "".join(f"  {line}\n" for line in lines)
    said = api.ask("root", "POST", REVISIONS, body.encode(), content_type=YAML)
    applied = f"{REVISIONS}/bomb?fieldManager=m"
    patched = api.ask("root", "PATCH", applied, body.encode(), content_type=PATCHES["apply"])

    assert said.code == 400
    assert "excessive aliasing" in said.text
    assert patched.code == 400


def test_copies_of_copies_end(api: Kube) -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{each}"} for each in range(60)]
    body = json.dumps(doubling).encode()
    said = api.ask(ANN, "PATCH", f"{MAPS}/victim", body, content_type=PATCHES["json"])

    assert said.code == 422


def test_a_patch_does_not_dig_without_end(api: Kube) -> None:
    path, operations = "/metadata/annotations", list[JsonObject]()
    operations.append({"op": "add", "path": path, "value": {}})
    for _ in range(2_000):
        path += "/a"
        operations.append({"op": "add", "path": path, "value": {}})
    body = json.dumps(operations).encode()
    said = api.ask(ANN, "PATCH", f"{MAPS}/victim", body, content_type=PATCHES["json"])

    assert said.code in {400, 422}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (object_of("ConfigMap", "large", data={"a": "x" * 2_000_000}), 422),
        (object_of("ConfigMap", "many", data={f"k{each}": "" for each in range(90_000)}), 413),
        (object_of("Event", "large", message="x" * 2_000_000), 413),
    ],
    ids=["one value", "many keys", "a message"],
)
def test_an_object_is_no_larger_than_etcd_would_take(
    api: Kube, wanted: JsonObject, code: int
) -> None:
    path = MAPS if wanted["kind"] == "ConfigMap" else "/api/v1/namespaces/team-a/events"
    if wanted["kind"] == "Event":
        wanted = {**wanted, "involvedObject": {"kind": "Pod", "name": "x"}, "reason": "R"}
    said = api.ask(ANN, "POST", path, wanted)

    assert said.code == code, said.text[:300]


@pytest.mark.parametrize("version", ["²", "9" * 5_000, "-1", "1e3", "٣"])
def test_a_version_is_a_number(api: Kube, version: str) -> None:
    assert api.ask(ANN, "GET", f"{MAPS}?resourceVersion={version}").code == 400
    assert api.ask(ANN, "GET", f"{MAPS}?watch=true&resourceVersion={version}").code == 400
    assert api.ask(ANN, "GET", f"{MAPS}/victim?resourceVersion={version}").code in {200, 400}


TOKENS = (
    "\ud800",
    "ü",
    "=",
    "A",
    "e30",
    _token('{"rv": 1e400, "start": "x"}'),
    _token("[" * 9_000),
)


@pytest.mark.parametrize("token", TOKENS)
def test_a_place_to_go_on_from_is_one_that_was_told(api: Kube, token: str) -> None:
    said = api.ask(ANN, "GET", f"{MAPS}?limit=1&continue={token}")

    assert said.code == 400, said.text
    assert "continue key is not valid" in said.body["message"]


@pytest.mark.parametrize("grace", [10**30, -5, "x", 1.5, True, [], {}])
def test_a_grace_is_a_number_of_seconds(api: Kube, grace: object) -> None:
    api.ask(ANN, "POST", MAPS, object_of("ConfigMap", "short"))
    said = api.ask(ANN, "DELETE", f"{MAPS}/short", {"gracePeriodSeconds": grace})

    assert said.code in {200, 400}, said.text


@pytest.mark.parametrize("header", ["impersonate_user", "accept", "content_type", "user_agent"])
def test_headers_are_bytes_of_anybody(api: Kube, header: str) -> None:
    said = api.ask(ANN, "GET", MAPS, None, **{header: "\udcff\x00ü"[1:]})

    assert said.code < 500


NAMES = (
    "metadata name labels annotations finalizers ownerReferences managedFields spec data template "
    "containers $patch $retainKeys $setElementOrder/containers kind apiVersion resourceVersion "
    "uid deletionTimestamp replicas selector matchLabels env"
).split()
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
)
KEYS = st.sampled_from(NAMES) | st.text(max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def operation(op: str, path: str, value: Any, start: str) -> JsonObject:
    return {"op": op, "path": path, "value": value, "from": start}


PATHS = ["", "/", "/data", "/data/a", "/metadata/labels", "/metadata/name", "/a/-", "/spec/0"]
OPERATIONS: st.SearchStrategy[list[JsonObject]] = st.lists(
    st.builds(
        operation,
        st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]),
        st.sampled_from(PATHS),
        VALUES,
        st.sampled_from(["", "/data", "/metadata", "/nothing"]),
    ),
    max_size=5,
)
KINDS = (
    ("/api/v1/namespaces/team-a/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/team-a/pods", "v1", "Pod"),
    ("/api/v1/namespaces/team-a/services", "v1", "Service"),
    ("/apis/apps/v1/namespaces/team-a/deployments", "apps/v1", "Deployment"),
    ("/apis/batch/v1/namespaces/team-a/jobs", "batch/v1", "Job"),
    ("/apis/batch/v1/namespaces/team-a/cronjobs", "batch/v1", "CronJob"),
)
OFTEN = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@OFTEN
@given(place=st.sampled_from(KINDS), fields=VALUES, method=st.sampled_from(["POST", "PUT"]))
def test_no_body_meets_a_bug_of_ours(
    api: Kube, place: tuple[str, str, str], fields: Any, method: str
) -> None:
    path, version, kind = place
    whole = {"apiVersion": version, "kind": kind, "metadata": {"name": "drawn"}}
    more: JsonObject = fields if is_map(fields) else {"spec": fields}
    wanted: JsonObject = {**more, **whole}
    query = "?dryRun=All&fieldValidation=Ignore"
    said = api.ask(ANN, method, path + ("/drawn" if method == "PUT" else "") + query, wanted)

    assert said.code < 500, said.text


@OFTEN
@given(media=st.sampled_from(sorted(PATCHES)), patch=VALUES, operations=OPERATIONS)
def test_no_patch_loses_an_object(
    api: Kube, media: str, patch: Any, operations: list[JsonObject]
) -> None:
    sent: Any = operations if media == "json" else patch
    if media == "apply" and is_map(patch):
        sent = {**patch, "apiVersion": "v1", "kind": "ConfigMap"}
    path = f"{MAPS}/victim?fieldManager=m&force=true"
    said = api.ask(ANN, "PATCH", path, json.dumps(sent).encode(), content_type=PATCHES[media])
    found = api.ask(ANN, "GET", f"{MAPS}/victim")

    assert said.code < 500 or "typed patch" in said.text, said.text
    assert found.code == 200 or "deletionTimestamp" in said.text
    assert found.body["metadata"]["name"] == "victim"


@OFTEN
@given(junk=st.binary(max_size=200))
def test_no_bytes_of_protobuf_meet_a_bug_of_ours(api: Kube, junk: bytes) -> None:
    named = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12"
    for body in (junk, b"k8s\0" + junk, named + bytes([len(junk) % 128]) + junk):
        said = api.ask(ANN, "POST", f"{MAPS}?dryRun=All", body, content_type=PROTOBUF)
        assert said.code < 500, said.text


pytestmark = pytest.mark.slow
