"""Whatever happens, every second of every GPU is counted once, and so is its price."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from muster.model.holding import Holding
from muster.model.samples import DeviceSample, JobSample, ProcessSample, Samples
from muster.model.value import (
    ClassName,
    ClusterName,
    DeviceId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.gathering import Attempt, Gathering, Minute, Moment
from muster.telemetry.diagnosis.judging import Course, judge
from muster.telemetry.diagnosis.ledger import (
    NOBODY,
    Demand,
    Ledger,
    Looked,
    Standing,
    by,
    capacity_milli_ms,
    costs,
)
from muster.telemetry.diagnosis.summary import Summary

CLUSTER = ClusterName("a")
POOLS = (PoolName("h100"), PoolName("t4"))
QUEUES = (QueuePath("acme/nlp"), QueuePath("acme/vision"), QueuePath("lab"))
BEGIN = 1_700_000_000_000 // 60_000 * 60_000


class History(NamedTuple):
    looks: tuple[Instant, ...]
    holdings: tuple[Holding, ...]
    devices: tuple[Standing, ...]
    demand: tuple[Demand, ...]
    samples: tuple[Samples, ...]
    prices: dict[tuple[ClusterName, PoolName], int]


@st.composite
def histories(draw: DrawFn) -> History:
    """Devices of two pools that change hands, whole or in parts, at any millisecond."""
    gaps = draw(st.lists(st.integers(1, 400_000), min_size=1, max_size=12))
    looks = [Instant(BEGIN + draw(st.integers(0, 90_000)))]
    for gap in gaps:
        looks.append(Instant(looks[-1] + gap))
    devices = [
        Standing(
            cluster=CLUSTER,
            pool=draw(st.sampled_from(POOLS)),
            device=DeviceId(f"gpu{index}"),
            out=draw(st.sampled_from(("", "", "", "drained", "broken"))),
        )
        for index in range(draw(st.integers(1, 4)))
    ]
    holdings = [
        holding
        for device in devices
        for holding in draw(tenancies(device, looks[0] - 50_000, looks[-1] + 50_000))
    ]
    demand = tuple(
        Demand(
            cluster=CLUSTER,
            pool=draw(st.sampled_from(POOLS)),
            why=draw(st.sampled_from(("no_room", "over_limit"))),
            gpu_milli=draw(st.integers(1, 3_000)),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    return History(
        looks=tuple(looks),
        holdings=tuple(holdings),
        devices=tuple(devices),
        demand=demand,
        samples=tuple(draw(measured(devices, holdings, at)) for at in looks),
        prices={(CLUSTER, pool): draw(st.integers(0, 10_000_000)) for pool in POOLS},
    )


@st.composite
def tenancies(draw: DrawFn, device: Standing, first: int, last: int) -> list[Holding]:
    """One after the other on each part of the device; the parts together are no more than it."""
    parts = draw(st.sampled_from(((1_000,), (500, 500), (333, 333, 333), (700, 250))))
    found: list[Holding] = []
    for number, part in enumerate(parts):
        at = draw(st.integers(first, last))
        while at < last and len(found) < 12:
            until = at + draw(st.integers(1, 300_000))
            found.append(
                Holding(
                    job=JobId(1 + len(found) + 100 * int(device.device[3:]) + 20 * number),
                    attempt=draw(st.integers(1, 2)),
                    user=UserName("ada"),
                    queue=draw(st.sampled_from(QUEUES)),
                    job_class=ClassName("normal"),
                    cluster=CLUSTER,
                    pool=device.pool,
                    node=NodeId("n1"),
                    device=device.device,
                    gpu_milli=part,
                    since=Instant(at),
                    until=Instant(until),
                )
            )
            at = until + draw(st.sampled_from((0, 0, 1, 17_000)))
    return found


@st.composite
def measured(
    draw: DrawFn, devices: Sequence[Standing], holdings: Sequence[Holding], at: Instant
) -> Samples:
    """What a look finds, if it finds anything."""
    share = st.none() | st.integers(0, 1_000)
    seen = [each for each in devices if draw(st.booleans())]
    return Samples(
        at=at,
        devices=tuple(
            DeviceSample(
                device=each.device,
                node=NodeId("n1"),
                at=at,
                index=0,
                busy_milli=draw(share),
                power_mw=draw(st.none() | st.integers(0, 700_000)),
                power_limit_mw=700_000,
                processes=tuple(
                    ProcessSample(
                        pid=1 + number,
                        job=holding.job,
                        attempt=holding.attempt,
                        sm_milli=draw(share),
                    )
                    for number, holding in enumerate(holdings)
                    if holding.device == each.device and number % 3
                ),
            )
            for each in seen
        ),
        jobs=tuple(
            JobSample(
                job=each.job,
                attempt=each.attempt,
                node=NodeId("n1"),
                at=at,
                cpu_used_milli=draw(share),
                cpu_granted_milli=1_000,
            )
            for each in holdings[:2]
        ),
    )


class Played:
    """A history as telemetry sees it."""

    def __init__(self, history: History) -> None:
        self.ledger = Ledger()
        self.summaries: dict[Attempt, Summary] = {}
        self.looked: list[Looked] = []
        self._courses: dict[Attempt, Course] = {}
        self._prices = history.prices
        gathering = Gathering()
        for at, samples in zip(history.looks, history.samples, strict=True):
            self._look(history, at)
            moment = Moment(at=at, holdings=history.holdings, samples=(samples,))
            self._close(gathering.add(moment))
        self._close(gathering.close())

    def _look(self, history: History, at: Instant) -> None:
        since = self.looked[-1].until if self.looked else history.looks[0]
        looked = Looked(
            since=since,
            until=at,
            devices=history.devices,
            holdings=history.holdings,
            demand=history.demand,
        )
        self.looked.append(looked)
        self.ledger.free(looked)

    def _close(self, minutes: Sequence[Minute]) -> None:
        for minute in minutes:
            course = self._courses.get(minute.attempt, Course())
            judged, course = judge([part.member for part in minute.parts], course)
            self._courses[minute.attempt] = course
            price = self._prices[CLUSTER, minute.parts[0].holding.pool]
            self.summaries.setdefault(minute.attempt, Summary(price)).add(minute, judged)
            self.ledger.held(minute, judged)


@given(histories())
def test_uses_sum_to_capacity(history: History) -> None:
    played = Played(history)

    counted = sum(time.milli_ms for time in played.ledger.rows().values())

    assert counted == capacity_milli_ms(played.looked)


@given(histories())
def test_causes_sum_to_what_was_held(history: History) -> None:
    played = Played(history)
    first, last = history.looks[0], history.looks[-1]

    for attempt, summary in played.summaries.items():
        held = sum(
            each.gpu_milli * max(0, min(each.until or last, last) - max(each.since, first))
            for each in history.holdings
            if (each.job, each.attempt) == attempt
        )
        times = summary.times().values()
        assert sum(time.milli_ms for time in times) == held
        assert all(0 <= time.wasted <= 1_000 * time.milli_ms for time in times)


@given(histories())
def test_queues_sum_to_pools_and_jobs_to_queues(history: History) -> None:
    played = Played(history)
    rows = played.ledger.rows()

    held = sum(time.milli_ms for row, time in rows.items() if row.queue != NOBODY)

    by_pool, by_queue = by(rows, lambda row: row.pool), by(rows, lambda row: (row.pool, row.queue))
    for pool, time in by_pool.items():
        parts = [each for key, each in by_queue.items() if key[0] == pool]
        assert money.summed(parts) == time
    assert held == sum(summary.time.milli_ms for summary in played.summaries.values())


@given(histories())
def test_money_sums_to_the_micro_unit(history: History) -> None:
    played = Played(history)
    rows = played.ledger.rows()

    spent = costs(rows, history.prices)

    for pool in {row.pool for row in rows}:
        total = sum(time.milli_ms for row, time in rows.items() if row.pool == pool)
        parts = sum(micros for row, micros in spent.items() if row.pool == pool)
        assert parts == money.cost_micros(total, history.prices[CLUSTER, pool])


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 10**15)), st.integers(0, 10**12))
def test_a_total_is_shared_out_whole(amounts: dict[str, int], total: int) -> None:
    parts = money.shared_out(amounts, total)

    assert sum(parts.values()) == (total if sum(amounts.values()) else 0)
    assert all(part >= 0 for part in parts.values())
    assert list(parts) == list(amounts)


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 10**9)), max_size=8)))
def test_what_was_spent_never_shrinks_and_sums_to_the_total(
    looks: list[list[tuple[str, int]]],
) -> None:
    spent, total, before = money.Spent[str](), 0, dict[str, int]()

    for number, look in enumerate(looks):
        price = 1_234_567 * (1 + number % 3)
        for key, milli_ms in look:
            spent.add(key, milli_ms, price)
            total += milli_ms * price
        now = spent.micros()

        assert all(now[key] >= micros for key, micros in before.items())
        assert 0 <= total // (1_000 * 3_600_000) - sum(now.values()) <= len(now)
        before = now
