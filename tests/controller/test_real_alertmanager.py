"""Alerts reach a webhook through a real Alertmanager, which `make observers` builds."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from controller.test_alerting import RESEND, Hook, hot, judged_by, receiver, wait_until
from muster.model.alerting import ReceiverKind
from muster.model.value import Instant
from muster.telemetry.family import Family

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture
def manager(tmp_path: Path, hook: Hook) -> Iterator[str]:
    """The URL of an Alertmanager that tells the hook."""
    where = subprocess.run(  # noqa: S603 our own script
        ["/bin/bash", str(ROOT / "tests/observers/build.sh"), "where"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    program = Path(where or "/nowhere") / "alertmanager"
    if not program.exists():
        pytest.skip("no Alertmanager here: make observers")
    route = {"receiver": "w", "group_wait": "1s", "group_interval": "1s"}
    webhook = {"url": f"{hook.url}/told", "send_resolved": True}
    rules = {"route": route, "receivers": [{"name": "w", "webhook_configs": [webhook]}]}
    (tmp_path / "am.yml").write_text(json.dumps(rules))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with subprocess.Popen(  # noqa: S603 the Alertmanager of make observers
        [
            str(program),
            f"--config.file={tmp_path / 'am.yml'}",
            f"--storage.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: is_ready(address))
        yield f"http://{address}"
        process.terminate()


def test_what_fires_and_what_is_over_reach_a_webhook_through_an_alertmanager(
    tmp_path: Path, hook: Hook, manager: str
) -> None:
    # Alertmanager looks at the clock: what is long over is not told.
    now = now_ms()
    cooled = False

    def families(at: Instant) -> tuple[Family, ...]:
        return () if cooled else hot(at)

    loop, _ = judged_by(receiver(tmp_path, ReceiverKind.ALERTMANAGER, manager), families)
    for second in range(-180, 1, 15):
        loop.evaluate(Instant(now + second * 1_000), RESEND)
    wait_until(lambda: any(body["status"] == "firing" for _, body in hook.bodies))
    cooled = True
    loop.evaluate(Instant(now_ms()), RESEND)

    wait_until(lambda: any(body["status"] == "resolved" for _, body in hook.bodies))
    loop.close()
    body = next(body for _, body in hook.bodies if body["status"] == "firing")
    assert [each["labels"]["alertname"] for each in body["alerts"]] == ["GPUTemperatureTooHigh"]
    assert body["alerts"][0]["annotations"]["summary"] == "GPU temperature too high on n1"


def is_ready(address: str) -> bool:
    try:
        return urllib3.request("GET", f"http://{address}/-/ready", retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def now_ms() -> int:
    return time.time_ns() // 1_000_000
