"""Metrics, devices and series over a real socket."""

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from doors.rest.running import Daemon, running, shell, started, until
from muster.api.site import TokenAsked
from muster.settings import Listen

SITE = """
queues: {default: {}, acme: {queues: {nlp: {}}}, other: {}}
classes: {normal: {}}
telemetry: {interval: 5s, metrics_open: %s}
"""


class Scraper:
    """Asks as Prometheus does: over TCP, with a token or without one."""

    def __init__(self, port: int, token: str | None) -> None:
        self._port = port
        self._token = token

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        token = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        connection.request("GET", path, headers={**headers, **token})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        body = answer.read()
        connection.close()
        return answer.status, found, body

    def metrics(self, query: str = "") -> list[str]:
        status, _, body = self.get(f"/metrics{query}")
        assert status == 200, body
        return body.decode().splitlines()

    def document(self, path: str) -> Any:
        status, _, body = self.get(path)
        assert status == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def open_daemon() -> Iterator[tuple[Daemon, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(Listen(host="127.0.0.1", port=port)) as daemon:
        load = {"*": [{"busy_milli": 900, "temperature_c": 71, "margin_c": 16}]}
        (daemon.home / "pretend-load.json").write_text(json.dumps(load), encoding="utf-8")
        yield daemon, port


def rules(daemon: Daemon, *, metrics_open: bool = False) -> None:
    with daemon.client() as client:
        client.apply(SITE % str(metrics_open).lower())


def scraper(where: tuple[Daemon, int], queue: str | None = None) -> Scraper:
    with where[0].client() as client:
        token = client.make_token(TokenAsked(role="viewer", queue=queue))
    return Scraper(where[1], token.secret)


def test_prometheus_reads_what_is_measured(open_daemon: tuple[Daemon, int]) -> None:
    rules(open_daemon[0])
    asked = scraper(open_daemon)

    def busy() -> list[str]:
        lines = asked.metrics()
        return [line for line in lines if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]

    found = until(busy, lambda lines: len(lines) == 8 and lines[0].endswith(" 90.0"))

    assert 'UUID="pretend1/gpu0"' in found[0]
    assert 'pretend="true"' in found[0]
    assert "muster_leads 1" in asked.metrics()


def test_openmetrics_and_gzip_come_when_they_are_asked_for(
    open_daemon: tuple[Daemon, int],
) -> None:
    rules(open_daemon[0])
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"

    status, headers, body = scraper(open_daemon).get(
        "/metrics", **{"Accept": accept, "Accept-Encoding": "gzip"}
    )

    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert gzip.decompress(body).endswith(b"# EOF\n")


def test_who_does_not_say_who_they_are_sees_nothing_unless_rules_open_it(
    open_daemon: tuple[Daemon, int],
) -> None:
    nobody = Scraper(open_daemon[1], None)
    rules(open_daemon[0])
    assert nobody.get("/metrics")[0] == 401

    rules(open_daemon[0], metrics_open=True)

    assert "muster_leads 1" in nobody.metrics()
    assert nobody.get("/v1/devices/now")[0] == 401
    assert Scraper(open_daemon[1], "mst_wrong").get("/metrics")[0] == 401


def test_tenants_see_their_subtree_and_nobody_elses(open_daemon: tuple[Daemon, int]) -> None:
    daemon, _ = open_daemon
    rules(daemon)
    with daemon.client() as client:
        jobs = {
            queue: client.submit_document(shell("sleep 60", gpus=2, queue=queue)).id
            for queue in ("acme/nlp", "other")
        }
        devices = {queue: started(client, job) for queue, job in jobs.items()}
        assert devices
        tenant = scraper(open_daemon, "acme")

        def series() -> list[str]:
            lines = tenant.metrics("?queue=acme")
            return [line for line in lines if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]

        until(series, lambda lines: len(lines) == 2)
        seen = tenant.metrics("?queue=acme")
        refused = [tenant.get(path)[0] for path in ("/metrics", "/metrics?queue=other")]
        now = tenant.document("/v1/devices/now")
        client.cancel(list(jobs.values()))

    assert any('queue="acme/nlp"' in line for line in seen)
    assert not [line for line in seen if 'queue="other"' in line or 'queue="default"' in line]
    assert not [line for line in seen if line.startswith("muster_pool")]
    assert refused == [403, 403]
    theirs = {jobs["acme/nlp"]}
    for holders, busy in zip(now["jobs"], now["busy"], strict=True):
        assert (busy is not None) == (set(holders) == theirs)


def test_a_page_of_devices_comes_in_columns(open_daemon: tuple[Daemon, int]) -> None:
    rules(open_daemon[0])
    asked = scraper(open_daemon)

    now = until(lambda: asked.document("/v1/devices/now"), lambda found: found["busy"][0] == 0.9)

    assert {len(column) for column in now.values()} == {8}
    assert now["node"][:5] == ["pretend1"] * 4 + ["pretend2"]
    assert (now["busy"][0], now["heat"][0], now["margin"][0]) == (0.9, 71, 16)
    assert now["health"][0] == "well"


def test_a_jobs_series_come_step_by_step_to_who_may_see_it(
    open_daemon: tuple[Daemon, int],
) -> None:
    daemon, _ = open_daemon
    rules(daemon)
    with daemon.client() as client:
        job = client.submit_document(shell("sleep 60", gpus=1)).id
        started(client, job)
        token = client.make_token(TokenAsked(role="user"))
        owner, viewer = Scraper(open_daemon[1], token.secret), scraper(open_daemon)
        path = f"/v1/jobs/{job}/series?signals=busy,heat&step=5"

        found = until(lambda: owner.document(path), lambda seen: seen["devices"])
        refused = viewer.get(path)[0]
        unknown = owner.get(f"/v1/jobs/{job}/series?signals=noise")[0]
        client.cancel([job])

    (device,) = found["devices"]
    assert found["step_ms"] == 5_000
    assert device["values"]["busy"][0] == 0.9
    assert set(device["values"]) == {"busy", "heat"}
    assert (refused, unknown) == (403, 400)


def test_a_queue_that_is_not_there_is_said_to_be_missing(open_daemon: tuple[Daemon, int]) -> None:
    rules(open_daemon[0])

    assert scraper(open_daemon).get("/metrics?queue=nowhere")[0] == 404
