"""Why alerts about queues are: what most of their jobs wait for, which jobs cost most (pure).

Rules name a queue and a number. Reasons and jobs change from look to look; as labels they would
make another alert of it each time, so they are written beside the other texts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from muster.model.value import replace
from muster.telemetry.alerting.judging import Alert
from muster.telemetry.family import Family

WHY: Final = "why"
"""The annotation."""

MOST_NAMED: Final = 3

_Points = tuple[tuple[Mapping[str, str], float], ...]


def with_reasons(alerts: Iterable[Alert], families: Iterable[Family]) -> tuple[Alert, ...]:
    """The same alerts; those of which more is known say so."""
    points: dict[str, _Points] = {
        family.name: tuple((dict(point.labels), point.value) for point in family.points)
        for family in families
        if family.name in {_WAITING, _FINDING}
    }
    return tuple(_with_reason(alert, points) for alert in alerts)


def _with_reason(alert: Alert, points: Mapping[str, _Points]) -> Alert:
    asked = _ASKED.get(alert.name)
    queue = alert.label("queue")
    if asked is None or not queue:
        return alert
    metric, told = asked
    own = tuple(each for each in points.get(metric, ()) if _is_in(each[0].get("queue", ""), queue))
    why = told(own)
    return replace(alert, annotations=(*alert.annotations, (WHY, why))) if why else alert


def _is_in(queue: str, root: str) -> bool:
    return queue == root or queue.startswith(f"{root}/")


def _most_wait_for(points: _Points) -> str:
    reasons: Counter[str] = Counter()
    for labels, value in points:
        reasons[labels.get("reason", "")] += int(value)
    if not sum(reasons.values()):
        return ""
    reason = min(reasons, key=lambda each: (-reasons[each], each))
    return f"{reasons[reason]} of {sum(reasons.values())} waiting jobs wait for: {reason}"


def _dearest(points: _Points) -> str:
    dearest = sorted(points, key=lambda each: (-each[1], each[0].get("job", "")))[:MOST_NAMED]
    named = [
        f"job {labels.get('job')} ({labels.get('cause')}, {value:.2f} an hour)"
        for labels, value in dearest
    ]
    return f"dearest now: {', '.join(named)}" if named else ""


_WAITING: Final = "muster_jobs_waiting"
_FINDING: Final = "muster_job_finding"

_ASKED: Mapping[str, tuple[str, Callable[[_Points], str]]] = {
    "QueueWaitLong": (_WAITING, _most_wait_for),
    "QueueBelowGuarantee": (_WAITING, _most_wait_for),
    "QueueWastesMoney": (_FINDING, _dearest),
}
"""By alert: the metric that knows why, and what is told of it."""
