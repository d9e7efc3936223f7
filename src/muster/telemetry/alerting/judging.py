"""Which alerts there are now: rules over the history, pending until they held for long enough."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from muster.model.value import MINUTE, Duration, Instant, Value, replace
from muster.telemetry.alerting.rules import AlertRule, Recording, Rule, RuleGroup
from muster.telemetry.family import Family, Labels
from muster.telemetry.promql.bad import BadEvaluationError
from muster.telemetry.promql.evaluate import evaluated
from muster.telemetry.promql.history import History, kept_spans
from muster.telemetry.promql.labels import NAME, SeriesName, Vector, series_name

RESOLVED_FOR: Final = Duration(15 * MINUTE)
"""How long an alert that is over is still told of."""

ITS_JOB: Final = "muster"
"""What Prometheus would write into the label `job` of everything that it reads from us."""


class AlertState(StrEnum):
    """PENDING: it holds, and not for long enough yet."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Alert(Value):
    """One answer of one rule. labels: its identity, the alert's name among them.

    since: when it began to hold. fired_at, over_at: None as long as that has not happened.
    """

    labels: SeriesName
    annotations: tuple[tuple[str, str], ...]
    value: float
    state: AlertState
    since: Instant
    fired_at: Instant | None = None
    kept_since: Instant | None = None
    over_at: Instant | None = None

    @property
    def name(self) -> str:
        return self.label("alertname")

    def label(self, name: str) -> str:
        return dict(self.labels).get(name, "")

    def annotation(self, name: str) -> str:
        return dict(self.annotations).get(name, "")


class Failure(Value):
    """A rule that could not be evaluated; its alerts stay as they were."""

    rule: str
    text: str


class Judgement(Value):
    """What one evaluation found."""

    at: Instant
    alerts: tuple[Alert, ...]
    failures: tuple[Failure, ...] = ()


_Place = tuple[str, int]
"""A rule's group, and which of its rules it is."""


class Judge:
    """Keeps the history that the rules ask for, and what became of each alert."""

    def __init__(self, groups: Iterable[RuleGroup], *, every_time: bool = False) -> None:
        """every_time: groups with an interval of their own are evaluated with the others."""
        self._groups = tuple(groups)
        self._every_time = every_time
        rules = [rule for group in self._groups for rule in group.rules]
        spans = kept_spans(rule.of for rule in rules)
        self.history = History(spans)
        self._alerts: dict[_Place, dict[SeriesName, Alert]] = {}
        self._written: dict[_Place, frozenset[tuple[str, SeriesName]]] = {}
        self._evaluated_at: dict[str, Instant] = {}

    def look(self, families: Iterable[Family], now: Instant) -> Judgement:
        """Take these values, and say which alerts follow."""
        self._note(families, now)
        return self.judge(now)

    def judge(self, now: Instant) -> Judgement:
        """Evaluate with what the history has."""
        failures: list[Failure] = []
        for group in self._groups:
            if self._is_due(group, now):
                failures.extend(self._evaluate(group, now))
        alerts = tuple(each for of_rule in self._alerts.values() for each in of_rule.values())
        ordered = tuple(sorted(alerts, key=lambda each: (each.name, each.labels)))
        return Judgement(at=now, alerts=ordered, failures=tuple(failures))

    def take_over(self, before: "Judge") -> None:
        """Go on with what another had: its history, and the alerts of rules that are the same."""
        self.history.take_over(before.history)
        old = {
            (group.name, rule): before._alerts.get((group.name, number), {})
            for group in before._groups
            for number, rule in enumerate(group.rules)
        }
        for group in self._groups:
            for number, rule in enumerate(group.rules):
                self._alerts[group.name, number] = old.get((group.name, rule), {})

    def _note(self, families: Iterable[Family], now: Instant) -> None:
        self.history.begin(now)
        points: dict[str, list[tuple[Mapping[str, str], float]]] = {
            name: [] for name in self.history.names
        }
        for family in families:
            for point in family.points:
                kept = points.get(family.name + point.suffix)
                if kept is not None:
                    kept.append((_scraped(point.labels), float(point.value)))
        for name, found in points.items():
            self.history.append(now, name, found)

    def _is_due(self, group: RuleGroup, now: Instant) -> bool:
        if self._every_time:
            return True
        last = self._evaluated_at.get(group.name)
        # Half a second: loops are never quite on time.
        return last is None or now < last or now - last >= group.interval_ms - 500

    def _evaluate(self, group: RuleGroup, now: Instant) -> Iterator[Failure]:
        self._evaluated_at[group.name] = now
        for number, rule in enumerate(group.rules):
            place = (group.name, number)
            try:
                found = evaluated(rule.of, self.history, now)
                if group.limit and len(found) > group.limit:
                    text = f"{len(found)} answers, and its group allows {group.limit}"
                    raise BadEvaluationError(text)
                self._write(place, self._follow(place, rule, found, now), now)
            except BadEvaluationError as bad:
                yield Failure(rule=rule.name, text=str(bad))

    def _follow(
        self, place: _Place, rule: Rule, found: Vector, now: Instant
    ) -> list[tuple[SeriesName, float]]:
        """The series that the rule itself makes: a recording's, or how alerts stand."""
        match rule:
            case Recording():
                return _recorded(rule, found)
            case AlertRule():
                before = self._alerts.get(place, {})
                after = _followed(rule, before, _answers(rule, found, now), now)
                self._alerts[place] = after
                return list(_alert_series(after.values()))

    def _write(self, place: _Place, made: list[tuple[SeriesName, float]], now: Instant) -> None:
        there: set[tuple[str, SeriesName]] = set()
        for name, value in made:
            labels = dict(name)
            metric = labels.pop(NAME)
            if metric in self.history.names:
                self.history.add(now, metric, labels, value)
                there.add((metric, series_name(labels)))
        for metric, labels in self._written.get(place, frozenset()) - there:
            self.history.end(now, metric, dict(labels))
        self._written[place] = frozenset(there)


def _scraped(labels: Labels) -> dict[str, str]:
    """With what Prometheus would have added; of a device, its machine stands for the address."""
    found = dict(labels)
    added = {"job": ITS_JOB, "instance": found.get("Hostname") or found.get("node") or ITS_JOB}
    return {**added, **found}


def _recorded(rule: Recording, found: Vector) -> list[tuple[SeriesName, float]]:
    made: dict[SeriesName, float] = {}
    for name, value in found:
        labels = series_name({**dict(name), **dict(rule.labels), NAME: rule.name})
        if labels in made:
            raise BadEvaluationError("several answers would be recorded as one series")
        made[labels] = value
    return list(made.items())


def _answers(rule: AlertRule, found: Vector, now: Instant) -> dict[SeriesName, Alert]:
    answers: dict[SeriesName, Alert] = {}
    for name, value in found:
        alert = _alert(rule, name, value, now)
        if alert.labels in answers:
            raise BadEvaluationError("several answers would be the same alert")
        answers[alert.labels] = alert
    return answers


def _alert(rule: AlertRule, name: SeriesName, value: float, now: Instant) -> Alert:
    seen = dict(name)
    labels = {label: text for label, text in seen.items() if label != NAME}
    labels |= {label: each.expanded(seen, value) for label, each in rule.labels}
    labels["alertname"] = rule.name
    said = tuple((label, each.expanded(seen, value)) for label, each in rule.annotations)
    return Alert(
        labels=series_name(labels),
        annotations=said,
        value=value,
        state=AlertState.PENDING,
        since=now,
    )


def _followed(
    rule: AlertRule,
    before: Mapping[SeriesName, Alert],
    answers: Mapping[SeriesName, Alert],
    now: Instant,
) -> dict[SeriesName, Alert]:
    """Each alert as it stands after this evaluation."""
    after: dict[SeriesName, Alert] = {}
    for labels, alert in before.items():
        answer = answers.get(labels)
        went = _gone_on(rule, alert, now) if answer is None else _held_on(rule, alert, answer, now)
        if went is not None:
            after[labels] = went
    for labels, answer in answers.items():
        if labels not in before:
            after[labels] = _risen(rule, answer, now)
    return after


def _held_on(rule: AlertRule, alert: Alert, answer: Alert, now: Instant) -> Alert:
    if alert.state is AlertState.RESOLVED:
        return _risen(rule, answer, now)
    same = replace(alert, value=answer.value, annotations=answer.annotations, kept_since=None)
    return _risen(rule, same, now)


def _risen(rule: AlertRule, alert: Alert, now: Instant) -> Alert:
    if alert.state is AlertState.PENDING and now - alert.since >= rule.for_ms:
        return replace(alert, state=AlertState.FIRING, fired_at=now)
    return alert


def _gone_on(rule: AlertRule, alert: Alert, now: Instant) -> Alert | None:
    """It does not hold any more."""
    match alert.state:
        case AlertState.PENDING:
            return None
        case AlertState.RESOLVED:
            return alert if now - (alert.over_at or now) <= RESOLVED_FOR else None
        case AlertState.FIRING:
            kept_since = alert.kept_since if alert.kept_since is not None else now
            if now - kept_since < rule.keep_ms:
                return replace(alert, kept_since=kept_since)
            return replace(alert, state=AlertState.RESOLVED, over_at=now)


def _alert_series(alerts: Iterable[Alert]) -> Iterator[tuple[SeriesName, float]]:
    """`ALERTS` and `ALERTS_FOR_STATE`, which other rules may ask for."""
    for alert in alerts:
        if alert.state is AlertState.RESOLVED:
            continue
        labels = dict(alert.labels)
        state = {NAME: "ALERTS", "alertstate": alert.state.value}
        yield series_name({**labels, **state}), 1.0
        yield series_name({**labels, NAME: "ALERTS_FOR_STATE"}), alert.since / 1000
