"""What `muster telemetry` prints, as Prometheus and Alertmanager read it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from observers.observing import checked, program

MUSTER = str(Path(sys.executable).with_name("muster"))


def printed(*words: str) -> str:
    command = [MUSTER, "telemetry", *words]
    return subprocess.run(  # noqa: S603 -- our own command
        command, capture_output=True, text=True, check=True
    ).stdout


def test_prometheus_takes_its_configuration_and_our_rules(tmp_path: Path) -> None:
    promtool = program("promtool")
    token = tmp_path / "token"
    token.write_text("mst_x", encoding="utf-8")
    config = tmp_path / "prometheus.yml"
    config.write_text(printed("prometheus", "--token-file", str(token)), encoding="utf-8")

    said = checked(promtool, "check", "config", str(config))

    assert "is valid prometheus config file" in said
    assert "rules found" in said


def test_alertmanager_takes_its_configuration(tmp_path: Path) -> None:
    amtool = program("amtool")
    config = tmp_path / "alertmanager.yml"
    config.write_text(printed("alertmanager"), encoding="utf-8")

    assert "SUCCESS" in checked(amtool, "check-config", str(config))


@pytest.mark.parametrize(("tool", "word"), [("grafana", "providers"), ("datadog", "instances")])
def test_the_others_are_yaml(tool: str, word: str) -> None:
    documents = list(yaml.safe_load_all(printed(tool)))

    assert any(word in each for each in documents)
