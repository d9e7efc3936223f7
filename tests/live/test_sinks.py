"""A live Muster sends its log, what jobs write, and metrics to servers as strict as real ones."""

from typing import Any

import pytest

from controller.gatherer import gatherer
from doors.rest.running import running, shell, until
from muster import Client

pytestmark = pytest.mark.slow

SITE = """
queues: {{default: {{}}, acme: {{}}}}
classes: {{normal: {{}}}}
telemetry:
  interval: 5s
  sinks:
    loki: {{kind: loki, url: "{loki}", sends: [log, output]}}
    otlp: {{kind: otlp, url: "{otlp}", sends: [log, output, metrics]}}
"""


def test_logs_output_and_metrics_arrive() -> None:
    with gatherer() as loki, gatherer() as otlp, running() as daemon, daemon.client() as client:
        client.apply(SITE.format(loki=loki.url, otlp=otlp.url))
        where: dict[str, Any] = {"queue": "acme", "stdout": str(daemon.home / "out-%j")}
        job = client.submit_document(shell("echo well begun; echo oh >&2", **where))
        client.wait(job.id)
        labels, _, metadata = loki.awaits_text("well begun")
        found = otlp.awaits_text("well begun")
        otlp.awaits_text("oh")
        metrics = otlp.awaits_metrics()
        # Who loses a sink is told so, and goes on.
        client.apply(SITE.format(loki="http://127.0.0.1:9", otlp=otlp.url))
        client.wait(client.submit_document(shell("echo lost", **where)).id)
        problems = _problems(client)

    assert labels == {"service": "muster", "kind": "job", "cluster": "local", "queue": "acme"}
    assert (metadata["job"], metadata["stream"]) == (str(job.id), "stdout")
    assert found[0]["muster.queue"] == "acme"
    assert "muster_leads" in {each["name"] for each in metrics}
    assert problems.startswith("sink loki: it does not answer")


def _problems(client: Client) -> str:
    def told() -> list[str]:
        return [each for each in client.status().problems if each.startswith("sink")]

    return until(told, bool)[0]
