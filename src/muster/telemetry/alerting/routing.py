"""Who is told of what, and when: alerts in groups, once, again when they change, and at the end."""

from collections.abc import Container, Iterable, Iterator, Mapping

from muster.model.alerting import OWNER, Alerting, ReceiverKind, Route
from muster.model.value import Instant, Value, replace
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.promql.labels import SeriesName


class Address(Value):
    """A receiver by its name. user: whom mail goes to, where it is the owner of a job."""

    receiver: str
    user: str = ""


class GroupKey(Value):
    """What is told together: alerts of one name in one queue."""

    address: Address
    alert: str
    queue: str

    def __str__(self) -> str:
        return f'{self.address.receiver}:{{alertname="{self.alert}", queue="{self.queue}"}}'


class Notification(Value):
    """One message: all that fires in a group, and what of it is over since the last message.

    happened: it tells what happened to jobs, which neither fires nor is over.
    more: how many alike are not in it.
    """

    key: GroupKey
    alerts: tuple[Alert, ...]
    at: Instant
    happened: bool = False
    more: int = 0

    @property
    def is_over(self) -> bool:
        return all(alert.state is AlertState.RESOLVED for alert in self.alerts)


class _Group:
    """What was told of a group, and when."""

    def __init__(self, now: Instant) -> None:
        self.began_at = now
        self.told_at: Instant | None = None
        self.told: Mapping[SeriesName, Alert] = {}


_Firing = Mapping[SeriesName, Alert]


class Router:
    """Remembers what was told to whom."""

    def __init__(self, alerting: Alerting) -> None:
        self.alerting = alerting
        self._groups: dict[GroupKey, _Group] = {}

    def due(
        self, alerts: Iterable[Alert], now: Instant, muted: Container[Alert] = ()
    ) -> tuple[Notification, ...]:
        """The messages that are to be sent now; they count as sent.

        alerts: all of them. muted: those that nobody is told of; that is not the end of them.
        """
        grouped = self._grouped(alerts)
        found: list[Notification] = []
        for key in sorted({*self._groups, *grouped}, key=str):
            there = grouped.get(key, {})
            loud = {labels: each for labels, each in there.items() if each not in muted}
            if loud:
                self._groups.setdefault(key, _Group(now))
            if key in self._groups:
                found.extend(self._told(key, loud, there, now))
        self._groups = {
            key: group for key, group in self._groups.items() if key in grouped or group.told
        }
        return tuple(found)

    def use(self, alerting: Alerting) -> None:
        """Other receivers and routes from now on; what was told stays told."""
        self.alerting = alerting

    def _grouped(self, alerts: Iterable[Alert]) -> dict[GroupKey, dict[SeriesName, Alert]]:
        """What fires, by group."""
        grouped: dict[GroupKey, dict[SeriesName, Alert]] = {}
        for alert in alerts:
            if alert.state is not AlertState.FIRING:
                continue
            for address in sorted(self._addresses(alert), key=str):
                key = GroupKey(address=address, alert=alert.name, queue=alert.label("queue"))
                grouped.setdefault(key, {})[alert.labels] = alert
        return grouped

    def _addresses(self, alert: Alert) -> set[Address]:
        if alert.label("pretend") == "true" and not self.alerting.pretend:
            return set()
        found: set[Address] = set()
        for route in self.alerting.routes:
            if fits(route, alert):
                found |= {Address(receiver=name) for name in self._grouping(route)}
                if route.owner and alert.label("user"):
                    found.add(Address(receiver=OWNER, user=alert.label("user")))
        return found

    def _grouping(self, route: Route) -> Iterator[str]:
        """Receivers that are told of groups; an Alertmanager makes its own."""
        for name in route.receivers:
            receiver = self.alerting.receivers.get(name)
            if receiver is not None and receiver.kind is not ReceiverKind.ALERTMANAGER:
                yield name

    def _told(
        self, key: GroupKey, loud: _Firing, there: _Firing, now: Instant
    ) -> Iterator[Notification]:
        """The message about this group, if there is one now. there: what fires, muted or not."""
        group = self._groups[key]
        kept = {labels: was for labels, was in group.told.items() if labels in there}
        over = [was for labels, was in group.told.items() if labels not in there]
        news = loud.keys() - group.told.keys()
        if not self._is_time(group, now, loud=bool(loud), changed=bool(news or over)):
            return
        group.told, group.told_at = {**kept, **loud}, now
        alerts = (*loud.values(), *(_over(was, now) for was in over))
        ordered = tuple(sorted(alerts, key=lambda each: (each.state.value, each.labels)))
        yield Notification(key=key, alerts=ordered, at=now)

    def _is_time(self, group: _Group, now: Instant, *, loud: bool, changed: bool) -> bool:
        if group.told_at is None:
            return loud and now - group.began_at >= self.alerting.wait
        since = now - group.told_at
        if changed:
            # That all is over is good news, and needs no company.
            return since >= self.alerting.changes or not loud
        return loud and since >= self.alerting.repeat


def fits(route: Route, alert: Alert) -> bool:
    """Does this route take the alert?"""
    if route.severities and alert.label("severity") not in {
        each.value for each in route.severities
    }:
        return False
    if route.alerts and alert.name not in route.alerts:
        return False
    queue = alert.label("queue")
    return route.queue is None or queue == route.queue or queue.startswith(f"{route.queue}/")


def for_alertmanagers(alerting: Alerting, alerts: Iterable[Alert]) -> dict[str, tuple[Alert, ...]]:
    """What each Alertmanager is told, every time: all that fires and all that is over."""
    told = [
        alert
        for alert in alerts
        if alert.state is not AlertState.PENDING
        and (alerting.pretend or alert.label("pretend") != "true")
    ]
    found: dict[str, tuple[Alert, ...]] = {}
    for name, receiver in sorted(alerting.receivers.items()):
        if receiver.kind is ReceiverKind.ALERTMANAGER:
            routes = [route for route in alerting.routes if name in route.receivers]
            found[name] = tuple(
                alert for alert in told if any(fits(route, alert) for route in routes)
            )
    return found


def _over(alert: Alert, now: Instant) -> Alert:
    return replace(alert, state=AlertState.RESOLVED, over_at=now)
