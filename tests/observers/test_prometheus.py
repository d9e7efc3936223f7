"""A real Prometheus reads a live Muster, and every panel of every dashboard shows something."""

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from doors.rest.running import Daemon, running, shell, started
from muster.api.site import TokenAsked
from muster.settings import Listen
from observers.observing import Prometheus, complaints, free_port, program, prometheus, until

pytestmark = pytest.mark.slow

DASHBOARDS = sorted((Path(__file__).parents[2] / "examples" / "grafana").glob("*.json"))

SITE = """
queues: {default: {}, acme: {quotas: [{guaranteed: 1, limit: 6}]}, other: {}}
classes: {normal: {}}
telemetry: {interval: 5s}
"""
LOAD = {
    "busy_milli": 870,
    "copy_milli": 400,
    "temperature_c": 71,
    "memory_temperature_c": 80,
    "margin_c": 16,
    "sm_clock_mhz": 1_800,
    "memory_clock_mhz": 2_600,
    "throttled_ns": {"thermal": 5_000_000, "power": 1_000_000},
    "throttles": ["power_cap"],
    "activity": {"graphics_milli": 870, "sm_milli": 600, "tensor_milli": 300, "dram_milli": 200},
    "memory_errors": {"corrected_total": 3, "uncorrected_total": 0},
    "links": {"pcie_replays_total": 0, "pcie_generation": 5, "pcie_width": 16},
}

OF_NVIDIA = (
    'DCGM_FI_DEV_GPU_TEMP{instance=~"$instance", gpu=~"$gpu"}',
    'avg(DCGM_FI_DEV_GPU_TEMP{instance=~"$instance", gpu=~"$gpu"})',
    'DCGM_FI_DEV_POWER_USAGE{instance=~"$instance", gpu=~"$gpu"}',
    'sum(DCGM_FI_DEV_POWER_USAGE{instance=~"$instance", gpu=~"$gpu"})',
    'DCGM_FI_DEV_SM_CLOCK{instance=~"$instance", gpu=~"$gpu"} * 1000000',
    'DCGM_FI_DEV_GPU_UTIL{instance=~"$instance", gpu=~"$gpu"}',
    'DCGM_FI_DEV_FB_USED{instance=~"$instance", gpu=~"$gpu"}',
    'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~"$instance", gpu=~"$gpu"}',
)
"""What the eight panels of NVIDIA's own dashboard for dcgm-exporter (12239) ask for."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A Muster with a Prometheus beside it, and a job that runs while another waits."""

    daemon: Daemon
    prometheus: Prometheus
    job: int
    pages: tuple[str, str]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    program("prometheus")
    port = free_port()
    with running(Listen(host="127.0.0.1", port=port)) as daemon, daemon.client() as client:
        load = daemon.home / "pretend-load.json"
        load.write_text(json.dumps({"*": [LOAD]}), encoding="utf-8")
        client.apply(SITE)
        token = client.make_token(TokenAsked(role="viewer")).secret or ""
        with prometheus(tmp_path_factory.mktemp("prometheus"), port, token) as found:
            until(lambda: found.ask('up{job="muster"} == 1'), bool)
            client.wait(client.submit_document(shell("true", queue="acme")).id)
            job = client.submit_document(shell("sleep 600", gpus=3, queue="acme")).id
            started(client, job)
            wide = [client.submit_document(shell("sleep 600", gpus=4)).id for _ in range(2)]
            until(lambda: found.ask(f"DCGM_FI_DEV_GPU_UTIL and on (UUID) {_of(job)}"), bool)
            until(lambda: found.ask("sum(muster_jobs_waiting) > 0"), bool)
            # Rates need two looks that differ in time.
            until(lambda: found.ask("rate(muster_gpu_throttled_seconds_total[1m])"), bool)
            waits = 'rate(muster_job_wait_seconds_bucket{queue="acme"}[1h])'
            until(lambda: found.ask(waits), bool)
            until(lambda: found.ask("rate(muster_gpu_cost_total[1h])"), bool)
            pages = (
                _page(port, token, "text/plain"),
                _page(port, token, "application/openmetrics-text"),
            )
            yield Watched(daemon=daemon, prometheus=found, job=job, pages=pages)
            client.cancel([job, *wide])


def _of(job: int) -> str:
    return f'muster_device_job_info{{job="{job}"}}'


def _page(port: int, token: str, accept: str) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics",
        headers={"Authorization": f"Bearer {token}", "Accept": accept},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return answer.read().decode()


def test_prometheus_takes_every_series(watched: Watched) -> None:
    (target,) = watched.prometheus.get("/api/v1/targets")["activeTargets"]
    (taken,) = watched.prometheus.ask("scrape_samples_scraped")
    (told,) = watched.prometheus.ask("muster_telemetry_series")

    assert (target["health"], target["lastError"]) == ("up", "")
    assert abs(float(taken["value"][1]) - float(told["value"][1])) <= 64


def test_promtool_minds_the_names_of_dcgm_alone(watched: Watched) -> None:
    found = complaints(watched.pages[0])

    # Labels of devices are dcgm-exporter's as well, on our own series of devices too.
    others = [line for line in found if "camelCase" not in line]
    assert [line for line in others if not line.startswith(("DCGM_", "dcgm_"))] == []


def test_the_types_that_prometheus_learns_are_those_of_the_table(watched: Watched) -> None:
    metadata = watched.prometheus.get("/api/v1/metadata")

    assert metadata["muster_plan_seconds"][0]["type"] == "histogram"
    assert metadata["muster_jobs"][0]["type"] == "gauge"


@pytest.mark.parametrize("expression", OF_NVIDIA)
def test_the_panels_of_nvidias_dashboard_show_something(watched: Watched, expression: str) -> None:
    filled = expression.replace("$instance", ".*").replace("$gpu", ".*")

    assert watched.prometheus.ask(filled)


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_every_panel_of_our_dashboards_shows_something(watched: Watched, file: Path) -> None:
    dashboard = json.loads(file.read_text(encoding="utf-8"))
    empty = [
        f"{panel['title']}: {target['expr']}"
        for panel in dashboard["panels"]
        for target in panel["targets"]
        if not _shows(watched, target["expr"])
    ]

    assert empty == []
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.findall(r"\w+", variable["query"]["query"])[1:]
            assert watched.prometheus.ask(f"count by ({label}) ({metric})")


def _shows(watched: Watched, expression: str) -> bool:
    filled = expression.replace("$__rate_interval", "1m").replace("$job", str(watched.job))
    found: list[Any] = watched.prometheus.ask(re.sub(r"\$\w+", ".*", filled))
    return bool(found)


def test_a_metric_that_is_asked_for_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")

    for file in DASHBOARDS:
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"\b(?:muster_\w+|DCGM_\w+|dcgm_\w+)", text):
            assert f"`{re.sub('_(bucket|sum|count)$', '', name)}`" in page
