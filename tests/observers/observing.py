"""The real programs that watch Muster, as `make observers` builds them."""

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 60
BUILD = Path(__file__).with_name("build.sh")


def program(name: str) -> str:
    """Where it is; the test is skipped, and says why, where it was not built."""
    where = subprocess.run(  # noqa: S603 -- our own script
        ["/bin/bash", str(BUILD), "where"], capture_output=True, text=True, check=True
    )
    path = Path(where.stdout.strip()) / name
    if not path.exists():
        pytest.skip(f"{name} is not there: `make observers` builds it, in 10 minutes")
    return str(path)


def checked(*words: str) -> str:
    """What a program says that must end well."""
    ran = subprocess.run(  # noqa: S603 -- programs that we built
        words, capture_output=True, text=True, check=False, timeout=10 * PATIENCE_S
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def complaints(text: str) -> list[str]:
    """What `promtool check metrics` has against a page of metrics."""
    ran = subprocess.run(  # noqa: S603 -- a program that we built
        [program("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode in {0, 3}, ran.stderr
    return (ran.stdout + ran.stderr).splitlines()


class Prometheus:
    """Asked as Grafana asks it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **query: str) -> Any:
        url = f"{self.url}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 -- loopback
            return json.load(answer)["data"]

    def ask(self, expression: str) -> list[Any]:
        """The series that an expression gives now."""
        return self.get("/api/v1/query", query=expression)["result"]


@contextmanager
def prometheus(
    folder: Path,
    targets: int,
    token: str,
    *,
    rules: Path | None = None,
    alertmanager: int | None = None,
) -> Generator[Prometheus]:
    """A Prometheus that reads the Muster on that port every second, and takes OTLP.

    rules: judged every second, and what fires is told to the Alertmanager on that port.
    """
    (folder / "token").write_text(token, encoding="utf-8")
    port = free_port()
    scrape = {
        "job_name": "muster",
        "honor_labels": True,
        "authorization": {"credentials_file": "token"},
        "static_configs": [{"targets": [f"127.0.0.1:{targets}"]}],
    }
    seconds = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config: dict[str, Any] = {"global": seconds, "scrape_configs": [scrape]}
    if rules is not None:
        config["rule_files"] = [str(rules)]
    if alertmanager is not None:
        managers = {"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}
        config["alerting"] = {"alertmanagers": [managers]}
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    words = (
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=1h",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-otlp-receiver",
        "--log.level=warn",
    )
    with observer("prometheus", words, folder, port):
        yield Prometheus(port)


@contextmanager
def alertmanager(folder: Path, webhook: str) -> Generator[int]:
    """An Alertmanager that tells everything to a webhook after a second, and the port it is on."""
    port = free_port()
    route = {"receiver": "w", "group_wait": "1s", "group_interval": "1s"}
    hook = {"url": webhook, "send_resolved": True}
    config = {"route": route, "receivers": [{"name": "w", "webhook_configs": [hook]}]}
    file = folder / "alertmanager.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    words = (
        f"--config.file={file}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    )
    with observer("alertmanager", words, folder, port):
        yield port


@contextmanager
def statsd_exporter(folder: Path) -> Generator[tuple[int, int]]:
    """A statsd_exporter: the ports on which it is told by UDP, and tells by HTTP."""
    told, tells = free_port(), free_port()
    words = (
        f"--web.listen-address=127.0.0.1:{tells}",
        f"--statsd.listen-udp=127.0.0.1:{told}",
        "--statsd.listen-tcp=",
    )
    with observer("statsd_exporter", words, folder, tells):
        yield told, tells


@contextmanager
def observer(name: str, words: tuple[str, ...], folder: Path, port: int) -> Generator[None]:
    """One of the programs, while it runs."""
    with (folder / f"{name}.log").open("wb") as log:
        argv = [program(name), *words]
        process = subprocess.Popen(argv, stdout=log, stderr=log)  # noqa: S603 -- we built it
        try:
            until(lambda: process.poll() is None and _is_ready(port), bool)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def until(look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """What is seen as soon as it is so; fails when it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(seen := look()):
        assert time.monotonic() < deadline, f"still {seen}"
        time.sleep(0.1)
    return seen
