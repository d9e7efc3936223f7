"""The rules that Muster ships: each fires when it should, and just does not otherwise."""

from pathlib import Path

import pytest

from muster.model.value import Instant
from muster.telemetry.alerting.judging import AlertState, Judge, Judgement
from muster.telemetry.alerting.page import page
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.alerting.rules import AlertRule
from muster.telemetry.alerting.template import labels_named
from muster.telemetry.family import FamilyKind
from muster.telemetry.names import METRICS
from muster.telemetry.promql.syntax import selectors
from unit.telemetry.alerting.rule_cases import CASES, Case, Series
from unit.telemetry.promql.series import fed, looks

RULES = Path(__file__).parents[4] / "src/muster/telemetry/rules/muster.rules.yml"
TEXT = RULES.read_text(encoding="utf-8")
GROUPS = rule_groups(TEXT)
ALERTS = [rule for group in GROUPS for rule in group.rules if isinstance(rule, AlertRule)]
STEP_MS = 15_000
IDS = [f"{case.alert}-{number}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_alert_fires_and_no_other_does(case: Case) -> None:
    assert firing(case.fires, case.at) == {case.alert, *case.with_it}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_alert_just_does_not_fire(case: Case) -> None:
    assert case.alert not in firing(case.quiet, case.at)


def test_every_alert_has_its_cases() -> None:
    assert {case.alert for case in CASES} == {rule.name for rule in ALERTS}
    assert len(ALERTS) == 46


def test_what_rules_look_at_is_exported_or_recorded() -> None:
    recorded = {rule.name for group in GROUPS for rule in group.rules}
    exported = {metric.name for metric in METRICS}
    exported |= {
        f"{metric.name}_{suffix}"
        for metric in METRICS
        if metric.kind is FamilyKind.HISTOGRAM
        for suffix in ("bucket", "sum", "count")
    }
    asked = {
        each.name
        for group in GROUPS
        for rule in group.rules
        for each in selectors(rule.of)
        if each.name
    }

    assert asked - exported - recorded == {"up"}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.name)
def test_an_alert_says_who_must_act_and_what_to_do(rule: AlertRule) -> None:
    annotations = {name: text.expanded({}, 1) for name, text in rule.annotations}

    assert set(annotations) == {"summary", "description", "action", "runbook_url", "muster"}
    assert all(annotations.values())
    assert annotations["runbook_url"] == f"docs/alerts.md#{rule.name.lower()}"
    assert dict(rule.labels)["severity"].expanded({}, 1) in {"critical", "warning", "info"}


def test_the_labels_that_texts_show_are_there() -> None:
    """What fires is asked, so that a text never has a hole."""
    holes: set[str] = set()
    for case in CASES:
        rule = next(rule for rule in ALERTS if rule.name == case.alert)
        named = {label for _, text in rule.annotations for label in labels_named(text)}
        for alert in judged(case.fires, case.at).alerts:
            if alert.name == case.alert:
                holes |= {f"{alert.name}: {label}" for label in named - set(dict(alert.labels))}

    assert holes == set()


def test_exporters_of_others_are_recorded_in_the_names_of_the_requirements() -> None:
    series = {
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",job="dcgm"}': "90x20",
        'DCGM_FI_DEV_GPU_TEMP{gpu="1",job="muster"}': "90x20",
    }

    assert firing(series, 3) == {"GPUTemperatureTooHigh"}
    (alert,) = [each for each in judged(series, 3).alerts if each.over_at is None]
    assert alert.label("gpu") == "0"


def test_the_page_of_alerts_is_up_to_date() -> None:
    there = (RULES.parents[4] / "docs/alerts.md").read_text(encoding="utf-8")

    assert there == page(TEXT), "run: make reference"


def judged(series: Series, minutes: float) -> Judgement:
    judge = Judge(rule_groups(TEXT))
    ahead = list(looks(series, STEP_MS))
    now = 0
    while True:
        while ahead and ahead[0][0] <= now:
            fed(judge.history, *ahead.pop(0))
        found = judge.judge(Instant(now))
        assert found.failures == ()
        if now >= minutes * 60_000:
            return found
        # Alerts that take long are judged more rarely, which changes nothing but the time it takes.
        now += STEP_MS if minutes < 20 else 4 * STEP_MS


def firing(series: Series, minutes: float) -> set[str]:
    alerts = judged(series, minutes).alerts
    return {alert.name for alert in alerts if alert.state is AlertState.FIRING}
