"""What was judged is kept by a thread that nobody waits for, whatever becomes of its store."""

import logging
from pathlib import Path
from threading import Event

import pytest

from muster.controller.watching import keeping as module
from muster.controller.watching.keeping import Keeping
from muster.controller.watching.left_out import LeftOut
from muster.model.efficiency import JobReport
from muster.model.errors import StoreFullError
from muster.model.value import ClusterName, Instant, JobId, PoolName, QueuePath, UserName
from muster.stores.measured.base import Settled
from muster.stores.measured.memory import MemoryMeasured
from muster.stores.measured.sqlite import SqliteMeasured

REPORT = JobReport(
    job=JobId(17),
    attempt=1,
    user=UserName("ada"),
    queue=QueuePath("acme"),
    cluster=ClusterName("a"),
    pool=PoolName("h100"),
    since=Instant(0),
    until=Instant(600_000),
)


class Troubled(MemoryMeasured):
    """A store that stands still until it is let go on, and then has no room."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = Event()
        self.has_room = False

    def keep(self, settled: Settled) -> None:
        self.goes_on.wait(30)
        if not self.has_room:
            raise StoreFullError("telemetry.db")
        super().keep(settled)


def left_out(counted: LeftOut) -> float:
    (family,) = counted(Instant(0))
    return next(each.value for each in family.points if each.labels == (("what", "measured"),))


def now() -> Instant:
    return Instant(600_000)


def test_what_is_put_is_kept(tmp_path: Path) -> None:
    store = SqliteMeasured(tmp_path / "telemetry.db")
    keeping = Keeping(store, LeftOut(), now)

    keeping.put(Settled(reports=(REPORT,)))
    keeping.close()

    assert store.report(JobId(17)) == REPORT


def test_a_store_without_room_loses_what_was_measured_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, counted = Troubled(), LeftOut()
    store.goes_on.set()
    keeping = Keeping(store, counted, now)

    with caplog.at_level(logging.ERROR):
        keeping.put(Settled(reports=(REPORT,)))
        keeping.put(Settled(reports=(REPORT,)))
        keeping.close()

    assert left_out(counted) == 2
    assert [each.message for each in caplog.records] == [
        "what was measured is not kept; jobs go on as before"
    ]


def test_nobody_waits_for_a_store_that_stands_still() -> None:
    store, counted = Troubled(), LeftOut()
    keeping = Keeping(store, counted, now)

    for _ in range(module.MOST_QUEUED + 50):
        keeping.put(Settled(reports=(REPORT,)))

    assert left_out(counted) >= 49
    store.has_room = True
    store.goes_on.set()
    keeping.close()
    assert store.report(JobId(17)) == REPORT


def test_a_file_that_cannot_be_written_loses_nothing_else(tmp_path: Path) -> None:
    """A folder where the file should be: root itself cannot write there."""
    (tmp_path / "telemetry.db").mkdir()
    counted = LeftOut()
    keeping = Keeping(SqliteMeasured(tmp_path / "telemetry.db"), counted, now)

    keeping.put(Settled(reports=(REPORT,)))
    keeping.close()

    assert left_out(counted) == 1
