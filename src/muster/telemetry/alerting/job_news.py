"""What happens to jobs, for those who are told of it: in the shape of alerts (pure).

So everybody who understands alerts understands it. What happened is never over: where something
must end, it ends a while later.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from muster.model.alerting import OWNER, JobNews, JobRoute, Severity
from muster.model.event import (
    DeadlineMissForeseen,
    Event,
    JobEnded,
    JobPreempted,
    JobRequeued,
    JobStarted,
)
from muster.model.job import FINAL, EndReason, Job, JobState, Preempted
from muster.model.placement import Allocation
from muster.model.plan import Wait
from muster.model.queue import is_within
from muster.model.reason import told
from muster.model.value import MINUTE, Duration, Instant, Value
from muster.model.words import span
from muster.telemetry.alerting.bodies import rfc3339
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.alerting.routing import Address
from muster.telemetry.promql.labels import series_name

LASTS: Final = Duration(5 * MINUTE)
"""An Alertmanager takes it for over after that."""

EndWords = Callable[[EndReason], str]
"""How an attempt came to its end, in a sentence."""


class News(Value):
    """One thing that happened to a job, which is as it was right after.

    waits: for WAITS_LONG, after how long it is told.
    """

    on: JobNews
    job: Job
    at: Instant
    text: str
    why: str = ""
    waits: Duration | None = None


class Happened(Value):
    """A job before and after a commit, what it held before, and what the commit says of it."""

    before: Job | None
    after: Job
    held: Allocation | None
    events: Sequence[Event]


def news_of(happened: Happened, words: EndWords) -> Iterator[News]:
    """All that somebody may want to be told of, in the order in which it happened."""
    held = happened.held
    for event in happened.events:
        # A controller that takes over sees once more that it runs.
        if isinstance(event, JobStarted) and held is not None and held.started_at is None:
            yield _started(happened.after, event)
        elif isinstance(event, JobPreempted):
            why = Preempted(by=event.by, mode=event.mode)
            yield _ended_for(JobNews.PREEMPTED, happened.after, event.at, words, why)
        elif isinstance(event, DeadlineMissForeseen):
            yield _too_late(happened.after, event)
    yield from _ending(happened, words)


def waits_long(job: Job, wait: Wait | None, waits: Duration, now: Instant) -> News:
    """It has waited for that long. wait: why, as far as that is known."""
    reason = "" if wait is None else f": {told(wait.why, job.spec, now, {})}"
    return News(
        on=JobNews.WAITS_LONG,
        job=job,
        at=now,
        text=f"It has waited for {span(waits)}{reason}",
        why="" if wait is None else _tag(wait.why),
        waits=waits,
    )


def addresses(routes: Sequence[JobRoute], news: News) -> frozenset[Address]:
    """Who is told."""
    found: set[Address] = set()
    for route in routes:
        if _fits(route, news):
            found |= {Address(receiver=name) for name in route.receivers}
            if route.owner:
                found.add(Address(receiver=OWNER, user=_mail_of(news.job)))
    return frozenset(found)


def alert_of(news: News) -> Alert:
    """The same as everybody who is told of alerts understands it."""
    job, name = news.job, news.job.spec.name
    called = f"job {job.label} ({name})" if name else f"job {job.label}"
    labels = {
        "alertname": alert_name(news.on),
        "job": job.label,
        "attempt": str(job.attempt),
        "user": str(job.spec.user),
        "queue": str(job.spec.queue),
        "severity": str(_SEVERITIES.get(news.on, Severity.INFO)),
        "reason": news.why,
    }
    look = "explain" if news.on in _STILL_WAITS else "diagnose" if news.on in _OVER else "show"
    annotations = {
        "summary": f"{called} of {job.spec.user} {_VERBS[news.on]}",
        "description": f"{called} of {job.spec.user} {_VERBS[news.on]}. {news.text}",
        "muster": f"muster {look} {job.label}",
    }
    return Alert(
        labels=series_name({key: value for key, value in labels.items() if value}),
        annotations=tuple(annotations.items()),
        value=1,
        state=AlertState.FIRING,
        since=news.at,
        fired_at=news.at,
        over_at=Instant(news.at + LASTS),
    )


def alert_name(on: JobNews) -> str:
    """`JobFailed`, `JobWaitsLong`."""
    return "Job" + "".join(word.capitalize() for word in on.value.split("_"))


_VERBS: Final = {
    JobNews.STARTED: "began to run",
    JobNews.COMPLETED: "completed",
    JobNews.FAILED: "failed",
    JobNews.CANCELLED: "was cancelled",
    JobNews.PREEMPTED: "is preempted",
    JobNews.REQUEUED: "waits for another attempt",
    JobNews.WAITS_LONG: "waits long",
    JobNews.MISSES_DEADLINE: "will miss its deadline",
}

_SEVERITIES: Final = {
    JobNews.FAILED: Severity.WARNING,
    JobNews.REQUEUED: Severity.WARNING,
    JobNews.WAITS_LONG: Severity.WARNING,
    JobNews.MISSES_DEADLINE: Severity.WARNING,
}

_OVER: Final = frozenset({JobNews.FAILED, JobNews.REQUEUED})
_STILL_WAITS: Final = frozenset({JobNews.WAITS_LONG, JobNews.MISSES_DEADLINE})


def _started(job: Job, event: JobStarted) -> News:
    text = f"It had waited for {span(max(0, event.at - job.submitted_at))}."
    return News(on=JobNews.STARTED, job=job, at=event.at, text=text)


def _too_late(job: Job, event: DeadlineMissForeseen) -> News:
    return News(
        on=JobNews.MISSES_DEADLINE,
        job=job,
        at=event.at,
        text=f"It is expected to start at {rfc3339(event.starts_at)}, and must end by"
        f" {rfc3339(event.deadline)}.",
    )


def _ending(happened: Happened, words: EndWords) -> Iterator[News]:
    """That it is over, or that its attempt is."""
    job, before = happened.after, happened.before
    at = max((event.at for event in happened.events), default=job.submitted_at)
    why = job.ended_for
    if isinstance(why, Preempted):
        # Told when it was preempted.
        return
    if job.state in FINAL:
        if before is None or before.state not in FINAL:
            yield _ended_for(_ENDS[job.state], job, at, words, why)
    elif any(isinstance(event, JobEnded | JobRequeued) for event in happened.events):
        yield _ended_for(JobNews.REQUEUED, job, at, words, why)


_ENDS: Final = {
    JobState.COMPLETED: JobNews.COMPLETED,
    JobState.FAILED: JobNews.FAILED,
    JobState.CANCELLED: JobNews.CANCELLED,
}


def _ended_for(on: JobNews, job: Job, at: Instant, words: EndWords, why: EndReason | None) -> News:
    return News(
        on=on,
        job=job,
        at=at,
        text="" if why is None else words(why),
        why="" if why is None else _tag(why),
    )


def _tag(reason: Value) -> str:
    return str(reason.__struct_config__.tag)


def _fits(route: JobRoute, news: News) -> bool:
    spec = news.job.spec
    return (
        news.on in route.on
        and (route.queue is None or is_within(spec.queue, route.queue))
        and (not route.users or spec.user in route.users)
        and (news.waits is None or news.waits == route.waits)
    )


def _mail_of(job: Job) -> str:
    return job.spec.mail.to or job.spec.user
