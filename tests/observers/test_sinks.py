"""What Muster sends of itself arrives: by OTLP in a real Prometheus, by UDP in statsd_exporter."""

import json
import re
import urllib.request
from pathlib import Path

import pytest

from doors.rest.running import running, shell, started
from muster.api.site import TokenAsked
from muster.settings import Listen
from observers.observing import free_port, program, prometheus, statsd_exporter, until

pytestmark = pytest.mark.slow

LOAD = {"busy_milli": 870, "temperature_c": 71}
SITE = """
queues: {{default: {{}}, acme: {{}}}}
classes: {{normal: {{}}}}
telemetry: {{interval: 5s, sinks: {{out: {{kind: {kind}, url: "{url}", sends: [metrics]}}}}}}
"""


def test_metrics_arrive_in_prometheus_by_otlp_as_if_it_had_read_them(tmp_path: Path) -> None:
    program("prometheus")
    port = free_port()
    with running(Listen(host="127.0.0.1", port=port)) as daemon, daemon.client() as client:
        _busy(daemon.home)
        token = client.make_token(TokenAsked(role="viewer")).secret or ""
        with prometheus(tmp_path, port, token) as found:
            client.apply(SITE.format(kind="otlp", url=f"{found.url}/api/v1/otlp"))
            job = client.submit_document(shell("sleep 600", gpus=2, queue="acme")).id
            started(client, job)
            # In the words of OpenTelemetry's conventions, beside those that everybody has.
            part = until(lambda: found.ask("hw_gpu_utilization_ratio > 0"), bool)
            percent = until(lambda: found.ask("DCGM_FI_DEV_GPU_UTIL > 0"), bool)
            # What was read has the instance from which it was.
            names = {
                each["metric"]["__name__"]
                for each in found.ask('{__name__=~"muster_.+|DCGM_.+", instance=""}')
            }
            problems = [each for each in client.status().problems if "sink" in each]

    assert float(part[0]["value"][1]) == pytest.approx(float(percent[0]["value"][1]) / 100)
    assert part[0]["metric"]["job"] == "muster"
    assert {"muster_jobs", "muster_jobs_submitted_total", "DCGM_FI_DEV_GPU_UTIL"} <= names
    assert "muster_plan_seconds_bucket" in names
    assert problems == []


def test_metrics_arrive_in_statsd_exporter_with_their_labels(tmp_path: Path) -> None:
    program("statsd_exporter")
    with (
        statsd_exporter(tmp_path) as (told, tells),
        running() as daemon,
        daemon.client() as client,
    ):
        _busy(daemon.home)
        client.apply(SITE.format(kind="dogstatsd", url=f"udp://127.0.0.1:{told}"))
        job = client.submit_document(shell("sleep 600", gpus=2, queue="acme")).id
        started(client, job)
        held = r'^muster_queue_used_gpus\{[^}]*queue="acme"[^}]*\} 2$'
        page = until(lambda: _page(tells), lambda text: bool(re.search(held, text, re.MULTILINE)))

    assert re.search(r'^DCGM_FI_DEV_GPU_UTIL\{[^}]*UUID="pretend1/gpu0"', page, re.MULTILINE)
    (errors,) = re.findall(r"^statsd_exporter_tag_errors_total (\d+)$", page, re.MULTILINE)
    bad = re.findall(r"^statsd_exporter_sample_errors_total\{.*\} ([1-9]\d*)$", page, re.MULTILINE)
    assert (errors, bad) == ("0", [])


def _busy(home: Path) -> None:
    (home / "pretend-load.json").write_text(json.dumps({"*": [LOAD]}), encoding="utf-8")


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return answer.read().decode()
