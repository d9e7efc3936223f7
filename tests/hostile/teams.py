"""Two teams that share one Muster and its Kubernetes API, in this process.

People are accounts that every Debian has, because pods run with somebody's uid.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile.people import until
from muster.app.parts import Muster, clock
from muster.controller.messages import Caller
from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.kubernetes.objects.value import JsonObject
from muster.doors.kubernetes.serve.api import Answer, Ask, answer
from muster.doors.kubernetes.serve.app import KubernetesApp, kubernetes_app
from muster.doors.kubernetes.serve.keys import open_keys
from muster.doors.kubernetes.serve.pod_jobs import UID_LABEL
from muster.doors.kubernetes.serve.tokens import Signer
from muster.model.cluster import Pool
from muster.model.event import JobSubmitted
from muster.model.queue import JobClass, Queue
from muster.model.site import Grant, Role, Site, User
from muster.model.value import ClassName, ClusterName, Duration, PoolName, QueuePath, UserName
from muster.settings import Settings
from muster.stores.base import EventQuery

TEAMS = ("team-a", "team-b")

ADMIN = "proxy"
STRANGER = "nobody"
"""Has what everyone has, which is nothing in the queues of the teams."""

OF_TEAM: Mapping[str, tuple[Role, str]] = {
    "games": (Role.USER, "team-a"),
    "man": (Role.USER, "team-a"),
    "lp": (Role.QUEUE_ADMIN, "team-a"),
    "mail": (Role.VIEWER, "team-a"),
    "news": (Role.USER, "team-b"),
    "uucp": (Role.QUEUE_ADMIN, "team-b"),
    "irc": (Role.VIEWER, "team-b"),
}
ANN, AMY, BOSS, BEN = "games", "man", "lp", "news"
"""Ann and Amy use team-a, which Boss looks after; Ben uses team-b."""

_CLASSES = (
    JobClass(name=ClassName("normal"), priority=100),
    JobClass(name=ClassName("high"), priority=1_000),
)


def _queue(path: str) -> Queue:
    of_it = [name for name, (_, team) in OF_TEAM.items() if team == path]
    return Queue(path=QueuePath(path), may_submit=tuple(map(UserName, of_it)))


def _user(name: str, role: Role, queue: str | None) -> User:
    where = None if queue is None else QueuePath(queue)
    return User(name=UserName(name), grants=(Grant(role=role, queue=where),))


SITE = Site(
    queues={QueuePath(path): _queue(path) for path in ("default", *TEAMS)},
    classes={each.name: each for each in _CLASSES},
    pools={PoolName("local"): Pool(name=PoolName("local"), cluster=ClusterName("local"))},
    users={
        UserName(name): user
        for name, user in (
            *((name, _user(name, role, team)) for name, (role, team) in OF_TEAM.items()),
            (ADMIN, _user(ADMIN, Role.ADMIN, None)),
        )
    },
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the API answered."""

    code: int
    body: Any
    text: str


@dataclass(frozen=True, kw_only=True)
class Kube:
    """The API, and who asks it."""

    muster: Muster
    app: KubernetesApp
    signer: Signer
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def token(self, who: str) -> str:
        """A token of this person; "" for nobody, who has none."""
        if who not in self.tokens:
            caller = Caller(user=UserName(who), door="test", root=who == "root")
            self.tokens[who] = self.signer.for_person(caller, clock())[0]
        return self.tokens[who]

    def limited_token(self, who: str, role: Role, queue: str | None) -> str:
        """A token of Muster that may less than its owner."""
        where = None if queue is None else QueuePath(queue)
        wish = TokenRequest(
            user=UserName(who), role=role, queue=where, lifetime=Duration(3_600_000)
        )
        caller = Caller(user=UserName(who), door="test")
        return self.muster.service.make_token(caller, wish).result().secret

    def ask(
        self,
        who: str,
        method: str,
        path: str,
        body: JsonObject | list[Any] | bytes | None = None,
        **headers: str,
    ) -> Said:
        """What this person is answered. who: a name, or a token with `Bearer` before it."""
        token = who if who.startswith("Bearer ") else f"Bearer {self.token(who)}" if who else ""
        path, _, query = path.partition("?")
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        given = {name.replace("_", "-").encode(): text.encode() for name, text in headers.items()}
        found = answer(
            self.app.api,
            Ask(
                method=method,
                path=path,
                query=_query(query),
                headers=given | ({b"authorization": token.encode()} if token else {}),
                body=raw,
            ),
        )
        if not isinstance(found, Answer):
            return Said(code=200, body=found, text="")
        text = found.body.decode()
        is_json = found.media.startswith("application/json") and text
        return Said(code=found.code, body=json.loads(text) if is_json else text, text=text)

    def made(self, who: str, path: str, body: JsonObject) -> JsonObject:
        """An object that this person may create."""
        said = self.ask(who, "POST", path, body)
        assert said.code == 201, said.text
        return said.body

    def user_of(self, namespace: str, pod: str) -> str:
        """Whose processes this pod's are."""
        return self.user_of_uid(self.pod(namespace, pod)["metadata"]["uid"])

    def user_of_uid(self, uid: str) -> str:
        """Whose processes those of the pod of this uid are, be it gone already."""
        happened = self.muster.store.events(EventQuery(limit=100_000))
        specs = (each.event.spec for each in happened if isinstance(each.event, JobSubmitted))
        return next(str(spec.user) for spec in specs if spec.labels.get(UID_LABEL) == uid)

    def pod(self, namespace: str, name: str) -> JsonObject:
        return self.ask("root", "GET", f"/api/v1/namespaces/{namespace}/pods/{name}").body

    def pods_of(self, namespace: str, prefix: str) -> list[str]:
        """The names of pods that begin so."""
        listed = self.ask("root", "GET", f"/api/v1/namespaces/{namespace}/pods").body["items"]
        names = [str(each["metadata"]["name"]) for each in listed]
        return [each for each in names if each.startswith(prefix)]


def _query(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in filter(None, text.split("&")):
        name, _, value = each.partition("=")
        found.setdefault(name, []).append(value)
    return found


@contextmanager
def kube(home: Path) -> Generator[Kube]:
    """A Muster that leads, with its controllers."""
    muster = Muster(home, Settings(store="memory:", nodes=1, gpus="2xA100-40GB"), SITE)
    muster.start()
    keys = open_keys(home / "kubernetes", "127.0.0.1")
    app = kubernetes_app(muster.service, clock, keys, "127.0.0.1:0")
    made = Kube(muster=muster, app=app, signer=Signer(keys.signing))
    try:
        muster.accompany(app.reconciler)
        muster.accompany(app.keeper)
        for team in TEAMS:
            path = f"/api/v1/namespaces/{team}"
            until(lambda path=path: made.ask("root", "GET", path).code, lambda code: code == 200)
        yield made
    finally:
        app.close()
        muster.close()


def pod(name: str, **more: Any) -> JsonObject:
    """A pod that waits for ever, so that nothing runs."""
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    spec = {"containers": [container], "schedulingGates": [{"name": "wait"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, **more: Any) -> JsonObject:
    """Of one such pod."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name, **more)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def object_of(kind: str, name: str, **fields: Any) -> JsonObject:
    """An object of the first group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def with_metadata(obj: JsonObject, **fields: Any) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **fields}}
