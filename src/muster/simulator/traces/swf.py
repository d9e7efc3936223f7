"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for none.

A processor is one task with one core.
"""

from collections.abc import Iterable, Iterator

from muster.model.value import Duration
from muster.simulator.traces.moments import instant_s, span_s
from muster.simulator.traces.traced import Outcome, TracedJob

_OUTCOMES = {"0": Outcome.FAILED, "5": Outcome.CANCELLED}
_NONE = "-1"
_FIELDS = 18


def jobs(text: Iterable[str]) -> Iterator[TracedJob]:
    """The jobs; lines that begin with ; are remarks."""
    for line in text:
        fields = line.split()
        if len(fields) == _FIELDS and not line.lstrip().startswith(";"):
            yield _job(fields)


def _job(fields: list[str]) -> TracedJob:
    number, submitted, waited, ran, used = fields[:5]
    asked, asked_s, asked_kib, status, user = fields[7:12]
    submitted_at = instant_s(submitted)
    return TracedJob(
        name=number,
        submitted_at=submitted_at,
        duration=None if ran == _NONE else span_s(ran),
        tasks=max(1, int(used if asked == _NONE else asked)),
        cpu_milli=1_000,
        memory_mib=max(0, int(float(asked_kib))) // 1_024,
        user=user,
        queue=fields[14],
        outcome=_OUTCOMES.get(status, Outcome.COMPLETED),
        started_at=None if waited == _NONE else instant_s(str(float(submitted) + float(waited))),
        limit=None if asked_s == _NONE else Duration(span_s(asked_s)),
    )
