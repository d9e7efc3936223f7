"""Judges the rules after every look at the clusters, and hands over what is to be told."""

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from threading import Condition, Thread
from typing import Final

from muster.controller.alerting.board import AlertBoard, Standing, standing_of
from muster.controller.alerting.delivery import Message
from muster.controller.alerting.kept import RULES_KEY, SILENCES, rules_text, silences_of
from muster.controller.alerting.outbox import Outbox
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.model.alerting import OWNER, Alerting, Receiver, ReceiverKind, Silence
from muster.model.value import Duration, Instant, replace
from muster.telemetry.alerting.bodies import (
    alertmanager_bodies,
    mail_text,
    slack_body,
    teams_body,
    webhook_body,
)
from muster.telemetry.alerting.judging import AlertState, Judge, Judgement
from muster.telemetry.alerting.muting import Muting, mutes
from muster.telemetry.alerting.reading import BadRulesError, rule_groups
from muster.telemetry.alerting.reasons import with_reasons
from muster.telemetry.alerting.routing import Notification, Router, for_alertmanagers
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
        self._outbox.use(_receivers(alerting))
        self._router.use(alerting)
        families = tuple(self._families(now))
        found = self._judge.look(families, now)
        found = replace(found, alerts=with_reasons(found.alerts, families))
        muted = mutes(found.alerts, self._muting(families), now)
        for told in self._router.due(found.alerts, now, muted):
            self._tell(alerting, told)
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
        return Muting(silences=self._silences(), devices=_held_devices(families))

    def _silences(self) -> tuple[Silence, ...]:
        with self._record.lock:
            kept = [each for key, each in self._record.objects.items() if key.shelf == SILENCES]
        return silences_of(kept)

    def _tell(self, alerting: Alerting, told: Notification) -> None:
        address = told.key.address
        if address.receiver == OWNER:
            self._outbox.put(_mail(told, address.user))
            return
        receiver = alerting.receivers[address.receiver]
        match receiver.kind:
            case ReceiverKind.MAIL:
                self._outbox.put(_mail(told, receiver.to))
            case ReceiverKind.SLACK:
                self._outbox.put(Message(receiver=receiver.name, body=slack_body(told)))
            case ReceiverKind.TEAMS:
                self._outbox.put(Message(receiver=receiver.name, body=teams_body(told)))
            case ReceiverKind.WEBHOOK | ReceiverKind.COMMAND | ReceiverKind.ALERTMANAGER:
                self._outbox.put(Message(receiver=receiver.name, body=webhook_body(told)))

    def _problems(self, found: Judgement) -> tuple[str, ...]:
        failures = tuple(f"rule {each.rule}: {each.text}" for each in found.failures)
        return (*self._rule_problems, *failures, *self._outbox.problems())


def firing(standing: Standing) -> int:
    """How many alerts fire that nobody silenced."""
    return sum(
        alert.state is AlertState.FIRING and alert not in standing.mutes
        for alert in standing.alerts
    )


def _receivers(alerting: Alerting) -> tuple[Receiver, ...]:
    """Those of the file, and the owners of jobs where a route names them."""
    owner = Receiver(name=OWNER, kind=ReceiverKind.MAIL)
    owners = (owner,) if any(route.owner for route in alerting.routes) else ()
    return (*alerting.receivers.values(), *owners)


def _mail(told: Notification, to: str) -> Message:
    text = mail_text(told)
    receiver = told.key.address.receiver
    return Message(receiver=receiver, mail_to=to, subject=text.subject, text=text.body)


def _held_devices(families: Iterable[Family]) -> Mapping[str, frozenset[str]]:
    """Which devices each job holds, from the metric that joins them."""
    found: dict[str, set[str]] = {}
    for family in families:
        for point in family.points if family.name == HOLDERS else ():
            labels = dict(point.labels)
            found.setdefault(labels.get("job", ""), set()).add(labels.get("UUID", ""))
    return {job: frozenset(devices) for job, devices in found.items()}
