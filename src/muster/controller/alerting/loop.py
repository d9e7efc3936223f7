"""Judges the rules after every look at the clusters, and hands over what is to be told."""

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from threading import Condition, Thread
from typing import Final

from muster.controller.alerting.board import AlertBoard, Standing, standing_of
from muster.controller.alerting.delivery import Message
from muster.controller.alerting.kept import RULES_KEY, rules_text, silences_in
from muster.controller.alerting.outbox import Outbox
from muster.controller.alerting.telling import message_of, receivers_of
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.model.alerting import Alerting
from muster.model.value import Duration, Instant, replace
from muster.telemetry.alerting.bodies import alertmanager_bodies
from muster.telemetry.alerting.judging import AlertState, Judge, Judgement
from muster.telemetry.alerting.muting import Muting, mutes
from muster.telemetry.alerting.reading import BadRulesError, rule_groups
from muster.telemetry.alerting.reasons import with_reasons
from muster.telemetry.alerting.routing import Router, for_alertmanagers
from muster.telemetry.alerting.rules import RuleGroup
from muster.telemetry.family import Family
from muster.telemetry.look import Look

log = logging.getLogger("muster.alerts")

CLOSING_PATIENCE_S: Final = 5.0
HOLDERS: Final = "muster_device_job_info"

Families = Callable[[Instant], Iterable[Family]]


def shipped_rules() -> str:
    """The rules that come with Muster."""
    return (resources.files("muster.telemetry") / "rules/muster.rules.yml").read_text("utf-8")


class AlertLoop:
    """One thread of the leader. `evaluate` is one turn; tests call it with their own time."""

    def __init__(
        self, record: Record, families: Families, board: AlertBoard, outbox: Outbox
    ) -> None:
        self._record = record
        self._families = families
        self._board = board
        self._outbox = outbox
        self._router = Router(Alerting())
        self._judge = Judge(())
        self._rules: tuple[str, bool] | None = None
        self._rule_problems: tuple[str, ...] = ()
        self._changed = Condition()
        self._look: Look | None = None
        self._leads = False
        self._is_closing = False
        self._thread = Thread(target=self._run, name="alerts", daemon=True)

    def note(self, look: Look) -> None:
        """The watcher looked; if the last turn is not over yet, only the newest look counts."""
        with self._changed:
            self._look = look
            self._changed.notify()

    def begin(self, transaction: Transaction) -> None:  # noqa: ARG002 - as companions are
        """This process leads from now on."""
        with self._changed:
            if self._thread.ident is None:
                self._thread.start()
            self._leads = True

    def rest(self) -> None:
        """Another process leads, and judges."""
        with self._changed:
            self._leads = False
            self._look = None
            self._rules = None
            self._judge = Judge(())
            self._board.standing = Standing()

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_PATIENCE_S)
        self._outbox.close()

    def evaluate(self, now: Instant, resend: Duration) -> None:
        """Judge, tell, and show."""
        self._follow_rules()
        alerting = self._record.site.alerts
        self._outbox.use(receivers_of(alerting))
        self._router.use(alerting)
        families = tuple(self._families(now))
        found = self._judge.look(families, now)
        found = replace(found, alerts=with_reasons(found.alerts, families))
        muted = mutes(found.alerts, self._muting(families), now)
        for told in self._router.due(found.alerts, now, muted):
            self._outbox.put(message_of(told, alerting))
        loud = [alert for alert in found.alerts if alert not in muted]
        for name, alerts in for_alertmanagers(alerting, loud).items():
            if alerts:
                bodies = alertmanager_bodies(alerts, now, resend)
                self._outbox.replace(name, [Message(receiver=name, body=body) for body in bodies])
        self._board.standing = standing_of(found, muted, self._problems(found))

    def families(self, now: Instant) -> Iterable[Family]:
        """How receivers were told: a source of metrics."""
        del now
        return self._outbox.families()

    def _run(self) -> None:
        while (look := self._next()) is not None:
            try:
                self.evaluate(look.at, look.interval)
            except Exception:
                log.exception("a mistake in judging alerts")

    def _next(self) -> Look | None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closing or (self._leads and self._look is not None)
            )
            look, self._look = self._look, None
            return None if self._is_closing else look

    def _follow_rules(self) -> None:
        """Take new rules when they were applied; what goes on goes on."""
        with self._record.lock:
            wanted = (
                rules_text(self._record.objects.get(RULES_KEY)),
                self._record.site.alerts.rules,
            )
        if wanted == self._rules:
            return
        self._rules, self._rule_problems = wanted, ()
        text, ships = wanted
        groups = (*(self._read(shipped_rules()) if ships else ()), *self._read(text))
        judge = Judge(groups)
        judge.take_over(self._judge)
        self._judge = judge

    def _read(self, text: str) -> tuple[RuleGroup, ...]:
        if not text:
            return ()
        try:
            return rule_groups(text)
        except BadRulesError as bad:
            # Refused when they are applied; these were applied to a Muster that knew more.
            self._rule_problems += tuple(f"rules: {fault}" for fault in bad.faults)
            return ()

    def _muting(self, families: Iterable[Family]) -> Muting:
        return Muting(silences=silences_in(self._record), devices=_held_devices(families))

    def _problems(self, found: Judgement) -> tuple[str, ...]:
        failures = tuple(f"rule {each.rule}: {each.text}" for each in found.failures)
        return (*self._rule_problems, *failures, *self._outbox.problems())


def firing(standing: Standing) -> int:
    """How many alerts fire that nobody silenced."""
    return sum(
        alert.state is AlertState.FIRING and alert not in standing.mutes
        for alert in standing.alerts
    )


def _held_devices(families: Iterable[Family]) -> Mapping[str, frozenset[str]]:
    """Which devices each job holds, from the metric that joins them."""
    found: dict[str, set[str]] = {}
    for family in families:
        for point in family.points if family.name == HOLDERS else ():
            labels = dict(point.labels)
            found.setdefault(labels.get("job", ""), set()).add(labels.get("UUID", ""))
    return {job: frozenset(devices) for job, devices in found.items()}
