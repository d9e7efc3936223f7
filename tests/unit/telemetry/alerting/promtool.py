"""Files of `promtool test rules`, run on our own evaluator."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from muster.model.value import Instant, replace
from muster.telemetry.alerting.judging import Alert, AlertState, Judge
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.promql.durations import milliseconds
from muster.telemetry.promql.evaluate import evaluated
from muster.telemetry.promql.history import History, kept_spans
from muster.telemetry.promql.labels import series_name
from muster.telemetry.promql.parser import parsed
from unit.telemetry.promql.series import fed, labels_of, looks

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Shown = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""Labels and annotations of an alert that fires."""


def differences(file: Path) -> list[str]:
    """Every case of a file in which we say something else than it expects."""
    document = documents(file)
    texts = [(file.parent / name).read_text(encoding="utf-8") for name in document["rule_files"]]
    every_ms = _span(document.get("evaluation_interval", "1m"))
    return [
        f"{test.get('name', number)}: {each}"
        for number, test in enumerate(document["tests"])
        for each in _of_test(test, texts, every_ms)
    ]


def value_differences(file: Path) -> list[str]:
    """The same for the values of expressions."""
    return [
        f"{test['name']} at {case['eval_time']}: {found} is not {expected}"
        for test in documents(file)["tests"]
        for case in test.get("promql_expr_test", ())
        if (found := _values(test, case)) != (expected := _expected_values(case))
    ]


def documents(file: Path) -> Any:
    """The file as it stands."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 it is a safe one


def _values(test: Mapping[str, Any], case: Mapping[str, Any]) -> dict[Any, float]:
    series = {each["series"]: str(each["values"]) for each in test["input_series"]}
    at_ms = _span(case["eval_time"])
    return values_at(case["expr"], series, _span(test["interval"]), at_ms)


def _expected_values(case: Mapping[str, Any]) -> dict[Any, float]:
    return {
        series_name(labels_of(each["labels"])): float(each["value"]) for each in case["exp_samples"]
    }


def _of_test(test: Mapping[str, Any], texts: list[str], every_ms: int) -> Iterator[str]:
    wanted = {
        (_span(case["eval_time"]), case["alertname"]): _expected(case)
        for case in test.get("alert_rule_test", ())
    }
    found = firing(test, texts, every_ms, tuple(wanted))
    for key, expected in wanted.items():
        if found[key] != expected:
            yield f"{key[1]} at {key[0] // 1000} s: expected {expected}, found {found[key]}"


def firing(
    test: Mapping[str, Any], texts: list[str], every_ms: int, asked: tuple[tuple[int, str], ...]
) -> dict[tuple[int, str], list[Shown]]:
    """What fires at each of these instants, evaluated as promtool does."""
    series = {each["series"]: str(each["values"]) for each in test["input_series"]}
    # Rules that nobody asks about would only take time; none of them records.
    names = {name for _, name in asked}
    groups = [group for text in texts for group in rule_groups(text)]
    wanted = [
        replace(group, rules=tuple(rule for rule in group.rules if rule.name in names))
        for group in groups
    ]
    judge = Judge(wanted, every_time=True)
    ahead = list(looks(series, _span(test["interval"])))
    found: dict[tuple[int, str], list[Shown]] = {}
    for now in range(0, max(at for at, _ in asked) + 1, every_ms):
        while ahead and ahead[0][0] <= now:
            fed(judge.history, *ahead.pop(0))
        alerts = judge.judge(Instant(now)).alerts
        for at, name in asked:
            if now <= at < now + every_ms:
                found[at, name] = shown(alerts, name)
    return found


def shown(alerts: tuple[Alert, ...], name: str) -> list[Shown]:
    return sorted(
        (
            tuple(each for each in alert.labels if each[0] != "alertname"),
            alert.annotations,
        )
        for alert in alerts
        if alert.name == name and alert.state is AlertState.FIRING
    )


def _expected(case: Mapping[str, Any]) -> list[Shown]:
    alerts: list[Mapping[str, Mapping[str, str]]] = case.get("exp_alerts") or []
    return sorted(
        (
            series_name({key: str(each) for key, each in _pairs(alert, "exp_labels").items()}),
            tuple(sorted(_pairs(alert, "exp_annotations").items())),
        )
        for alert in alerts
    )


def _pairs(alert: Mapping[str, Mapping[str, str]], key: str) -> Mapping[str, str]:
    return alert.get(key) or {}


def _span(text: object) -> int:
    found = milliseconds(str(text))
    assert found is not None, f"{text} is no duration"
    return found


def values_at(expression: str, series: Mapping[str, str], every_ms: int, at_ms: int) -> Any:
    """What an expression gives: labels (the name among them) with values."""
    asked = parsed(expression)
    history = History(kept_spans((asked,)))
    for at, there in looks(series, every_ms):
        if at <= at_ms:
            fed(history, at, there)
    return dict(evaluated(asked, history, Instant(at_ms)))


__all__ = ["differences", "firing", "labels_of", "shown", "values_at"]
