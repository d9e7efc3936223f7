"""Very many senseless objects, patches, frames and answers of webhooks to the Kubernetes door.

HOSTILE_MESSAGES says how many of each; `make test-long` sends 100,000.
What `Kube.ask` raises would have been a 500.
"""

import asyncio
import base64
import contextlib
import copy
import json
import os
import random
import struct
import zlib
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hostile import fuzz
from hostile.polite import DEFINITION, fields_of
from hostile.sizes import memory_kib
from hostile.teams import Kube, kube, object_of
from muster.doors.kubernetes.objects.admission_review import BadAnswerError, patched, verdict_of
from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import KINDS
from muster.doors.kubernetes.objects.value import JsonObject, Kind
from muster.doors.kubernetes.serve.channels import V5, BadFrameError, obey
from muster.doors.kubernetes.serve.forwarding import Forwarding
from muster.doors.kubernetes.serve.spdy import DICTIONARY, SpdyError
from muster.model.errors import UnknownError
from muster.model.running import VisitStream
from unit.doors.kubernetes.serve.test_channels import VISITOR

COUNT = int(os.environ.get("HOSTILE_MESSAGES", "2000"))
MOST_GROWTH_KIB = 96 << 10

CRON_TAB = Kind(
    group="stable.example.com",
    version="v1",
    kind="CronTab",
    plural="crontabs",
    singular="crontab",
    verbs=(),
)
TRAINING = Kind(
    group="kubeflow.org",
    version="v1",
    kind="PyTorchJob",
    plural="pytorchjobs",
    singular="pytorchjob",
    verbs=(),
)
PLACES = (*KINDS, CRON_TAB, TRAINING)
PARTS = ("serviceaccounts/first/token", "pods/first/eviction", "pods/first/binding")
PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
OPERATIONS: tuple[list[JsonObject], ...] = (
    [{"op": "add", "path": "/spec/a", "value": 1}],
    [{"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}}],
    [{"op": "move", "from": "/spec", "path": "/data"}, {"op": "test", "path": "", "value": {}}],
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@contextlib.contextmanager
def begun(folder: Path) -> Generator[Kube]:
    with kube(folder) as made:
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "crontabs.stable.example.com"},
            "spec": DEFINITION,
        }
        made.made("root", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        account = object_of("ServiceAccount", "first")
        made.made("root", "/api/v1/namespaces/team-a/serviceaccounts", account)
        yield made


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with begun(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture
def chance() -> random.Random:
    return random.Random(13)  # noqa: S311 -- the same ones on every run


def place_of(kind: Kind) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/team-a/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def polite(kind: Kind) -> JsonObject:
    meta = {"name": "drawn", "labels": {"app": "x"}, "annotations": {"a": "b"}}
    fields = copy.deepcopy(fields_of(kind.kind))
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        **fields,
        "metadata": {**meta, **fields.get("metadata", {})},
    }


def test_what_is_polite_is_taken(tmp_path: Path) -> None:
    """Else all that is made from it would be refused at the door.

    Asked where nobody else left quotas.
    """
    refused: list[str] = []
    with begun(tmp_path) as api:
        for kind in PLACES:
            said = api.ask("root", "POST", f"{place_of(kind)}?dryRun=All", polite(kind))
            if said.code not in {201, 409} and fields_of(kind.kind) != fields_of(""):
                refused.append(f"{kind.kind}: {said.text[-600:]}")

    assert refused == []


def test_the_api_outlives_senseless_objects(api: Kube, chance: random.Random) -> None:
    def send(number: int) -> None:
        kind = chance.choice(PLACES)
        body = polite(kind)
        for _ in range(chance.randrange(1, 3)):
            fuzz.change(body, chance)
        text = json.dumps(body)
        if chance.random() < 0.3:
            text = text.replace('"@"', chance.choice(fuzz.RAW))
        raw = text.encode()
        raw = fuzz.damaged(raw, chance) if chance.random() < 0.1 else raw
        path, method = place_of(kind), chance.choice(("POST", "POST", "PUT"))
        if chance.random() < 0.05:
            path, method = f"/api/v1/namespaces/team-a/{chance.choice(PARTS)}", "POST"
        path += "/drawn" if method == "PUT" else ""
        media = chance.choice(("application/json", "application/json", "application/yaml"))
        strict = chance.choice(("Ignore", "Strict", "Warn"))
        query = f"?dryRun=All&fieldValidation={strict}"
        said = api.ask("root", method, path + query, raw, content_type=media, accept=TABLE)
        assert said.code < 500, (number, method, path, raw, said.text)

    for number in range(COUNT // 10):
        send(number)
    before = memory_kib(os.getpid())
    for number in range(COUNT):
        send(number)

    assert api.ask("root", "GET", "/api/v1/namespaces/team-a/pods").code == 200
    assert memory_kib(os.getpid()) - before < MOST_GROWTH_KIB


def test_the_api_outlives_senseless_patches(api: Kube, chance: random.Random) -> None:
    kinds = [each for each in PLACES if each.kind not in NOT_KEPT]
    for kind in kinds:
        api.ask("root", "POST", place_of(kind), polite(kind))
    assert sum(_is_there(api, kind) for kind in kinds) > len(kinds) // 2

    for number in range(COUNT):
        kind, media = chance.choice(kinds), chance.choice(sorted(PATCHES))
        patch: Any = polite(kind)
        if PATCHES[media] == "json":
            patch = copy.deepcopy(list(chance.choice(OPERATIONS)))
        for _ in range(chance.randrange(1, 3)):
            fuzz.change(patch, chance)
        raw = json.dumps(patch).replace('"@"', chance.choice(fuzz.RAW)).encode()
        path = f"{place_of(kind)}/{_name(kind)}?dryRun=All&fieldManager=m&force=true"
        if chance.random() < 0.2 and PATCHES[media] != "json":
            said = api.ask("root", "PUT", path, raw)
        else:
            said = api.ask("root", "PATCH", path, raw, content_type=media)
        assert said.code < 500 or "typed patch" in said.text, (number, path, raw, said.text)


NOT_KEPT = {"Namespace", "Node", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
"""To change these would change what is tried next."""


def _name(kind: Kind) -> str:
    return str(polite(kind)["metadata"]["name"])


def _is_there(api: Kube, kind: Kind) -> bool:
    return api.ask("root", "GET", f"{place_of(kind)}/{_name(kind)}").code == 200


QUERIES = (
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch", "command",
    "resourceVersionMatch", "timeoutSeconds", "fieldManager", "dryRun", "tailLines", "sinceTime",
    "sinceSeconds", "limitBytes", "container", "gracePeriodSeconds", "propagationPolicy",
    "sendInitialEvents", "allowWatchBookmarks", "includeObject", "pretty", "force", "stream",
)  # fmt: skip
VALUES = (
    "", "a=b", "a!=b,c", "a in (b,c)", "!a", "a notin ()", "metadata.name=x", "spec.nodeName=",
    "-1", "0", "1", "9" * 30, "1e400", "true", "false", "All", "%00", "%ff", "\ud800", "a" * 5_000,
    "2026-01-01T00:00:00Z", "9999-99-99", "((((", "a=b,,c", "Exact", "NotOlderThan", "Orphan",
)  # fmt: skip


def test_the_api_outlives_senseless_questions(api: Kube, chance: random.Random) -> None:
    ends = ("", "/drawn", "/drawn/log", "/drawn/status", "/drawn/scale", "/drawn/exec", "/x/y/z")
    for number in range(COUNT):
        path = place_of(chance.choice(PLACES)) + chance.choice(ends)
        asked = "&".join(
            f"{chance.choice(QUERIES)}={chance.choice(VALUES)}" for _ in range(chance.randrange(4))
        )
        method = chance.choice(("GET", "GET", "GET", "DELETE", "POST"))
        headers = {"accept": chance.choice((TABLE, "*/*", "", "application/json", "x;q=;a=b"))}
        dry = "&dryRun=All" if method != "GET" else ""
        said = api.ask("root", method, f"{path}?{asked}{dry}", None, **headers)
        assert said.code < 500 or said.code == 504, (number, method, path, asked, said.text)


def reviews(chance: random.Random) -> Iterator[bytes]:
    """Answers of webhooks that are nearly right, and bytes that are not."""
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    while True:
        found: Any = copy.deepcopy(patch)
        for _ in range(chance.randrange(3)):
            fuzz.change(found, chance)
        status: JsonObject = {
            "code": 403,
            "message": "no",
            "reason": "Forbidden",
            "details": {"causes": []},
        }
        answer: Any = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": {
                "uid": "u1",
                "allowed": chance.random() < 0.6,
                "status": status,
                "warnings": ["w"],
                "patchType": "JSONPatch",
                "patch": base64_of(found),
            },
        }
        for _ in range(chance.randrange(3)):
            fuzz.change(answer, chance)
        text = json.dumps(answer).replace('"@"', chance.choice(fuzz.RAW))
        raw = text.encode()
        yield fuzz.damaged(raw, chance) if chance.random() < 0.2 else raw


def base64_of(patch: object) -> str:
    return base64.b64encode(json.dumps(patch).encode()).decode()


DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5_000, b'{"response":' + b"[" * 50_000)


def test_what_webhooks_answer_is_an_answer_or_none(chance: random.Random) -> None:
    obj = object_of("ConfigMap", "x", data={"a": "b"})
    for body in (*DEEP, *islice(reviews(chance), COUNT)):
        with contextlib.suppress(BadAnswerError):
            verdict = verdict_of("w", body, "u1")
            refusal = verdict.refusal or StatusError(Reason.CONFLICT, "")
            assert json.dumps(refusal.status(), allow_nan=False).encode()
            assert json.dumps(patched(obj, verdict), allow_nan=False).encode()


class Nothing:
    """A visit that takes everything, and says nothing."""

    exit_code: int | None = 0
    failure: str | None = None

    async def read(self) -> tuple[int, bytes]:
        await asyncio.Event().wait()
        return 1, b""

    async def write(self, content: bytes) -> None:
        assert content is not None

    async def end_input(self) -> None:
        return

    async def resize(self, rows: int, columns: int) -> None:
        assert rows >= 0 <= columns

    def close(self) -> None:
        return


def channel_frames(chance: random.Random) -> Iterator[bytes]:
    sizes = (b'{"Width":80,"Height":24}', b'{"Width":-1}', b"[]", b'{"Width":1e400,"Height":1}')
    while True:
        channel = chance.choice((0, 0, 1, 2, 3, 4, 4, 255, chance.randrange(256)))
        content = chance.choice((*sizes, b"\0", chance.randbytes(chance.randrange(50)), *DEEP[:1]))
        yield bytes([channel]) + content if chance.random() < 0.97 else b""


def test_frames_of_a_visit_are_understood_or_end_it(chance: random.Random) -> None:
    async def play() -> None:
        for frame in islice(channel_frames(chance), COUNT):
            with contextlib.suppress(BadFrameError):
                await obey(frame, Nothing(), VISITOR, V5)

    asyncio.run(play())


def spdy_frames(chance: random.Random) -> Iterator[bytes]:
    """Of one client: nearly right, and now and then not at all."""
    packer = zlib.compressobj(zdict=DICTIONARY)
    while True:
        headers = {"streamtype": "data", "port": "80", "requestid": str(chance.randrange(99))}
        headers["streamtype"] = chance.choice(("data", "error", "x", ""))
        headers["port"] = chance.choice(("80", "0", "99999", "-1", "\u0660", "x" * 200))
        block = struct.pack("!I", len(headers) + chance.choice((0, 0, 0, 1, 1 << 30)))
        for word in (each for pair in headers.items() for each in pair):
            block += struct.pack("!I", len(word.encode())) + word.encode()
        packed = packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH)
        opening = struct.pack("!IIBB", chance.randrange(1 << 32), 0, 0, 0) + packed
        if chance.random() < 0.1:
            opening = fuzz.damaged(opening, chance)
        kind = chance.choice((1, 1, 1, 2, 3, 6, 7, 8, chance.randrange(1 << 16)))
        content = opening if kind == 1 else chance.randbytes(chance.randrange(20))
        flags = chance.choice((0, 0, 1, 255)) << 24
        if chance.random() < 0.3:
            yield struct.pack("!II", chance.randrange(1 << 31), flags | len(content)) + content
        elif chance.random() < 0.1:
            yield chance.randbytes(chance.randrange(100))
        else:
            version = 3 if chance.random() < 0.97 else chance.randrange(1 << 15)
            yield struct.pack("!HHI", 0x8000 | version, kind, flags | len(content)) + content


def test_forwarded_streams_are_understood_or_end_the_connection(chance: random.Random) -> None:
    def connect(port: int) -> VisitStream:
        if port % 2:
            raise UnknownError("nobody listens there")
        return Nothing()

    async def send(content: bytes) -> None:
        assert content

    async def client() -> int:
        """How many frames of it were taken."""
        forwarding, taken = Forwarding("p", connect, send), 0
        try:
            for frame in islice(spdy_frames(chance), 100):
                taken += 1
                await forwarding.take(frame)
                await asyncio.sleep(0)
        except SpdyError:
            pass
        finally:
            await forwarding.close()
        return taken

    before, sent = memory_kib(os.getpid()), 0
    while sent < COUNT:
        sent += asyncio.run(client())
    assert memory_kib(os.getpid()) - before < MOST_GROWTH_KIB


pytestmark = pytest.mark.slow
