"""Why jobs are slow, while they run: every look is gathered into minutes, and each gets its cause.

    diagnosing.look(look)               # a subscriber of the watcher
    diagnosing.reports()                # of attempts that run, and of those that ended lately
    diagnosing.rows()                   # what became of every second of every GPU

Looks come in the watching thread; anybody may ask from any thread.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from threading import Lock

from muster.controller.loop.controller import LastPlan
from muster.controller.watching.tally import tag_of
from muster.controller.watching.tenancies import Tenancies
from muster.controller.world.record import Record
from muster.model.cluster import Node, NodeState
from muster.model.efficiency import FleetUse, JobReport
from muster.model.holding import Holding
from muster.model.job import HOLDING, Job, gpu_milli
from muster.model.minutes import MinuteBlock
from muster.model.samples import DeviceSample, JobSample
from muster.model.value import ClusterName, DeviceId, Instant, JobId, PoolName
from muster.stores.measured.base import Settled
from muster.telemetry.diagnosis.blocks import Blocks
from muster.telemetry.diagnosis.gathering import Attempt, Gathering, Minute, Moment
from muster.telemetry.diagnosis.ledger import (
    BROKEN,
    DRAINED,
    Demand,
    Ledger,
    Looked,
    Row,
    Standing,
)
from muster.telemetry.diagnosis.money import Spent, Time
from muster.telemetry.diagnosis.reporting import Account
from muster.telemetry.look import Look

MOST_ENDED = 2_000
"""Reports of so many attempts that are over are at hand without the store."""

MOST_WAITING = 2_000
"""So many of the waiting jobs are asked for why free GPUs do not serve them."""


Keep = Callable[[Settled], None]
"""Takes what is to be kept. It must be quick and may fail: nothing waits for it."""


class Diagnosing:
    """Follows every attempt that holds a device, from the first look at it to its end."""

    def __init__(
        self, record: Record, last_plan: LastPlan, tenancies: Tenancies, keep: Keep | None = None
    ) -> None:
        self.keep = keep
        self._record = record
        self._last_plan = last_plan
        self._tenancies = tenancies
        self._lock = Lock()
        self._begin()

    def begin(self) -> None:
        """This process leads from now on: what it saw when it led before is another story."""
        with self._lock:
            self._tenancies.forget()
            self._begin()

    def look(self, look: Look) -> None:
        """One pass: the time since the last one is counted, and minutes that are over judged."""
        over = self._tenancies.ended()
        now = self._held(look.holdings)
        nodes = self._nodes()
        with self._lock:
            reports = self._account((*now, *over), look, nodes)
            uses = self._uses(look.at)
            self._pay(uses)
            settled = Settled(
                reports=reports,
                uses=uses,
                holdings=over,
                minutes=self._blocks.settled(
                    look.at, {(each.job, each.attempt) for each in reports}
                ),
            )
        if self.keep is not None and settled:
            self.keep(settled)

    def reports(self) -> tuple[JobReport, ...]:
        """Of every attempt that holds a device now, by job; then of those that ended lately."""
        with self._lock:
            until = self._at or Instant(0)
            live = [self._accounts[each] for each in sorted(self._accounts)]
            found = [account.report(until, is_over=False) for account in live]
            return (*found, *reversed(self._ended.values()))

    def report(self, job: JobId, attempt: int | None = None) -> JobReport | None:
        """Of one attempt, the last one unless it is named; None where nothing is known here."""
        with self._lock:
            until = self._at or Instant(0)
            live = [key for key in self._accounts if key[0] == job and attempt in {None, key[1]}]
            if live:
                return self._accounts[max(live)].report(until, is_over=False)
            over = [key for key in self._ended if key[0] == job and attempt in {None, key[1]}]
            return self._ended[max(over)] if over else None

    def minutes(self, job: JobId, attempt: int) -> tuple[MinuteBlock, ...]:
        """What is not kept yet of an attempt, by hour, node and device."""
        with self._lock:
            return self._blocks.of(job, attempt)

    def idle(self) -> Mapping[Attempt, int]:
        """For how many milliseconds each attempt that runs has left all its devices alone."""
        with self._lock:
            return {key: account.idle_ms for key, account in self._accounts.items()}

    def rows(self) -> Mapping[Row, Time]:
        """What became of every second of every GPU, since this process leads."""
        with self._lock:
            return self._ledger.rows()

    def spent(self) -> Mapping[Row, int]:
        """What its time cost, in micro-units, by the prices of then; neither by cause nor user."""
        with self._lock:
            return self._spent.micros()

    def prices(self) -> Mapping[tuple[ClusterName, PoolName], int]:
        """Of each pool, in micro-units an hour."""
        pools = self._record.site.pools.values()
        return {(pool.cluster, pool.name): pool.gpu_hour_micros for pool in pools}

    def currency(self) -> str:
        """That of all prices; empty where nobody named it."""
        return self._record.site.currency

    def _begin(self) -> None:
        self._at: Instant | None = None
        self._gathering = Gathering()
        self._ledger = Ledger()
        self._blocks = Blocks()
        self._told: dict[Row, Time] = {}
        self._spent = Spent[Row]()
        self._accounts: dict[Attempt, Account] = {}
        self._leaving: dict[Attempt, Instant] = {}
        self._ended: OrderedDict[Attempt, JobReport] = OrderedDict()

    def _held(self, holdings: Sequence[Holding]) -> tuple[Holding, ...]:
        """A suspended job keeps its memory, and its devices are anybody's."""
        jobs = self._record.jobs
        states = {job: jobs[job].state for job in {each.job for each in holdings} if job in jobs}
        return tuple(each for each in holdings if states.get(each.job) in HOLDING)

    def _nodes(self) -> tuple[Node, ...]:
        with self._record.lock:
            return tuple(self._record.nodes.values())

    def _account(
        self, holdings: tuple[Holding, ...], look: Look, nodes: Sequence[Node]
    ) -> tuple[JobReport, ...]:
        before, self._at = self._at, look.at
        broken = {device.id for node in nodes for device in node.devices if not device.healthy}
        moment = Moment(
            at=look.at,
            holdings=holdings,
            samples=tuple(look.samples.values()),
            broken=frozenset(broken),
        )
        self._open(holdings, look)
        if before is not None and before < look.at:
            self._ledger.free(
                Looked(
                    since=before,
                    until=look.at,
                    devices=_standings(nodes),
                    holdings=holdings,
                    demand=self._demand(nodes),
                )
            )
        self._judge(self._gathering.add(moment))
        return self._closed(holdings, look.at)

    def _open(self, holdings: tuple[Holding, ...], look: Look) -> None:
        prices = self.prices()
        devices: dict[DeviceId, list[DeviceSample]] = {}
        jobs: dict[Attempt, list[JobSample]] = {}
        for samples in look.samples.values():
            for sample in samples.devices:
                devices.setdefault(sample.device, []).append(sample)
            for job in samples.jobs:
                jobs.setdefault((job.job, job.attempt), []).append(job)
        for holding in holdings:
            key = (holding.job, holding.attempt)
            account = self._accounts.get(key)
            if account is None:
                price = prices.get((holding.cluster, holding.pool), 0)
                account = self._accounts[key] = Account(holding, price)
            if holding.until is None:
                account.look(
                    (each for each in devices.get(holding.device, ()) if each.instance is None),
                    jobs.get(key, ()),
                )

    def _judge(self, minutes: Iterable[Minute]) -> None:
        for minute in minutes:
            account = self._accounts.get(minute.attempt)
            if account is not None:
                judged = account.add(minute)
                self._ledger.held(minute, judged)
                self._blocks.add(minute, judged)

    def _closed(self, holdings: tuple[Holding, ...], now: Instant) -> tuple[JobReport, ...]:
        """Attempts that hold nothing any more, once the last minute of theirs is over."""
        held = {(each.job, each.attempt) for each in holdings if each.until is None}
        for each in holdings:
            key = (each.job, each.attempt)
            if each.until is not None and key not in held:
                self._leaving[key] = max(self._leaving.get(key, each.until), each.until)
        gone = [key for key in self._accounts if key not in held and key not in self._leaving]
        self._leaving.update(dict.fromkeys(gone, now))
        minute = now - now % 60_000
        over = sorted(key for key, until in self._leaving.items() if until < minute)
        found = [self._ended_report(key, self._leaving.pop(key)) for key in over]
        return tuple(report for report in found if report is not None)

    def _ended_report(self, key: Attempt, until: Instant) -> JobReport | None:
        account = self._accounts.pop(key, None)
        if account is None:
            return None
        report = self._ended[key] = account.report(until, is_over=True)
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        return report

    def _uses(self, at: Instant) -> tuple[FleetUse, ...]:
        """What was added to the rows since the last look."""
        rows, told = self._ledger.rows(), self._told
        self._told = rows
        return tuple(
            FleetUse(
                at=at,
                cluster=row.cluster,
                pool=row.pool,
                queue=row.queue,
                use=row.use,
                cause=row.cause,
                user=row.user,
                milli_ms=time.milli_ms - told.get(row, _NOTHING).milli_ms,
                wasted=time.wasted - told.get(row, _NOTHING).wasted,
            )
            for row, time in rows.items()
            if time != told.get(row, _NOTHING)
        )

    def _pay(self, uses: Iterable[FleetUse]) -> None:
        prices = self.prices()
        for use in uses:
            row = Row(cluster=use.cluster, pool=use.pool, queue=use.queue, use=use.use)
            self._spent.add(row, use.milli_ms, prices.get((use.cluster, use.pool), 0))

    def _demand(self, nodes: Sequence[Node]) -> tuple[Demand, ...]:
        """What those wait for who could have used free GPUs, by why they wait, in their order."""
        pools = sorted({(node.cluster, node.pool) for node in nodes if node.devices})
        waits, jobs = self._last_plan.waits, self._record.jobs
        with self._record.lock:
            waiting = sorted(self._record.waiting)
        found: list[Demand] = []
        for job_id in islice(waiting, MOST_WAITING):
            job, wait = jobs.get(job_id), waits.get(job_id)
            if job is None or wait is None:
                continue
            found.extend(
                Demand(cluster=cluster, pool=pool, why=tag_of(wait.why), gpu_milli=milli)
                for cluster, pool, milli in _wanted(job, pools)
            )
        return tuple(found)


_NOTHING = Time()


def _wanted(
    job: Job, pools: Sequence[tuple[ClusterName, PoolName]]
) -> tuple[tuple[ClusterName, PoolName, int], ...]:
    """How much the job would take of the first pool that it may use; others see no demand by it."""
    spec = job.spec
    milli = sum(group.fewest * gpu_milli(group.each.gpus, None) for group in spec.groups)
    if not milli:
        return ()
    for cluster, pool in pools:
        if spec.pools and pool not in spec.pools:
            continue
        if spec.clusters and cluster not in spec.clusters:
            continue
        return ((cluster, pool, milli),)
    return ()


def _standings(nodes: Sequence[Node]) -> tuple[Standing, ...]:
    return tuple(
        Standing(
            cluster=node.cluster,
            pool=node.pool,
            device=device.id,
            out=BROKEN if not device.healthy else "" if node.state is NodeState.UP else DRAINED,
        )
        for node in nodes
        for device in node.devices
    )
