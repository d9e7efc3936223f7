"""Who is answered by which route, about whose job: every row of the table of routes, by everyone.

The rights are written down here a second time. A route without a row fails.
"""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

from hostile.people import ROOT, spec, until
from hostile.test_matrix import LATER, PEOPLE, TOKENS, WHO
from muster.app.parts import Muster, clock
from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.rest.app import TABLE, rest_app
from muster.doors.rest.of_jobs import ACTIONS
from muster.doors.rest.serve import Serving, Tcp, serve
from muster.model.launch import Launch
from muster.model.site import Role
from muster.model.value import Duration, JobId, QueuePath, UserName

OWNERS = ("owner", "other", "root")
QUEUES = ("a/b", "default")
"""boss looks after `a`."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Try:
    """Somebody asks for something, about a job of this owner's in this queue."""

    who: str
    owner: str
    queue: str

    @property
    def person(self) -> str:
        return self.who.partition("'")[0]

    @property
    def has_all_rights(self) -> bool:
        """Or only those of a lesser token?"""
        return self.who not in TOKENS


def everyone(_: Try) -> bool:
    return True


def admins(it: Try) -> bool:
    return it.who in {"root", "admin"}


def carers(it: Try) -> bool:
    """Who looks after the queue."""
    return admins(it) or (it.who == "boss" and it.queue.startswith("a"))


def of_a(it: Try) -> bool:
    """Who looks after queue `a`, whatever queue the job is in."""
    return it.who in {"root", "admin", "boss"}


def changers(it: Try) -> bool:
    return carers(it) or (it.person == it.owner and it.has_all_rights)


def submitters(it: Try) -> bool:
    return carers(it) or it.who in {"owner", "other"}


def root_alone(it: Try) -> bool:
    return it.who == "root"


def keeper_of_token(it: Try) -> bool:
    return it.who in {"root", "admin", "owner"}


def viewers_of_all(it: Try) -> bool:
    """boss has a role in `a` alone, and a token for one queue is for that one."""
    return it.who not in {"boss", "owner's token for secret"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is asked for, and who is answered. path: where the names in it are not enough."""

    may: Callable[[Try], bool]
    body: Json | None = None
    path: str = ""


RULES_OF_A = {"tests": ["alertname=x"], "lasts": "1h", "comment": "later", "queue": "a"}
WISH = {"command": ["true"], "held": True, "workdir": "/", "groups": [{"cpus": 0.1}]}

ROWS: dict[tuple[str, str], Row] = {
    ("GET", "/v1/jobs"): Row(may=everyone),
    ("GET", "/v1/jobs/lines"): Row(may=everyone),
    ("POST", "/v1/jobs"): Row(may=submitters, body={**WISH, "queue": "QUEUE"}),
    ("GET", "/v1/jobs/{id:int}"): Row(may=everyone),
    ("PATCH", "/v1/jobs/{id:int}"): Row(may=changers, body={"name": "changed"}),
    ("DELETE", "/v1/jobs/{id:int}"): Row(may=changers),
    ("POST", "/v1/jobs/actions"): Row(may=changers, body={"action": "cancel", "ids": ["JOB"]}),
    ("GET", "/v1/jobs/{id:int}/explanation"): Row(may=everyone),
    **{
        ("POST", f"/v1/jobs/{{id:int}}/{action}"): Row(
            may=changers, body={"signal": "USR1"} if action == "signal" else None
        )
        for action in ACTIONS
    },
    ("GET", "/v1/jobs/{id:int}/log"): Row(may=changers),
    ("GET", "/v1/jobs/{id:int}/series"): Row(may=changers),
    ("GET", "/v1/jobs/{id:int}/efficiency"): Row(may=changers),
    ("GET", "/v1/jobs/{id:int}/timeline"): Row(may=changers),
    ("GET", "/v1/jobs/{id:int}/events"): Row(may=everyone),
    ("GET", "/v1/events"): Row(may=everyone),
    ("GET", "/v1/events/stream"): Row(may=everyone),
    ("GET", "/v1/status"): Row(may=everyone),
    ("GET", "/healthz"): Row(may=everyone),
    ("GET", "/v1/nodes"): Row(may=everyone),
    ("GET", "/v1/nodes/{id}"): Row(may=everyone, path="/v1/nodes/pretend1"),
    ("POST", "/v1/nodes/{id}/drain"): Row(may=admins, path="/v1/nodes/pretend1/drain", body={}),
    ("POST", "/v1/nodes/{id}/resume"): Row(may=admins, path="/v1/nodes/pretend1/resume"),
    ("GET", "/v1/queues"): Row(may=everyone),
    ("GET", "/v1/queues/{path:path}"): Row(may=everyone, path="/v1/queues/a/b"),
    ("GET", "/v1/classes"): Row(may=everyone),
    ("GET", "/metrics"): Row(may=viewers_of_all),
    # What was measured is left out for those who may not see it.
    ("GET", "/v1/devices/now"): Row(may=everyone),
    ("GET", "/v1/findings"): Row(may=everyone),
    ("GET", "/v1/report"): Row(may=everyone),
    ("GET", "/v1/me"): Row(may=everyone),
    ("GET", "/v1/users"): Row(may=everyone),
    ("GET", "/v1/tokens"): Row(may=everyone),
    ("POST", "/v1/tokens"): Row(may=root_alone, body={"role": "viewer", "user": "grace"}),
    ("DELETE", "/v1/tokens/{id}"): Row(may=keeper_of_token, path="/v1/tokens/TOKEN"),
    ("GET", "/v1/site"): Row(may=everyone),
    ("PUT", "/v1/site"): Row(may=admins, body={"text": "SITE", "dry_run": True}),
    ("POST", "/v1/quotas"): Row(
        may=admins,
        path="/v1/quotas?dry_run=true",
        body={"queue": "default", "pool": "local", "limit": "1"},
    ),
    ("POST", "/v1/rehearsals"): Row(may=submitters, body={"submit": {**WISH, "queue": "QUEUE"}}),
    ("GET", "/v1/audit"): Row(may=admins),
    ("GET", "/v1/alerts"): Row(may=everyone),
    ("GET", "/v1/alert-rules"): Row(may=admins),
    ("GET", "/v1/alert-rules/shipped"): Row(may=everyone),
    ("GET", "/v1/silences"): Row(may=everyone),
    ("POST", "/v1/silences"): Row(may=of_a, body=RULES_OF_A),
    ("DELETE", "/v1/silences/{id}"): Row(may=of_a, path="/v1/silences/SILENCE"),
    ("POST", "/v1/slurm/{command}"): Row(
        may=everyone, path="/v1/slurm/squeue", body={"form": 1, "argv": []}
    ),
    ("POST", "/v1/kubernetes/token"): Row(may=everyone),
}

ABOUT_JOBS = {key for key in ROWS if "{id:int}" in key[1]} | {
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs/actions"),
    ("POST", "/v1/rehearsals"),
}
"""Whose answers depend on whose the job is, or where."""


class _AtSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, kw_only=True)
class Doors:
    """The server, and how each of them comes to it: root by its socket, others with a token."""

    muster: Muster
    serving: Serving
    path: Path
    tokens: dict[str, str]

    def ask(self, who: str, method: str, path: str, body: Json | None = None) -> tuple[int, str]:
        there = http.client.HTTPConnection("127.0.0.1", self.serving.port or 0)
        connection = _AtSocket(self.path) if who == "root" else there
        headers = {} if who == "root" else {"authorization": f"Bearer {self.tokens[who]}"}
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text, {**headers, "content-type": "application/json"})
            answer = connection.getresponse()
            is_endless = path.endswith("/stream")
            return answer.status, "" if is_endless else answer.read().decode()
        finally:
            connection.close()

    def asked_of(self, it: Try, key: tuple[str, str]) -> str:
        """What was answered where it should not be, or the other way round; "" where all is well"""
        row = ROWS[key]
        job = _job(self.muster, it)
        there: dict[str, Any] = {"JOB": int(job), "QUEUE": it.queue}
        if "TOKEN" in row.path:
            there["TOKEN"] = _token(self.muster, "owner", Role.USER)[0]
        if "SILENCE" in row.path:
            there["SILENCE"] = json.loads(self.ask("root", "POST", "/v1/silences", RULES_OF_A)[1])[
                "id"
            ]
        if key == ("PUT", "/v1/site"):
            text = self.ask("root", "GET", "/v1/site")[1]
            there["SITE"] = text.replace("\nclasses:\n", "\nclasses:\n  another: {}\n")
        path = (row.path or key[1]).replace("{id:int}", str(job))
        for name in ("TOKEN", "SILENCE"):
            path = path.replace(name, str(there.get(name)))
        status, text = self.ask(it.who, key[0], path, _filled(row.body, there))
        is_refused = status in {401, 403} or ('"failed"' in text and "belongs to" in text)
        if status >= 500 or is_refused is row.may(it):
            return f"{it}: {key}: {status} {text[:200]}"
        return ""


def _filled(body: Any, there: dict[str, Any]) -> Any:
    match body:
        case dict():
            found = cast("Json", body)
            return {name: _filled(each, there) for name, each in found.items()}
        case list():
            return [_filled(each, there) for each in cast("list[Any]", body)]
        case str():
            return there.get(body, body)
        case _:
            return body


def _token(muster: Muster, name: str, role: Role, queue: str | None = None) -> tuple[str, str]:
    where = None if queue is None else QueuePath(queue)
    wish = TokenRequest(user=UserName(name), role=role, queue=where, lifetime=Duration(3_600_000))
    made = muster.service.make_token(ROOT, wish).result()
    return str(made.token.id), made.secret


def _job(muster: Muster, it: Try) -> JobId:
    launch = Launch(argv=("true",), workdir="/", stdout="/dev/null")
    wish = spec(it.owner, queue=QueuePath(it.queue), launch=launch, begin_at=LATER)
    return muster.service.submit(ROOT, wish, held=True).result().jobs[0]


@pytest.fixture(scope="module")
def doors(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    path = tmp_path_factory.mktemp("routes") / "s"
    serving = serve(rest_app(muster.service, clock), path=path, tcp=Tcp(host="127.0.0.1", port=0))
    tokens = {who: _token(muster, who, Role.ADMIN)[1] for who in PEOPLE if who != "root"}
    for who, role in TOKENS.items():
        queue = "secret" if "for secret" in who else None
        tokens[who] = _token(muster, "owner", role, queue)[1]
    yield Doors(muster=muster, serving=serving, path=path, tokens=tokens)
    serving.close()


def test_every_route_has_its_row() -> None:
    assert {(each.method, each.path) for each in TABLE} == ROWS.keys()


@pytest.mark.parametrize("who", WHO)
def test_each_route_answers_whom_it_should(doors: Doors, who: str) -> None:
    about_jobs = product(OWNERS, QUEUES, sorted(ABOUT_JOBS))
    others = product(("owner",), ("a/b",), sorted(ROWS.keys() - ABOUT_JOBS))
    wrong = [
        doors.asked_of(Try(who=who, owner=owner, queue=queue), key)
        for owner, queue, key in (*about_jobs, *others)
    ]
    doors.muster.service.cancel(ROOT, tuple(doors.muster.journal.record.jobs)).result()
    until(lambda: doors.muster.journal.record.jobs, lambda jobs: not jobs)

    found = [each for each in wrong if each]
    assert not found, "\n".join(found)
