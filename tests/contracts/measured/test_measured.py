"""What every store of what was measured promises, and what happens when its file is in trouble."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from databases import Postgres
from muster.model.efficiency import CauseTime, DeviceUse, FleetUse, JobReport
from muster.model.errors import StoreError
from muster.model.finding import Cause, Confidence
from muster.model.holding import Holding
from muster.model.minutes import NOT_KNOWN, MinuteBlock
from muster.model.value import (
    HOUR,
    ClassName,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from muster.stores.measured.base import MeasuredStore, PastQuery, Settled
from muster.stores.measured.memory import MemoryMeasured
from muster.stores.measured.opening import open_measured
from muster.stores.measured.postgres import PostgresMeasured
from muster.stores.measured.sqlite import SqliteMeasured

A = ClusterName("a")
POOL = PoolName("h100")
NLP = QueuePath("acme/nlp")

REPORT = JobReport(
    job=JobId(17),
    attempt=1,
    user=UserName("ada"),
    queue=NLP,
    cluster=A,
    pool=POOL,
    since=Instant(0),
    until=Instant(600_000),
    is_over=True,
    headline=Cause.INPUT_CPU,
    confidence=Confidence.SURE,
    gpu_ms=Duration(600_000),
    causes=(CauseTime(cause=Cause.INPUT_CPU, gpu_ms=Duration(600_000), wasted_micros=5),),
    devices=(
        DeviceUse(
            node=NodeId("n1"), device=DeviceId("g0"), gpu_milli=1_000, held_ms=Duration(600_000)
        ),
    ),
)
USE = FleetUse(
    at=Instant(3 * HOUR + 5),
    cluster=A,
    pool=POOL,
    queue=NLP,
    use="held_slow",
    milli_ms=1_000,
    cause=Cause.INPUT_CPU,
    wasted=300_000,
)
HOLDING = Holding(
    job=JobId(17),
    attempt=1,
    user=UserName("ada"),
    queue=NLP,
    job_class=ClassName("normal"),
    cluster=A,
    pool=POOL,
    node=NodeId("n1"),
    device=DeviceId("g0"),
    gpu_milli=1_000,
    since=Instant(1_000),
    until=Instant(2_000),
)


BLOCK = MinuteBlock(
    job=JobId(17),
    attempt=1,
    node=NodeId("n1"),
    device=DeviceId("g0"),
    hour=Instant(3 * HOUR),
    causes=bytes([3]) + bytes([NOT_KNOWN]) * 59,
    columns={"busy": bytes([90]) + bytes([NOT_KNOWN]) * 59},
)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MeasuredStore]:
    match request.param:
        case "memory":
            store: MeasuredStore = MemoryMeasured()
        case "postgres":
            server: Postgres = request.getfixturevalue("postgres")
            store = open_measured(server.new_address(), tmp_path / "telemetry.db")
            assert isinstance(store, PostgresMeasured)
        case _:
            store = open_measured(f"sqlite:///{tmp_path}/muster.db", tmp_path / "telemetry.db")
    yield store
    store.close()


def test_a_report_comes_back_as_it_was(store: MeasuredStore) -> None:
    store.keep(Settled(reports=(REPORT,)))

    assert store.report(JobId(17)) == REPORT
    assert store.report(JobId(17), 1) == REPORT
    assert store.report(JobId(17), 2) is None
    assert store.report(JobId(18)) is None


def test_the_last_attempt_is_meant_unless_one_is_named(store: MeasuredStore) -> None:
    second = replace(REPORT, attempt=2)
    store.keep(Settled(reports=(REPORT, second)))

    assert store.report(JobId(17)) == second
    assert store.report(JobId(17), 1) == REPORT


def test_reports_are_found_by_queue_user_and_time(store: MeasuredStore) -> None:
    other = replace(
        REPORT, job=JobId(18), user=UserName("bob"), queue=QueuePath("acme/nlpx"),
        until=Instant(700_000),
    )  # fmt: skip
    store.keep(Settled(reports=(REPORT, other)))

    assert store.reports(PastQuery()) == (other, REPORT)
    assert store.reports(PastQuery(limit=1)) == (other,)
    assert store.reports(PastQuery(queue=NLP)) == (REPORT,)
    assert store.reports(PastQuery(queue=QueuePath("acme"))) == (other, REPORT)
    assert store.reports(PastQuery(user=UserName("ada"))) == (REPORT,)
    assert store.reports(PastQuery(since=Instant(650_000))) == (other,)


def test_uses_of_an_hour_are_added_up(store: MeasuredStore) -> None:
    store.keep(Settled(uses=(USE,)))
    store.keep(Settled(uses=(USE, replace(USE, at=Instant(5 * HOUR), cause=None))))

    first, second = store.uses(Instant(0))

    assert (first.at, first.milli_ms, first.wasted) == (3 * HOUR, 2_000, 600_000)
    assert (second.at, second.cause, second.milli_ms) == (5 * HOUR, None, 1_000)
    assert store.uses(Instant(4 * HOUR)) == (second,)


def test_who_had_a_device_when(store: MeasuredStore) -> None:
    later = replace(HOLDING, job=JobId(18), since=Instant(2_000), until=Instant(9_000))
    store.keep(Settled(holdings=(later, HOLDING)))

    assert store.holdings(Instant(0), Instant(5_000), DeviceId("g0")) == (HOLDING, later)
    assert store.holdings(Instant(2_000), Instant(5_000), DeviceId("g0")) == (later,)
    assert store.holdings(Instant(0), Instant(5_000), DeviceId("g1")) == ()
    assert store.holdings(Instant(0), Instant(5_000)) == (HOLDING, later)


def test_minutes_of_an_attempt_come_back_by_hour_and_replace_what_was_kept(
    store: MeasuredStore,
) -> None:
    later = replace(BLOCK, hour=Instant(4 * HOUR))
    other = replace(BLOCK, device=DeviceId("g1"))
    more = replace(BLOCK, causes=bytes([3, 3]) + bytes([NOT_KNOWN]) * 58)
    store.keep(Settled(minutes=(later, other, BLOCK)))

    store.keep(Settled(minutes=(more,)))

    assert store.minutes(JobId(17), 1) == (more, other, later)
    assert store.minutes(JobId(17), 2) == ()


def test_what_users_had_is_counted_by_each(store: MeasuredStore) -> None:
    store.keep(Settled(uses=(USE, replace(USE, user=UserName("bob")))))

    assert [(each.user, each.milli_ms) for each in store.uses(Instant(0))] == [
        ("", 1_000),
        ("bob", 1_000),
    ]


def test_a_server_that_was_away_is_asked_again(postgres: Postgres) -> None:
    store = PostgresMeasured(postgres.new_address())
    store.keep(Settled(reports=(REPORT,)))
    postgres.stop()
    try:
        with pytest.raises((OSError, StoreError)):
            store.keep(Settled(uses=(USE,)))
    finally:
        postgres.start()

    store.keep(Settled(uses=(USE,)))

    assert (store.report(JobId(17)), len(store.uses(Instant(0)))) == (REPORT, 1)
    store.close()


def test_what_is_old_is_forgotten(store: MeasuredStore) -> None:
    store.keep(Settled(reports=(REPORT,), uses=(USE,), holdings=(HOLDING,)))

    store.keep(Settled(minutes=(BLOCK, replace(BLOCK, hour=Instant(30 * HOUR)))))

    store.forget(Instant(10 * HOUR), minutes_before=Instant(20 * HOUR))

    assert store.report(JobId(17)) is None
    assert store.uses(Instant(0)) == ()
    assert [each.hour for each in store.minutes(JobId(17), 1)] == [30 * HOUR]
    assert store.holdings(Instant(0), Instant(5_000), DeviceId("g0")) == ()


def test_what_is_kept_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    first = SqliteMeasured(tmp_path / "telemetry.db")
    first.keep(Settled(reports=(REPORT,)))
    first.close()

    assert SqliteMeasured(tmp_path / "telemetry.db").report(JobId(17)) == REPORT


def test_a_file_that_was_taken_away_is_begun_again(tmp_path: Path) -> None:
    store = SqliteMeasured(tmp_path / "telemetry.db")
    store.keep(Settled(reports=(REPORT,)))
    for file in tmp_path.iterdir():
        file.unlink()

    store.keep(Settled(reports=(replace(REPORT, attempt=2),)))

    assert store.report(JobId(17), 1) is None
    assert store.report(JobId(17), 2) is not None


def test_a_file_of_another_format_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.db"
    with closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE TABLE reports (x); PRAGMA user_version=77")

    store = SqliteMeasured(path)
    store.keep(Settled(reports=(REPORT,)))

    assert store.report(JobId(17)) == REPORT
    assert (tmp_path / "telemetry.db.old").exists()


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    store = SqliteMeasured(tmp_path / "telemetry.db")

    store.keep(Settled(reports=(REPORT,)))

    assert (tmp_path / "telemetry.db").stat().st_mode & 0o077 == 0
