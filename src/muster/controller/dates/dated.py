"""The backlog of the planner with the dates of the forecaster: one date for each job.

What was forecast takes the place of what the planner reckons from limits, which is there at once
and stands in for it until the forecast has come. A job that somebody holds, or that cannot start
as it is, has no date, whatever was forecast before.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from muster.controller.dates.client import RuledSnapshot, SupposedDates
from muster.model.dates import StartDate
from muster.model.explanation import Alternative, Explanation
from muster.model.job import Job, JobSpec
from muster.model.plan import Backlog, NoEstimate, Prospect, Wait
from muster.model.value import Instant, JobId, replace
from muster.model.words import when

UNDATED = frozenset({NoEstimate.HELD, NoEstimate.NEVER})


class Dates(Protocol):
    """Where the dates of waiting jobs are."""

    def latest(self) -> Mapping[JobId, StartDate]:
        """Those that are known now."""
        ...

    def soon(self, job: JobId, patience_s: float) -> StartDate | None:
        """That of a job that just came, as soon as there is one; None if it does not wait."""
        ...

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        """What would be different in a changed world: the date of this job, or who moves."""
        ...


class NoDates:
    """Where nobody forecasts."""

    def latest(self) -> Mapping[JobId, StartDate]:
        return {}

    def soon(self, job: JobId, patience_s: float) -> StartDate | None:
        del job, patience_s
        return None

    def suppose(
        self, usual: RuledSnapshot, changed: RuledSnapshot, job: JobId | None
    ) -> SupposedDates:
        del usual, changed, job
        return SupposedDates()


class DatedBacklog(Mapping[JobId, Prospect]):
    """Each prospect gets its date when it is looked at: most of a long backlog never is."""

    def __init__(self, backlog: Backlog, dates: Mapping[JobId, StartDate]) -> None:
        self._backlog = backlog
        self._dates = dates

    def __getitem__(self, job: JobId) -> Prospect:
        return dated(self._backlog[job], self._dates.get(job))

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._backlog)

    def __len__(self) -> int:
        return len(self._backlog)


def dated(prospect: Prospect, date: StartDate | None) -> Prospect:
    """With what was forecast, if it may have a date."""
    if date is None or prospect.expected in UNDATED:
        return prospect
    return replace(prospect, expected=date.middle, date=date)


def explained(
    explanation: Explanation, date: StartDate | None, job: Job, now: Instant
) -> Explanation:
    """With what was forecast, for a job that waits; who starts now has no other date."""
    is_waiting = isinstance(explanation.decision, Wait)
    if date is None or not is_waiting or explanation.expected in UNDATED:
        return explanation
    return replace(
        explanation,
        expected=date.middle,
        date=date,
        alternatives=sooner(explanation.alternatives, date, now),
        text=warned(explanation.text, date, job.spec, now),
    )


def sooner(
    alternatives: tuple[Alternative, ...], date: StartDate | None, now: Instant
) -> tuple[Alternative, ...]:
    """Those that help a job with this date: it starts now, or before the range begins."""
    if date is None:
        return alternatives
    return tuple(
        each
        for each in alternatives
        if each.starts_now
        or not isinstance(each.expected, int)
        or now <= each.expected < date.early
    )


def warned(text: str, date: StartDate | None, spec: JobSpec, now: Instant) -> str:
    """What is said of a job, and that it is too late for its deadline if this is to be expected."""
    if date is None or not is_too_late(date, spec):
        return text
    return f"{text} {too_late_text(spec, now)}".lstrip()


def is_too_late(date: StartDate, spec: JobSpec) -> bool:
    """Is it more likely than not to start too late for its deadline?"""
    return spec.deadline is not None and date.middle + (spec.time_limit or 0) > spec.deadline


def too_late_text(spec: JobSpec, now: Instant) -> str:
    """What is expected of a job that is too late."""
    due = "its deadline" if spec.deadline is None else f"its deadline, {when(spec.deadline, now)}"
    return f"It is expected to start too late for {due}."
