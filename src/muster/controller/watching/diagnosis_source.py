"""Metrics of what GPUs' time went into, and of what the dearest findings cost."""

from collections.abc import Iterator

from muster.controller.watching.diagnosing import Diagnosing
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.queue_names import QueueNames
from muster.model.value import MINUTE, Duration, Instant
from muster.telemetry import names
from muster.telemetry.diagnosis.ledger import NOBODY, Row, by
from muster.telemetry.family import Family, Labels, Point

MOST_FINDINGS = 500
"""So many of the dearest findings are series of their own."""

STILL_OPEN = Duration(3 * MINUTE)
"""A cause that was not seen for so long is over."""

_MICROS = 1_000_000


class DiagnosisSource:
    """What became of GPUs, by pool and by queue."""

    def __init__(self, diagnosing: Diagnosing, queue_names: QueueNames, left_out: LeftOut) -> None:
        self._diagnosing = diagnosing
        self._names = queue_names
        self._left_out = left_out

    def __call__(self, now: Instant) -> Iterator[Family]:
        rows = self._diagnosing.rows()
        yield names.POOL_GPU_SECONDS.family(
            Point(labels, time.gpu_seconds) for labels, time in by(rows, _by_pool).items()
        )
        held = {row: time for row, time in rows.items() if row.queue != NOBODY}
        yield names.QUEUE_GPU_SECONDS.family(
            Point(labels, time.gpu_seconds) for labels, time in by(held, self._by_queue).items()
        )
        yield names.GPU_COST.family(self._costs())
        yield names.JOB_FINDING.family(self._findings(now))

    def _by_queue(self, row: Row) -> Labels:
        return (
            ("queue", self._names.name(row.queue)),
            ("pool", row.pool),
            ("use", row.use),
        )

    def _costs(self) -> Iterator[Point]:
        named = self._diagnosing.currency()
        currency = (("currency", named),) if named else ()
        spent: dict[Labels, int] = {}
        for row, micros in self._diagnosing.spent().items():
            queue = "" if row.queue == NOBODY else self._names.name(row.queue)
            labels = (*currency, ("pool", row.pool), ("queue", queue), ("use", row.use))
            spent[labels] = spent.get(labels, 0) + micros
        for labels, micros in spent.items():
            yield Point(labels, micros / _MICROS)

    def _findings(self, now: Instant) -> Iterator[Point]:
        live = (each for each in self._diagnosing.reports() if not each.is_over)
        found = [finding for report in live for finding in report.findings]
        found = [each for each in found if each.until + STILL_OPEN >= now]
        found.sort(key=lambda each: (-each.micros_per_hour, -each.wasted_gpu_milli, each.job))
        if len(found) > MOST_FINDINGS:
            self._left_out.count("findings", len(found) - MOST_FINDINGS)
        for each in found[:MOST_FINDINGS]:
            labels = (
                ("job", str(each.job)),
                ("queue", each.queue),
                ("user", each.user),
                ("cause", each.cause.value),
            )
            money = each.micros_per_hour / _MICROS
            yield Point(labels, money or each.wasted_gpu_milli / 1_000)


def _by_pool(row: Row) -> Labels:
    return (("cluster", row.cluster), ("pool", row.pool), ("use", row.use))
