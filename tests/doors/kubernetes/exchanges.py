"""Single requests that a real Kubernetes 1.36 answered: how they are kept, sent and compared.

A file of lines, and the first letter of each says what it is:

    =  the name of an exchange        @  who asks, unless it is the administrator
    >  the request and its headers    |  its body; protobuf in base64
    <  the status and main headers of the answer, and then what it said, as `told` puts it
    #  `# differs: why` Muster means to answer otherwise; all else is a remark

`{continue}` in a path is what the list before said.
"""

import base64
import http.client
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from doors.kubernetes.cluster import PATIENCE_S
from doors.kubernetes.sessions import ALWAYS

EXCHANGES = Path(__file__).parents[2] / "golden" / "kubernetes" / "exchanges.txt"
HEADERS = ("Content-Type", "Cache-Control", "X-Content-Type-Options", "Warning")
PROTOBUF = "application/vnd.kubernetes.protobuf"
INDEXES = frozenset({"APIGroupDiscoveryList", "APIGroupList", "APIResourceList", "APIVersions"})
MASKS = (
    # A refused request is counted for a moment.
    (r"(used: requests\.nvidia\.com/gpu)=\d", r"\1=N"),
    (r"\breal[12]\b", "NODE"),
    *ALWAYS,
)


@dataclass
class Exchange:
    """A request and what it was answered."""

    name: str
    who: str = ""
    differs: str = ""
    request: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    lines: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> bytes:
        text = "\n".join(self.lines)
        is_coded = self.headers.get("Content-Type") == PROTOBUF
        return base64.b64decode(text) if is_coded else text.encode()


def all_exchanges() -> list[Exchange]:
    found: list[Exchange] = []
    for text in EXCHANGES.read_text(encoding="utf-8").splitlines():
        mark, rest = text[:1], text[2:]
        match mark:
            case "=":
                found.append(Exchange(name=rest))
            case "@":
                found[-1].who = rest
            case ">" if not found[-1].request:
                found[-1].request = rest
            case ">":
                name, _, value = rest.partition(": ")
                found[-1].headers[name] = value
            case "|":
                found[-1].lines.append(rest)
            case "<":
                found[-1].answer.append(rest)
            case _:
                word, _, why = rest.partition("differs: ")
                if found and not word:
                    found[-1].differs = why
    return found


@dataclass
class Wire:
    """Sends requests to one server."""

    server: str
    ca: str
    token: str
    carries_on: str = ""

    def answers(self, exchange: Exchange) -> list[str]:
        """As the file has it."""
        context = ssl.create_default_context(cadata=self.ca)
        host = urlsplit(self.server)
        wire = http.client.HTTPSConnection(
            host.hostname or "", host.port, context=context, timeout=PATIENCE_S
        )
        method, _, path = exchange.request.partition(" ")
        path = path.replace("{continue}", self.carries_on)
        try:
            headers = exchange.headers | self._from(exchange.who)
            wire.request(method, path, exchange.body or None, headers)
            found = wire.getresponse()
            body = found.read()
        finally:
            wire.close()
        self._remember(body)
        return answered(found.status, dict(found.getheaders()), body)

    def _from(self, who: str) -> dict[str, str]:
        match who:
            case "":
                return {"Authorization": f"Bearer {self.token}"}
            case "anonymous":
                return {}
            case "stranger":
                return {"Authorization": "Bearer nonsense"}
            case _:
                return {"Authorization": f"Bearer {self.token}", "Impersonate-User": who}

    def _remember(self, body: bytes) -> None:
        said = re.search(rb'"continue":"([^"]+)"', body)
        if said is not None:
            self.carries_on = said[1].decode()


def answered(status: int, headers: Mapping[str, str], body: bytes) -> list[str]:
    """An answer, as the lines that are compared."""
    given = {name.lower(): value for name, value in headers.items()}
    shown = [f"{name}: {given[name.lower()]}" for name in HEADERS if name.lower() in given]
    text = json.dumps(told(given.get("content-type", ""), body), sort_keys=True)
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return [str(status), *shown, text]


def told(content: str, body: bytes) -> Any:
    """What an answer says, without what differs from server to server."""
    if content.startswith(PROTOBUF):
        return _envelope(body)
    if content == "application/yaml":
        return _object(yaml.safe_load(body))
    if body.startswith(b'{"paths":'):
        return "paths"
    if not content.startswith("application/json"):
        return body.decode()
    try:
        return _object(json.loads(body))
    except json.JSONDecodeError:
        seen = [json.loads(line) for line in body.splitlines() if line]
        return [{"type": each["type"], "object": _object(each["object"])} for each in seen]


def _envelope(body: bytes) -> dict[str, str]:
    """Version and kind stand before the object itself."""
    assert body.startswith(b"k8s\0\n"), body[:20]
    length = body[5]
    meta = body[6 : 6 + length]
    version = meta[2 : 2 + meta[1]]
    kind = meta[2 + meta[1] + 2 :]
    return {"apiVersion": version.decode(), "kind": kind.decode()}


def _object(found: dict[str, Any]) -> Any:
    kind = str(found.get("kind"))
    head = {"apiVersion": found.get("apiVersion"), "kind": kind}
    if kind == "Status":
        return found
    if kind in INDEXES:
        return head
    if "kind" not in found:
        return sorted(found)
    if kind == "Table":
        return head | _table(found)
    if kind.endswith("List"):
        names = [each["metadata"]["name"] for each in found["items"]]
        return head | {"metadata": sorted(found["metadata"]), "items": names}
    kept = {name: value for name, value in found.items() if name != "status"}
    volatile = ("managedFields", "uid", "resourceVersion", "creationTimestamp")
    known: dict[str, Any] = found.get("metadata", {})
    meta = {name: value for name, value in known.items() if name not in volatile}
    return kept | {"metadata": meta, "fields": sorted(found)}


def _table(found: dict[str, Any]) -> dict[str, Any]:
    shown = ("name", "type", "format", "priority")
    columns = [[each[name] for name in shown] for each in found["columnDefinitions"] or ()]
    given: list[dict[str, Any]] = found["rows"]
    rows = [{"cells": row["cells"][:4], "object": _kind_of(row.get("object"))} for row in given]
    return {"columns": columns, "rows": rows}


def _kind_of(found: dict[str, Any] | None) -> str:
    return "" if found is None else str(found["kind"])
