"""An API server of Kubernetes that is only pretended: objects in memory, over real HTTP.

It knows what a scheduler needs: lists, watches, bindings with a uid, gates, merges and deletions.
Nobody runs its pods: tests say what became of them.
"""

import json
import threading
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

NODES, PODS, JOBS = "/api/v1/nodes", "/api/v1/pods", "/apis/batch/v1/jobs"


class RefusedError(Exception):
    def __init__(self, code: int, text: str, after_s: str = "") -> None:
        super().__init__(text)
        self.code, self.after_s = code, after_s


@dataclass
class Refusal:
    """What is asked so is refused, so many times. after_s: what `Retry-After` says."""

    asked: str
    code: int
    times: int = 1
    after_s: str = ""
    is_done: bool = False
    """Is it done all the same, and only the answer another one?"""


class PretendApi:
    """Objects by the path of their collection, and by namespace and name within it."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._events: list[tuple[int, str, str, Json]] = []
        self._version = 0
        self._ends = False
        self._refusals: list[Refusal] = []
        self._forgotten, self._hung_up = 0, 0
        self.asked: list[str] = []
        self.tokens: list[str] = []
        self.is_away = False
        self.page = 0
        """So many objects a list has at most, whatever is asked for; 0: all."""

    # What tests say and see

    def make(self, collection: str, body: Json) -> Json:
        with self._news:
            return self._create(collection, body)

    def see(self, collection: str, namespace: str, name: str) -> Json | None:
        with self._news:
            return deepcopy(self._all(collection).get((namespace, name)))

    def become(self, collection: str, namespace: str, name: str, change: Json) -> None:
        """Whoever runs it says so."""
        with self._news:
            self._change(collection, namespace, name, change)

    def remove(self, collection: str, namespace: str, name: str) -> None:
        with self._news:
            self._delete(collection, namespace, name, {})

    def clear(self, collection: str) -> None:
        with self._news:
            for namespace, name in tuple(self._all(collection)):
                self._delete(collection, namespace, name, {})

    def refuse(self, refusal: Refusal) -> None:
        """From now on, in the order in which they are said: `POST /api/v1/namespaces/nlp/pods`."""
        with self._news:
            self._refusals.append(refusal)

    def forget(self) -> None:
        """What happened until now cannot be watched any more, and connections end."""
        with self._news:
            self._events.clear()
            self._version += 1
            self._forgotten = self._version
            self._hung_up += 1
            self._news.notify_all()

    def times(self, asked: str) -> int:
        with self._news:
            return self.asked.count(asked)

    def end(self) -> None:
        with self._news:
            self._ends = True
            self._news.notify_all()

    # What is asked over HTTP

    def answer(
        self, method: str, path: str, body: Json, query: Mapping[str, str] = {}
    ) -> Json | bytes:
        if self.is_away:
            raise RefusedError(503, "the server is away")
        with self._news:
            asked = f"{method} {path}"
            self.asked.append(asked)
            refusal = next((each for each in self._refusals if each.asked == asked), None)
            if refusal is None:
                return self._answer(method, path, body, query)
            refusal.times -= 1
            if not refusal.times:
                self._refusals.remove(refusal)
            if refusal.is_done:
                self._answer(method, path, body, query)
            raise RefusedError(refusal.code, "as the test says", refusal.after_s)

    def _answer(self, method: str, path: str, body: Json, query: Mapping[str, str]) -> Json | bytes:
        collection, namespace, name, part = _place(path)
        match method, part:
            case "GET", "log":
                return b"said\n"
            case "GET", _ if name:
                return self._found(collection, namespace, name)
            case "GET", _:
                return self._listed(collection, query)
            case "POST", "binding":
                return self._bind(namespace, name, body)
            case "POST", _ if collection.endswith("selfsubjectaccessreviews"):
                return {**body, "status": {"allowed": True}}
            case "POST", _:
                body["metadata"]["namespace"] = namespace
                return self._create(collection, body)
            case "PATCH", _:
                return self._change(collection, namespace, name, body)
            case "DELETE", _:
                return self._delete(collection, namespace, name, body)
            case _:
                raise RefusedError(405, f"{method} is not known here")

    def events(self, collection: str, since: int) -> Iterator[Json]:
        """What happens in a collection, until the end."""
        at = since
        with self._news:
            hung_up, is_too_old = self._hung_up, since < self._forgotten
        if is_too_old:
            yield {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
            return
        while True:
            with self._news:
                while not self._ends and self._version <= at and self._hung_up == hung_up:
                    self._news.wait()
                if self._ends or self._hung_up != hung_up:
                    return
                found = [each for each in self._events if each[0] > at and each[1] == collection]
                at = self._version
            for _, _, kind, obj in found:
                yield {"type": kind, "object": obj}

    def _all(self, collection: str) -> dict[tuple[str, str], Json]:
        return self._objects.setdefault(collection, {})

    def _listed(self, collection: str, query: Mapping[str, str]) -> Json:
        """All of them, or a page and how to go on."""
        start, _, version = query.get("continue", f"0:{self._version}").partition(":")
        if int(version) < self._forgotten:
            raise RefusedError(410, "the list is too old to go on with")
        items = list(self._all(collection).values())[int(start) :]
        about = {"resourceVersion": version}
        if 0 < self.page < len(items):
            about["continue"] = f"{int(start) + self.page}:{version}"
            items = items[: self.page]
        return {"kind": "List", "metadata": about, "items": items}

    def _found(self, collection: str, namespace: str, name: str) -> Json:
        found = self._all(collection).get((namespace, name))
        if found is None:
            raise RefusedError(404, f"{name} not found")
        return found

    def _create(self, collection: str, body: Json) -> Json:
        made = deepcopy(body)
        metadata = made["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if key in self._all(collection):
            raise RefusedError(409, f"{key[1]} already exists")
        metadata.setdefault("uid", str(uuid.uuid4()))
        made.setdefault("status", {"phase": "Pending"} if collection == PODS else {})
        return self._tell(collection, "ADDED", key, made)

    def _change(self, collection: str, namespace: str, name: str, change: Json) -> Json:
        before = self._found(collection, namespace, name)
        wanted = _uid_in(change.get("metadata"), before)
        if wanted != before["metadata"]["uid"]:
            raise RefusedError(409, "the uid is another one")
        about: Json = change.get("metadata") or {}
        if about.get("resourceVersion") not in {None, before["metadata"]["resourceVersion"]}:
            raise RefusedError(409, "the object has been modified")
        return self._tell(collection, "MODIFIED", (namespace, name), _merged(before, change))

    def _delete(self, collection: str, namespace: str, name: str, options: Json) -> Json:
        found = self._found(collection, namespace, name)
        wanted = _uid_in(options.get("preconditions"), found)
        if wanted != found["metadata"]["uid"]:
            raise RefusedError(409, "the uid is another one")
        del self._all(collection)[namespace, name]
        return self._tell(collection, "DELETED", (namespace, name), found, kept=False)

    def _bind(self, namespace: str, name: str, body: Json) -> Json:
        pod, wanted = self._found(PODS, namespace, name), body["metadata"]
        if wanted["uid"] != pod["metadata"]["uid"]:
            raise RefusedError(409, "the uid is another one")
        if pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"):
            raise RefusedError(409, "it is bound already, or has gates")
        notes: Json = {"annotations": wanted.get("annotations") or {}}
        change: Json = {"metadata": notes, "spec": {"nodeName": body["target"]["name"]}}
        return self._tell(PODS, "MODIFIED", (namespace, name), _merged(pod, change))

    def _tell(
        self, collection: str, kind: str, key: tuple[str, str], new: Json, *, kept: bool = True
    ) -> Json:
        self._version += 1
        told = deepcopy(new)
        told["metadata"]["resourceVersion"] = str(self._version)
        if kept:
            self._all(collection)[key] = told
        self._events.append((self._version, collection, kind, deepcopy(told)))
        self._news.notify_all()
        return told


@contextmanager
def pretend_api(folder: Path) -> Generator[tuple[PretendApi, Path]]:
    """A server, and a kubeconfig by which it is reached."""
    api = PretendApi()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(server.server_port)), encoding="ascii")
    try:
        yield api, kubeconfig
    finally:
        api.end()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(api: PretendApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            asked = urlsplit(self.path)
            api.tokens.append((self.headers.get("Authorization") or "").removeprefix("Bearer "))
            query = parse_qs(asked.query)
            length = int(self.headers.get("Content-Length") or 0)
            body: Json = json.loads(self.rfile.read(length)) if length else {}
            if "watch" in query:
                self._watch(_place(asked.path)[0], int(query["resourceVersion"][0]))
                return
            try:
                said = api.answer(
                    self.command, asked.path, body, {key: query[key][0] for key in query}
                )
                code, after_s = 200, ""
            except RefusedError as error:
                said, code, after_s = _status(error), error.code, error.after_s
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(code)
            if after_s:
                self.send_header("Retry-After", after_s)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 -- as the library calls them

        def _watch(self, collection: str, since: int) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for each in api.events(collection, since):
                    line = json.dumps(each).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    return Handler


def _status(error: RefusedError) -> Json:
    return {"kind": "Status", "message": str(error), "code": error.code}


def _uid_in(said: Json | None, obj: Json) -> str:
    """The one that is named; that of the object where none is."""
    return str((said or {}).get("uid", obj["metadata"]["uid"]))


def _place(path: str) -> tuple[str, str, str, str]:
    """The collection over all namespaces, the namespace, the name, and the part of an object."""
    words = path.strip("/").split("/")
    head = 2 if words[0] == "api" else 3
    base, rest = words[:head], words[head:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, part, *_ = (*rest, "", "")
    return "/" + "/".join((*base, plural)), namespace, name, part


def _merged(before: Any, change: Any) -> Any:
    """As a strategic merge: null takes away, conditions are told apart by their type."""
    if isinstance(change, list):
        new = cast("list[Json]", change)
        types = {each.get("type") for each in new}
        old = cast("list[Json]", before or [])
        return [*(each for each in old if each.get("type") not in types), *new]
    if not isinstance(change, dict):
        return change
    found: Json = dict(cast("Json", before)) if isinstance(before, dict) else {}
    for key, value in cast("Json", change).items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _kubeconfig(port: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
        "current-context": "lab",
    }


def node(name: str, gpus: int) -> Json:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, gpus: int = 1, *, namespace: str = "nlp", **more: Any) -> Json:
    """As an API server keeps what kubectl makes; metadata and spec may have more."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    container = {
        "name": "main",
        "image": "train",
        "command": ["train"],
        "resources": {"limits": dict(amounts), "requests": amounts},
    }
    metadata = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
    spec = {"schedulerName": "muster", "containers": [container], **more.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **more}


def runs(since: str = "2026-01-01T00:00:00Z") -> Json:
    state = {"running": {"startedAt": since}}
    return {"status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}}


def ended(code: int = 0, at: str = "2026-01-01T00:00:01Z") -> Json:
    said = {"exitCode": code, "startedAt": at, "finishedAt": at}
    phase = "Failed" if code else "Succeeded"
    status = {"name": "main", "state": {"terminated": said}}
    return {"status": {"phase": phase, "containerStatuses": [status]}}
