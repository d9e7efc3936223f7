"""From a GPU of a live Muster to a webhook, through a real Prometheus and a real Alertmanager."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.test_alerting import Hook
from doors.rest.running import running
from muster.api.site import TokenAsked
from muster.backends.local.hardware.pretend import break_devices
from muster.controller.alerting.loop import shipped_rules
from muster.model.value import DeviceId
from muster.settings import Listen
from observers.observing import Prometheus, alertmanager, free_port, program, prometheus, until

pytestmark = pytest.mark.slow

SITE = """
queues: {default: {}}
classes: {normal: {}}
telemetry: {interval: 5s}
"""
WHY = "Xid 79: the GPU has fallen off the bus"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def test_what_breaks_and_what_is_gone_reach_a_webhook(tmp_path: Path, hook: Hook) -> None:
    program("prometheus")
    rules = tmp_path / "muster.rules.yml"
    # As they are shipped, but nobody waits for minutes here.
    rules.write_text(re.sub(r"for: \w+", "for: 3s", shipped_rules()), encoding="utf-8")
    port = free_port()
    with (
        alertmanager(tmp_path, f"{hook.url}/told") as manager,
        running(Listen(host="127.0.0.1", port=port)) as daemon,
        daemon.client() as client,
    ):
        client.apply(SITE)
        token = client.make_token(TokenAsked(role="viewer")).secret or ""
        with prometheus(tmp_path, port, token, rules=rules, alertmanager=manager) as found:
            until(lambda: found.ask("muster_leads == 1"), bool)
            rules_read = found.get("/api/v1/rules")["groups"]
            before = _firing(found)

            break_devices(daemon.home, {DeviceId("pretend1/gpu2"): WHY})
            broken = until(lambda: _told(hook, "GpuBroken", "firing"), bool)
            client.undrain("pretend1")
            until(lambda: _told(hook, "GpuBroken", "resolved"), bool)
            named = _firing(found)

            daemon.stop()
            gone = until(lambda: _told(hook, "MusterDown", "firing"), bool)
            daemon.start()
            until(lambda: _told(hook, "MusterDown", "resolved"), bool)

    assert before == set()
    assert {rule["health"] for group in rules_read for rule in group["rules"]} == {"ok"}
    assert (broken["labels"]["UUID"], broken["labels"]["severity"]) == ("pretend1/gpu2", "critical")
    assert broken["annotations"]["summary"] == "GPU 2 of pretend1 is broken"
    assert broken["annotations"]["runbook_url"] == "docs/alerts.md#gpubroken"
    # That it happened is told for ten minutes.
    assert named == {"GpuXidFatal"}
    assert gone["labels"]["severity"] == "critical"


def _firing(found: Prometheus) -> set[str]:
    firing = found.ask('ALERTS{alertstate="firing"}')
    return {each["metric"]["alertname"] for each in firing}


def _told(hook: Hook, name: str, status: str) -> dict[str, dict[str, str]]:
    for _, body in hook.bodies:
        for alert in body["alerts"]:
            if alert["labels"]["alertname"] == name and alert["status"] == status:
                return alert
    return {}
