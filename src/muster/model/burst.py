"""Bursting: when jobs of one cluster may move to another, what that costs, and whom it concerns."""

from collections.abc import Mapping

from muster.model.cluster import Cluster, Node, Pool
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import Job, JobSpec, Spot, TaskGroup
from muster.model.mig import mig_profile
from muster.model.value import (
    HOUR,
    ClassName,
    ClusterName,
    Duration,
    Instant,
    PoolName,
    Value,
)
from muster.model.words import counted, listed, money


class Burst(Value):
    """A rule: jobs that `preferred` is to run may move to the cluster `to`, and when.

    over_gpu_hours: only while more than that waits for `preferred`. classes: only jobs of these.
    cost_percent: only where it is estimated to cost at most this share of what it would there.
    transfer: for so long its GPUs wait in `to` until what it needs has come, and
    transfer_micros is what bringing that costs besides.
    """

    preferred: ClusterName
    to: ClusterName
    classes: tuple[ClassName, ...]
    over_gpu_hours: int = 0
    cost_percent: int = 70
    transfer: Duration = Duration(0)
    transfer_micros: int = 0

    def cost_there(self, hold: "ExpectedHold", price_micros: int) -> int:
        """With what it takes to start over, and to bring what the job needs."""
        lasts = hold.lasts + hold.restart + self.transfer
        return _cost(hold.gpu_milli, lasts, price_micros) + self.transfer_micros

    def is_cheap_enough(self, here_micros: int, there_micros: int) -> bool:
        """May a job move at these costs? Where nobody said what GPUs cost here, none may."""
        return here_micros > 0 and 100 * there_micros <= self.cost_percent * here_micros

    def is_exceeded(self, waiting_gpu_milli_ms: int) -> bool:
        """Does enough wait?"""
        return waiting_gpu_milli_ms > self.over_gpu_hours * 1_000 * HOUR


class ExpectedHold(Value, gc=False):
    """How much GPU a waiting job would hold for how long, and what starting over would take."""

    gpu_milli: int
    lasts: Duration
    restart: Duration = Duration(0)

    @property
    def gpu_milli_ms(self) -> int:
        return self.gpu_milli * self.lasts

    def cost(self, price_micros: int) -> int:
        """What it costs where it is."""
        return _cost(self.gpu_milli, self.lasts, price_micros)


class Bursting(Value):
    """What a rule says of a waiting job and a pool of the cluster that it may move to.

    waiting_gpu_milli_ms: what waits for the preferred cluster. here_micros and there_micros: what
    the job is estimated to cost.
    """

    rule: Burst
    pool: PoolName
    waiting_gpu_milli_ms: int
    is_of_class: bool
    here_micros: int
    there_micros: int

    @property
    def is_open(self) -> bool:
        """May it move?"""
        return self.is_of_class and self.is_cheap and self.is_due

    @property
    def is_cheap(self) -> bool:
        return self.rule.is_cheap_enough(self.here_micros, self.there_micros)

    @property
    def is_due(self) -> bool:
        return self.rule.is_exceeded(self.waiting_gpu_milli_ms)

    @property
    def text(self) -> str:
        """For people."""
        rule, there = self.rule, f"{self.rule.to} (pool {self.pool})"
        waiting = counted(self.waiting_gpu_milli_ms // (1_000 * HOUR), "GPU-hour")
        here_cost, there_cost = money(self.here_micros), money(self.there_micros)
        if not self.is_of_class:
            return f"It does not move to {there}: only jobs of class {listed(rule.classes)} do."
        if not self.is_cheap:
            return (
                f"It does not move to {there}: it would cost {there_cost} there, "
                f"more than {rule.cost_percent}% of {here_cost} on {rule.preferred}."
            )
        if not self.is_due:
            most = counted(rule.over_gpu_hours, "GPU-hour")
            now = self.waiting_gpu_milli_ms // (1_000 * HOUR)
            waits = f"when more than {most} wait for {rule.preferred}: now {now}."
            return f"It may move to {there} {waits}"
        return (
            f"It may move to {there}: {waiting} wait for {rule.preferred}, "
            f"and it would cost {there_cost} instead of {here_cost}."
        )


def expected_hold(job: Job, default_time: Duration | None, restart: Duration) -> ExpectedHold:
    """What a waiting job is expected to hold; where nothing says how long, for an hour."""
    spec = job.spec
    known = (job.expected, spec.time_limit, default_time)
    lasts = next((each for each in known if each is not None), HOUR)
    return ExpectedHold(
        gpu_milli=sum(group.each.amount(None).gpu_milli * group.count for group in spec.groups),
        lasts=lasts if spec.time_limit is None else min(lasts, spec.time_limit),
        restart=(spec.restart_cost or restart) if job.attempt else Duration(0),
    )


def waits_for(cluster: ClusterName, job: Job, pools: Mapping[PoolName, Pool], now: Instant) -> bool:
    """Does a pending job wait for this cluster, perhaps among others?"""
    spec = job.spec
    is_early = job.begin_at is not None and job.begin_at > now
    if is_early or (spec.clusters and cluster not in spec.clusters):
        return False
    named = (pools[name] for name in spec.pools or pools if name in pools)
    return any(takes(pool, spec, cluster) for pool in named)


def has_chosen(spec: JobSpec) -> bool:
    """Who names where a job goes has decided; no rule moves it, or keeps it."""
    return bool(spec.pools or spec.clusters)


def takes(pool: Pool, spec: JobSpec, cluster: ClusterName) -> bool:
    """Is this a pool of the cluster in which such a job may start?"""
    wanted = Spot.ONLY if pool.spot else Spot.NEVER
    is_there = pool.cluster == cluster and pool.starts and spec.spot in (wanted, Spot.ALLOWED)
    return is_there and pool.lets_in(spec.user, spec.queue, spec.job_class)


def can_slice(cluster: Cluster | None, spec: JobSpec) -> bool:
    """Has the cluster the kinds of slices that the job asks for?"""
    asked = [group.each.gpus for group in spec.groups if group.each.gpus is not None]
    return cluster is not None and all(cluster.abilities.serves(each.slice) for each in asked)


def suits(node: Node, group: TaskGroup) -> bool:
    """Could the node, empty and up, take a task of the group?"""
    each, where = group.each, group.where
    if node.cpu_milli < each.cpu_milli or node.memory_mib < each.memory_mib:
        return False
    is_kept_off = any(
        not any(
            each.key in (None, taint.key) and each.value in (None, taint.value)
            for each in where.tolerate
        )
        for taint in node.taints
    )
    if is_kept_off or not all(rule.accepts(node.labels) for rule in where.require):
        return False
    return each.gpus is None or _has(node, each.gpus)


def _has(node: Node, asked: GpuAsk) -> bool:
    found = [
        device
        for device in node.devices
        if (not asked.models or device.model in asked.models)
        and device.memory_mib >= asked.min_memory_mib
    ]
    if isinstance(asked.slice, Mig):
        profile = asked.slice.profile
        return any(mig_profile(device.model, profile) is not None for device in found)
    return len(found) >= asked.count


def _cost(gpu_milli: int, lasts: int, price_micros: int) -> int:
    return gpu_milli * lasts * price_micros // (1_000 * HOUR)
