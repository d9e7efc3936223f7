"""Every alert that Muster ships, judged by a real promtool: when it fires, and just does not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from observers.observing import checked, program
from unit.telemetry.alerting.promtool import firing
from unit.telemetry.alerting.rule_cases import CASES, Case, Series

pytestmark = pytest.mark.slow

RULES = Path(__file__).parents[2] / "src/muster/telemetry/rules/muster.rules.yml"
STEP_MS = 15_000


def test_promtool_fires_every_alert_when_we_do_and_with_the_same_texts(tmp_path: Path) -> None:
    promtool, text = program("promtool"), RULES.read_text(encoding="utf-8")
    tests = [
        each
        for case in CASES
        for each in (
            _test(case, case.fires, text, fires=True),
            _test(case, case.quiet, text, fires=False),
        )
    ]
    file = tmp_path / "alerts.test.yml"
    document = {"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": tests}
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")

    assert "SUCCESS" in checked(promtool, "test", "rules", str(file))


def test_promtool_takes_the_rules() -> None:
    assert "rules found" in checked(program("promtool"), "check", "rules", str(RULES))


def _test(case: Case, series: Series, text: str, *, fires: bool) -> dict[str, Any]:
    at_ms = round(case.at * 60_000)
    test: dict[str, Any] = {
        "name": f"{case.alert} {'fires' if fires else 'does not'}",
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
    }
    found = firing(test, [text], STEP_MS, ((at_ms, case.alert),))[at_ms, case.alert]
    assert bool(found) is fires, test["name"]
    test["alert_rule_test"] = [
        {
            "eval_time": f"{at_ms // 1_000}s",
            "alertname": case.alert,
            "exp_alerts": [
                {"exp_labels": dict(labels), "exp_annotations": dict(annotations)}
                for labels, annotations in found
            ],
        }
    ]
    return test
