"""Who reads what was measured: every role and reach, every queue, everything that tells of it.

Jobs of five queues run, write and are told of by alerts. For each token all that telemetry answers
is read, and judged by what stands in it: nothing of a queue out of reach, whatever was asked.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from doors.rest.running import Daemon, running, shell, started, until
from doors.rest.test_telemetry import Scraper
from muster.api.site import TokenAsked
from muster.model.queue import is_within
from muster.model.site import Role
from muster.model.value import QueuePath
from muster.settings import Listen
from observers.observing import free_port

pytestmark = pytest.mark.slow

QUEUES = tuple(map(QueuePath, ("kiwi", "kiwi/fig", "kiwi/plum", "pear", "pear/lime")))
ROLES = (Role.VIEWER, Role.USER, Role.QUEUE_ADMIN)
REACHES = (None, *QUEUES)
RANK = {role: rank for rank, role in enumerate((*ROLES, Role.ADMIN))}

SITE = """
queues: {default: {}, kiwi: {queues: {fig: {}, plum: {}}}, pear: {queues: {lime: {}}}}
classes: {normal: {}}
users: {root: {roles: [admin]}}
telemetry: {interval: 5s}
"""
RULES = """
groups:
- name: matrix
  rules:
  - alert: QueueHoldsGpus
    expr: muster_queue_used_gpus > 0
    annotations: {summary: "{{ $labels.queue }} holds {{ $value }}"}
  - alert: DeviceHeld
    expr: muster_device_job_info == 1
"""


EVERYONE = Role.USER
"""What a stranger is by the rules, whatever their token would allow."""


@dataclass(frozen=True)
class Token:
    """What a token lets one do, and where. is_own: the jobs are those of whose it is."""

    role: Role
    reach: QueuePath | None
    is_own: bool = True

    def may(self, role: Role, queue: QueuePath) -> bool:
        most = RANK[self.role] if self.is_own else min(RANK[self.role], RANK[EVERYONE])
        return most >= RANK[role] and self.reaches(queue)

    def sees_use(self, queue: QueuePath) -> bool:
        """Its own jobs, or those of a queue that it looks after."""
        return self.may(Role.USER if self.is_own else Role.QUEUE_ADMIN, queue)

    def reaches(self, queue: QueuePath) -> bool:
        return self.reach is None or is_within(queue, self.reach)

    def outside(self) -> list[QueuePath]:
        return [queue for queue in QUEUES if not self.reaches(queue)]


@dataclass(frozen=True)
class House:
    """A Muster with a job of each queue."""

    daemon: Daemon
    port: int
    jobs: dict[QueuePath, int]
    devices: dict[str, QueuePath]
    user: str

    def as_(self, token: Token) -> Scraper:
        with self.daemon.client() as client:
            user = None if token.is_own else "eve"
            asked = TokenAsked(role=token.role.value, queue=token.reach, user=user)
            return Scraper(self.port, client.make_token(asked).secret)


TOKENS = [Token(*each) for each in product(ROLES, REACHES, (True, False))]
IDS = [f"{each.role}-{each.reach}-{'own' if each.is_own else 'other'}" for each in TOKENS]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    port = free_port()
    written = tmp_path_factory.mktemp("written")
    with running(Listen(host="127.0.0.1", port=port)) as daemon, daemon.client() as client:
        load = {"*": [{"busy_milli": 900, "temperature_c": 71}]}
        (daemon.home / "pretend-load.json").write_text(json.dumps(load), encoding="utf-8")
        client.apply(SITE)
        client.apply(RULES)
        jobs = {queue: _submitted(client, queue, written) for queue in QUEUES}
        devices = {
            share.device: queue
            for queue, job in jobs.items()
            for task in started(client, job).tasks
            for share in task.devices
        }
        house = House(daemon, port, jobs, devices, client.me().user)
        everything = house.as_(Token(Role.QUEUE_ADMIN, None))
        until(lambda: _alerts(everything), lambda found: set(QUEUES) <= set(found))
        for job in jobs.values():
            path = f"/v1/jobs/{job}/series?signals=busy&step=5"
            until(lambda path=path: everything.document(path)["devices"], bool)
            path = f"/v1/jobs/{job}/efficiency"
            until(lambda path=path: everything.get(path)[0], lambda status: status == 200)
        path = "/v1/report?by=queue&limit=1000"
        until(lambda: _told_of(everything.get(path)[2]), lambda told: told == set(QUEUES))
        # What GPUs did is counted by whole minutes.
        until(lambda: _used(everything), lambda told: told >= set(QUEUES), patience_s=150.0)
        yield house


def _used(asked: Scraper) -> set[str]:
    return {row["queue"] for row in asked.document("/v1/report?by=queue")["rows"]}


def _submitted(client: Any, queue: QueuePath, written: Path) -> int:
    stdout = str(written / queue.replace("/", "-"))
    text = f"echo written in {queue}; sleep 600"
    job = client.submit_document(shell(text, gpus=1, queue=queue, stdout=stdout, name=_name(queue)))
    return job.id


def _name(queue: QueuePath) -> str:
    return f"job-of-{queue.replace('/', '-')}-"


def _alerts(asked: Scraper) -> list[str]:
    return [each["labels"].get("queue", "") for each in asked.document("/v1/alerts")["alerts"]]


@pytest.mark.parametrize("token", TOKENS, ids=IDS)
def test_nobody_reads_what_was_measured_in_another_subtree(house: House, token: Token) -> None:
    asked = house.as_(token)

    for queue, job in house.jobs.items():
        allowed = token.sees_use(queue)
        for path in (
            f"/v1/jobs/{job}/series?signals=busy&step=5",
            f"/v1/jobs/{job}/efficiency",
            f"/v1/jobs/{job}/timeline",
            f"/v1/jobs/{job}/log",
        ):
            status, _, body = asked.get(path)
            assert status == (200 if allowed else 403), (path, body)
            assert allowed or f"written in {queue}".encode() not in body
        status, _, body = asked.get(f"/metrics?queue={queue}")
        assert status == (200 if token.may(Role.VIEWER, queue) else 403)
        assert status == 403 or _told_of(body) == {
            each for each in QUEUES if is_within(each, queue)
        }
    assert asked.get("/metrics")[0] == (200 if token.reach is None else 403)


@pytest.mark.parametrize("token", TOKENS, ids=IDS)
def test_lists_tell_of_ones_own_subtree_alone(house: House, token: Token) -> None:
    asked = house.as_(token)
    inside = {queue for queue in QUEUES if token.reaches(queue)}

    assert set(_alerts(asked)) - {""} == inside
    for path in (
        "/v1/findings?limit=1000",
        "/v1/report?by=queue&limit=1000",
        "/v1/report?by=queue&by=use&by=cause",
        "/v1/report?by=queue&by=user&limit=1000&rehearse=true",
        "/v1/alerts",
        "/v1/silences",
    ):
        status, _, body = asked.get(path)
        assert status == 200, path
        assert _told_of(body) <= inside, path
    used = {queue for queue in QUEUES if token.sees_use(queue)}
    assert _told_of(asked.get("/v1/report?by=use&limit=1000")[2]) == used
    for queue in token.outside():
        for path in (f"/v1/findings?queue={queue}", f"/v1/report?queue={queue}&by=queue"):
            status, _, body = asked.get(path)
            assert status == 403 or not _told_of(body) - inside, path
    now = asked.document("/v1/devices/now")
    for device, busy in zip(now["id"], now["busy"], strict=True):
        holder = house.devices.get(device)
        seen = token.reach is None or (holder is not None and token.reaches(holder))
        assert (busy is not None) == seen, device


@pytest.mark.parametrize("token", TOKENS, ids=IDS)
def test_whose_gpus_were_used_is_told_to_those_who_see_their_jobs(
    house: House, token: Token
) -> None:
    asked = house.as_(token)
    used = {queue for queue in QUEUES if token.sees_use(queue)}

    rows = asked.document("/v1/report?by=queue&by=user")["rows"]
    of_one = asked.document(f"/v1/report?by=queue&user={house.user}")["rows"]
    of_other = asked.document("/v1/report?by=queue&user=nobody")["rows"]

    named = {row["queue"] for row in rows if row["user"]}
    assert named == {row["queue"] for row in of_one} == used
    assert {row["user"] for row in rows} <= {house.user, ""}
    assert of_other == []


def _told_of(body: bytes) -> set[QueuePath]:
    """The queues that a text names, by themselves or by a job of theirs."""
    text = body.decode()
    return {
        queue
        for queue in QUEUES
        if re.search(rf'"{re.escape(queue)}["\\]|{re.escape(_name(queue))}', text)
    }
