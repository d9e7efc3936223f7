"""What became of every second of every GPU: rows that sum to capacity, and to what it cost (pure).

    ledger = Ledger()
    ledger.held(minute, judged)         # what attempts held, by cause
    ledger.free(looked)                 # what nobody held, by why
    pools(ledger.rows())                # by pool; queues(...), causes(...) likewise

A row is counted in whole numbers (`money`), so that rows may be summed in any order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from muster.model.finding import USE_OF, Cause, Use
from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.holding import Holding
from muster.model.value import ClusterName, DeviceId, Instant, PoolName, QueuePath, UserName, Value
from muster.telemetry.diagnosis import money
from muster.telemetry.diagnosis.gathering import Minute
from muster.telemetry.diagnosis.judging import Judged
from muster.telemetry.diagnosis.money import NO_TIME, Time, time_of

NOBODY = QueuePath("")
"""The queue of what nobody held."""

NO_DEMAND = "free_no_demand"
DRAINED = "drained"
BROKEN = "broken"


class Row(NamedTuple):
    """Whose time it was, and what became of it. use: a `Use`, or why nobody held it."""

    cluster: ClusterName
    pool: PoolName
    queue: QueuePath
    use: str
    cause: Cause | None = None
    user: UserName = UserName("")


class Standing(Value, gc=False):
    """A device of a pool while nobody holds it. out: `broken` or `drained`, if it is."""

    cluster: ClusterName
    pool: PoolName
    device: DeviceId
    out: str = ""


class Demand(Value, gc=False):
    """What a waiting job could have used of a pool: the tag of why it waits, and how much."""

    cluster: ClusterName
    pool: PoolName
    why: str
    gpu_milli: int


class Looked(Value):
    """A stretch of time between two looks: the devices there were, who held them, who waited.

    demand is in the order of the jobs' turns.
    """

    since: Instant
    until: Instant
    devices: tuple[Standing, ...]
    holdings: tuple[Holding, ...] = ()
    demand: tuple[Demand, ...] = ()


class Ledger:
    """Rows, and the time in each. One thread."""

    def __init__(self) -> None:
        self._rows: dict[Row, list[int]] = {}

    def rows(self) -> dict[Row, Time]:
        """All of them until now, in their order."""
        return {
            row: Time(milli_ms=milli_ms, wasted=wasted)
            for row, (milli_ms, wasted) in sorted(self._rows.items(), key=_order)
        }

    def held(self, minute: Minute, judged: Sequence[Judged]) -> None:
        """A minute of an attempt: the whole of what it held, under the causes that it had."""
        for part, each in zip(minute.parts, judged, strict=True):
            holding = part.holding
            self._add(
                Row(
                    cluster=holding.cluster,
                    pool=holding.pool,
                    queue=holding.queue,
                    use=USE_OF[each.cause],
                    cause=each.cause,
                    user=holding.user,
                ),
                time_of(
                    gpu_milli=holding.gpu_milli,
                    ms=each.member.held,
                    slack_milli=each.slack_milli,
                ),
            )

    def free(self, looked: Looked) -> None:
        """What nobody held of the devices in this stretch, all of it wasted, by why."""
        left, wanted = _unheld(looked), _wanted(looked)
        for device in sorted(looked.devices, key=lambda each: (each.pool, each.device)):
            milli_ms = left[device.device]
            if device.out:
                self._free(device, device.out, milli_ms)
                continue
            for demand in wanted.get((device.cluster, device.pool), []):
                taken = min(milli_ms, demand.milli_ms)
                self._free(device, f"free_{demand.why}", taken)
                demand.milli_ms -= taken
                milli_ms -= taken
            self._free(device, NO_DEMAND, milli_ms)

    def _free(self, device: Standing, use: str, milli_ms: int) -> None:
        if milli_ms:
            row = Row(cluster=device.cluster, pool=device.pool, queue=NOBODY, use=use)
            self._add(row, Time(milli_ms=milli_ms, wasted=milli_ms * WHOLE_GPU_MILLI))

    def _add(self, row: Row, time: Time) -> None:
        into = self._rows.setdefault(row, [0, 0])
        into[0] += time.milli_ms
        into[1] += time.wasted


K = TypeVar("K")


def by(rows: Mapping[Row, Time], key: Callable[[Row], K]) -> dict[K, Time]:
    """The rows, summed by what the key makes of them, in the order in which that first comes."""
    found: dict[K, Time] = {}
    for row, time in rows.items():
        found[key(row)] = found.get(key(row), NO_TIME) + time
    return found


def costs(
    rows: Mapping[Row, Time], prices: Mapping[tuple[ClusterName, PoolName], int]
) -> dict[Row, int]:
    """What each row cost, in micro-units: rounded so that the rows of a pool make the pool."""
    found: dict[Row, int] = {}
    for pool in dict.fromkeys((row.cluster, row.pool) for row in rows):
        own = {row: time.milli_ms for row, time in rows.items() if (row.cluster, row.pool) == pool}
        total = money.cost_micros(sum(own.values()), prices.get(pool, 0))
        found.update(money.shared_out(own, total))
    return {row: found[row] for row in rows}


def capacity_milli_ms(looked: Iterable[Looked]) -> int:
    """All that there was, held or not."""
    return sum(len(each.devices) * WHOLE_GPU_MILLI * (each.until - each.since) for each in looked)


def _unheld(looked: Looked) -> dict[DeviceId, int]:
    """What is left of each device: never below nothing, whatever was promised twice."""
    length = looked.until - looked.since
    left = {each.device: WHOLE_GPU_MILLI * length for each in looked.devices}
    for holding in looked.holdings:
        until = looked.until if holding.until is None else min(holding.until, looked.until)
        ms = until - max(holding.since, looked.since)
        if ms > 0 and holding.device in left:
            left[holding.device] -= holding.gpu_milli * ms
    return {device: max(0, milli_ms) for device, milli_ms in left.items()}


class _Wanted:
    """What is still wanted of a pool for one reason."""

    def __init__(self, why: str, milli_ms: int) -> None:
        self.why = why
        self.milli_ms = milli_ms


def _wanted(looked: Looked) -> dict[tuple[ClusterName, PoolName], list[_Wanted]]:
    length = looked.until - looked.since
    found: dict[tuple[ClusterName, PoolName], list[_Wanted]] = {}
    for demand in looked.demand:
        wanted = _Wanted(demand.why, demand.gpu_milli * length)
        found.setdefault((demand.cluster, demand.pool), []).append(wanted)
    return found


def _order(item: tuple[Row, list[int]]) -> tuple[str, str, str, str, str, str]:
    row = item[0]
    return row.cluster, row.pool, row.queue, row.use, row.cause or "", row.user


def is_waste(use: str) -> bool:
    """Does a row of this use count against the fleet?"""
    return use != Use.WORKING
