"""What receivers are told of jobs: from what was committed, and from time that passes.

What is alike is told together: a thousand jobs that fail at once are one message to each receiver.
Nothing is sent here.
"""

from collections.abc import Iterator, Sequence

from muster.controller.alerting.kept import silences_in
from muster.controller.alerting.long_waits import LongWaits
from muster.controller.loop.controller import LastPlan
from muster.controller.world.record import Record
from muster.controller.world.transaction import Change
from muster.model.alerting import JobNews, JobRoute
from muster.model.event import Event, JobEvent
from muster.model.value import Instant, JobId, Value
from muster.stores.base import Batch
from muster.telemetry.alerting.bodies import MOST_TOLD
from muster.telemetry.alerting.job_news import (
    EndWords,
    Happened,
    News,
    addresses,
    alert_of,
    news_of,
    waits_long,
)
from muster.telemetry.alerting.judging import Alert
from muster.telemetry.alerting.muting import Muting, mutes
from muster.telemetry.alerting.routing import GroupKey, Notification


class Knowledge(Value):
    """What is known of jobs beside what is committed. words: how an attempt ended."""

    last_plan: LastPlan
    words: EndWords


class JobNewsSource:
    """Everything once, from the moment at which this process began to lead. For one thread."""

    def __init__(self, record: Record, knowledge: Knowledge) -> None:
        self._record = record
        self._knowledge = knowledge
        self._bundles: dict[GroupKey, _Bundle] = {}
        self._waits = LongWaits()
        self._routes: Sequence[JobRoute] = ()

    def begin(self, now: Instant) -> None:
        """Who has waited too long by now was told of by whoever led before."""
        self._bundles, self._waits, self._routes = {}, LongWaits(), ()
        self.follow_routes(now)
        for _ in self._waits.due(now):
            pass

    def follow_routes(self, now: Instant) -> None:
        """Take those that the rules have now."""
        routes = self._record.site.alerts.jobs
        if routes == self._routes:
            return
        self._routes = routes
        spans = {each.waits for each in routes if JobNews.WAITS_LONG in each.on}
        with self._record.lock:
            jobs = tuple(self._record.jobs.values()) if spans else ()
        self._waits.use(spans, jobs, now)

    def take(self, batch: Batch, changes: tuple[Change, ...], now: Instant) -> None:
        """Something was committed; call it for each, in their order."""
        events: dict[JobId, list[Event]] = {}
        for event in batch.events:
            if isinstance(event, JobEvent):
                events.setdefault(event.job, []).append(event)
        for change in changes:
            job, of_job = change.after, events.get(change.after.id, [])
            self._waits.follow(job, of_job[-1].at if of_job else job.submitted_at)
            happened = Happened(before=change.before, after=job, held=change.held, events=of_job)
            for news in news_of(happened, self._knowledge.words):
                self._add(news, now)

    def due(self, now: Instant) -> Iterator[Notification]:
        """What is to be told by now."""
        for job_id, span in self._waits.due(now):
            job = self._record.jobs.get(job_id)
            if job is not None:
                wait = self._knowledge.last_plan.waits.get(job_id)
                self._add(waits_long(job, wait, span, now), now)
        patience = self._record.site.alerts.wait
        due = [key for key, each in self._bundles.items() if each.began_at + patience <= now]
        muting = Muting(silences=silences_in(self._record) if due else ())
        for key in sorted(due, key=str):
            told = self._bundles.pop(key).told(key, muting, now)
            if told is not None:
                yield told

    def next_at(self) -> Instant | None:
        """When there will be more to tell, if nothing else happens."""
        patience = self._record.site.alerts.wait
        found = [Instant(bundle.began_at + patience) for bundle in self._bundles.values()]
        waits = self._waits.next_at()
        return min(found if waits is None else [*found, waits], default=None)

    def _add(self, news: News, now: Instant) -> None:
        to = addresses(self._routes, news)
        if not to:
            return
        alert = alert_of(news)
        for address in to:
            key = GroupKey(address=address, alert=alert.name, queue=news.job.spec.queue)
            self._bundles.setdefault(key, _Bundle(now)).add(alert)


class _Bundle:
    """What is told together."""

    def __init__(self, began_at: Instant) -> None:
        self.began_at = began_at
        self._alerts: list[Alert] = []
        self._more = 0

    def add(self, alert: Alert) -> None:
        if len(self._alerts) < MOST_TOLD:
            self._alerts.append(alert)
        else:
            self._more += 1

    def told(self, key: GroupKey, muting: Muting, now: Instant) -> Notification | None:
        """The message; None where all of it is silenced."""
        muted = mutes(self._alerts, muting, now)
        loud = tuple(alert for alert in self._alerts if alert not in muted)
        if not loud:
            return None
        return Notification(key=key, alerts=loud, at=now, happened=True, more=self._more)
