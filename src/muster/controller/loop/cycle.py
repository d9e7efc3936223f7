"""Observe, plan, check, commit, act: the loop's two halves.

Live, the halves run in threads of their own, so that what happens is heard and what was decided is
done while the next plan is being made. In pretend time `simulator.run` has them take turns.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from threading import Lock

from muster.backends.base import Action, Backend, Cut, Limit, Mend, Run, Signal, Supplies, Supply
from muster.controller.loop.commit import events_of
from muster.controller.loop.devices import with_devices
from muster.controller.loop.orders import (
    Begin,
    Order,
    Refresh,
    grace_of,
    orders_after,
    orders_again,
    overdue,
)
from muster.controller.loop.supplies import Readers, SupplySource
from muster.controller.planner.client import PlannerClient
from muster.controller.world.journal import Commit
from muster.controller.world.record import Record
from muster.controller.world.reservations import current_windows
from muster.controller.world.transaction import Change, Transaction
from muster.lifecycle.holding import ATTEMPTING
from muster.model.cluster import Node, NodeState
from muster.model.errors import BackendDownError, MusterError, StaleSnapshotError, StoreError
from muster.model.event import (
    ClusterSeen,
    DeviceCut,
    Event,
    JobEnded,
    NodeChanged,
    NodeGone,
    NodeSeen,
    SignalAsked,
)
from muster.model.gpu import Mig
from muster.model.job import NodeFailed
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.plan import Plan
from muster.model.site import Site, runs_images_on_host
from muster.model.value import ClusterName, DeviceId, Instant, NodeId, Value
from muster.stores.base import Batch, History, Store

log = logging.getLogger("muster.cycle")


LOOK_EVERY_MS = 30_000
"""Whose reservation is over is looked at when one ends, and so often."""


class Parts(Value):
    """What the loop works with.

    mail_program: what sends mail; None if nothing does, empty if another process knows.
    """

    store: Store
    history: History
    record: Record
    write: Commit
    planner: PlannerClient
    backends: Mapping[ClusterName, Backend]
    mail_program: str | None = ""
    supplies: SupplySource = SupplySource()


class BackendDriver:
    """Sends backends the orders that follow from commits, and commits what they report."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = Lock()
        self._due: list[tuple[ClusterName, Order]] = []
        self._heard: tuple[Event, ...] = ()
        self._unmet: set[ClusterName] = set()
        # By which rules it was last seen whose reservation is over, and when to look again.
        self._looked_at: Site | None = None
        self._look_at = Instant(0)
        self._late: set[tuple[ClusterName, Limit]] = set()
        self._readers = Readers()

    def note(self, batch: Batch, changes: tuple[Change, ...]) -> bool:
        """Remember what follows from a commit; is there anything?"""
        following = [
            *self._of_nodes(batch),
            *self._orders(changes),
            *self._signals(batch),
            *self._refreshed(batch),
        ]
        if not following:
            return False
        with self._lock:
            self._due += following
        return True

    def take_over(self, now: Instant) -> None:
        """Lead from here on: find out what runs, and send again what may not have arrived."""
        record = self._parts.record
        self._heard = ()
        with self._lock:
            self._due = []
        self._unmet = set(self._parts.backends)
        for name, backend in self._parts.backends.items():
            held = record.every_allocation()
            backend.adopt(tuple(each for each in held if each.cluster == name))
            self._commit(backend.observe(now))
        allocations = record.every_allocation()
        again: list[tuple[ClusterName, Order]] = [*_unstarted_cuts(allocations, record.nodes)]
        for allocation in allocations:
            job = record.jobs[allocation.job]
            orders = orders_again(job, allocation, record.site.classes)
            again.extend((allocation.cluster, order) for order in orders)
        with self._lock:
            # What was committed meanwhile is due as well; sent twice it happens once.
            self._due = again + self._due

    def act(self) -> None:
        """Send every order that is due; what a backend cannot take now stays due."""
        if not self._due:
            return
        with self._lock:
            due, self._due = self._due, []
        unheard = [(cluster, order) for cluster, order in due if not self._sent(cluster, order)]
        with self._lock:
            self._due = unheard + self._due

    def observe(self, now: Instant) -> bool:
        """Commit what backends report; did they report anything?"""
        events = (*self._heard, *_observed(self._parts.backends.values(), now))
        if not events:
            return False
        self._heard = ()
        try:
            self._commit(events)
        except (StoreError, StaleSnapshotError):
            # Backends report it once: it is written with what they report next.
            self._heard = events
            raise
        return True

    def _commit(self, events: tuple[Event, ...]) -> None:
        met = self._met_in(events)
        self._parts.write(partial(_hear, events, met)).result()
        self._unmet -= met

    def _met_in(self, events: tuple[Event, ...]) -> frozenset[ClusterName]:
        """The clusters that answer for the first time since we lead, and say all their nodes."""
        answer = {
            event.cluster.name
            for event in events
            if isinstance(event, ClusterSeen) and event.cluster.reachable
        }
        return frozenset(answer & self._unmet)

    def tend(self, now: Instant) -> None:
        """Act, observe, and act on what follows from that."""
        self._end_with_reservations(now)
        self.act()
        if self.observe(now):
            self.act()

    def _end_with_reservations(self, now: Instant) -> None:
        """Who asked for a reservation by its name has to leave when it ends."""
        record = self._parts.record
        site = record.site
        if not site.reservations or (site is self._looked_at and now < self._look_at):
            return
        ends = [
            each.ends_at for each in current_windows(site.reservations, now) if each.ends_at > now
        ]
        self._looked_at, self._look_at = site, min([*ends, Instant(now + LOOK_EVERY_MS)])
        late = {
            (held.cluster, order)
            for held in record.every_allocation()
            if (order := overdue(record.jobs.get(held.job), held, site, now)) is not None
        }
        with self._lock:
            self._due += sorted(late - self._late, key=lambda each: each[1].job)
        self._late = late

    def _of_nodes(self, batch: Batch) -> Iterator[tuple[ClusterName, Order]]:
        for event in batch.events:
            if not isinstance(event, (DeviceCut, NodeChanged)):
                continue
            node = self._parts.record.nodes.get(event.node)
            if node is None:
                continue
            match event:
                case DeviceCut(device=device, instances=instances):
                    yield node.cluster, Cut(node=node.id, device=device, instances=instances)
                case NodeChanged(state=NodeState.UP):
                    yield node.cluster, Mend(node=node.id)
                case NodeChanged():
                    continue

    def _orders(self, changes: tuple[Change, ...]) -> Iterator[tuple[ClusterName, Order]]:
        classes = self._parts.record.site.classes
        for change in changes:
            allocation = change.holds or change.held
            if change.holds is None:
                with self._lock:
                    self._readers.forget(change.after.id)
            if allocation is not None:
                for order in orders_after(change, classes):
                    yield allocation.cluster, order

    def _signals(self, batch: Batch) -> Iterator[tuple[ClusterName, Order]]:
        for event in batch.events:
            if not isinstance(event, SignalAsked):
                continue
            allocation = self._parts.record.allocations.get(event.job)
            if allocation is not None:
                yield (
                    allocation.cluster,
                    Signal(
                        job=event.job,
                        attempt=allocation.attempt,
                        signal=event.signal,
                        step=event.step,
                        task=event.task,
                    ),
                )

    def _refreshed(self, batch: Batch) -> Iterator[tuple[ClusterName, Order]]:
        """Who reads what this batch has written or removed is told."""
        record, supplies = self._parts.record, self._parts.supplies
        changed = frozenset(
            (each.key.namespace, source)
            for each in (*batch.objects, *batch.removed)
            if (source := supplies.source_of(each.key)) is not None
        )
        with self._lock:
            readers = tuple(self._readers.of(changed))
        for job in readers:
            allocation = record.allocations.get(job)
            if allocation is not None:
                yield allocation.cluster, Refresh(job=record.jobs[job], allocation=allocation)

    def _sent(self, cluster: ClusterName, order: Order) -> bool:
        backend = self._parts.backends.get(cluster)
        if backend is None:
            log.warning("nobody runs cluster %s; cannot say %s", cluster, order)
            return True
        try:
            action = self._whole(order) if isinstance(order, Begin | Refresh) else order
            if action is not None:
                backend.do(action)
        except (MusterError, OSError) as error:
            log.warning("cannot tell %s to %s: %s", cluster, type(order).__name__, error)
            return False
        return True

    def _whole(self, order: Begin | Refresh) -> Run | Supply | None:
        """What is sent; None when the attempt is over, or reads nothing that could change."""
        parts, job, attempt = self._parts, order.job, order.allocation.attempt
        held = parts.record.allocations.get(job.id)
        if held is None or held.attempt != attempt:
            return None
        launch = parts.store.launch(job.spec.array.array if job.spec.array else job.id)
        pods = () if launch is None else launch.pods
        # Before it is looked up: what changes from here on is told again.
        with self._lock:
            self._readers.note(job.id, pods)
        supplies = parts.supplies.of(pods)
        if isinstance(order, Begin):
            return _run(order, parts, launch, supplies)
        return Supply(job=job.id, attempt=attempt, sources=supplies) if supplies else None


def decide(parts: Parts, now: Instant) -> Plan:
    """Plan what is, check the plan, commit it."""
    snapshot = parts.record.snapshot(now)
    plan = parts.planner.plan(snapshot, parts.record.site.policy)
    if plan.moves or plan.measures or parts.record.claimed or parts.record.endable:
        parts.write(
            lambda transaction: transaction.apply_all(events_of(plan, snapshot, transaction))
        ).result()
    return plan


def _run(order: Begin, parts: Parts, launch: Launch | None, supplies: Supplies) -> Run:
    job, allocation = order.job, order.allocation
    names = {placed.node for placed in allocation.placements}
    return Run(
        job=job,
        allocation=allocation,
        launch=launch or job.spec.launch,
        nodes={name: parts.record.nodes[name] for name in sorted(names)},
        checkpoint=job.checkpoint,
        restarts=allocation.attempt - 1,
        images_on_host=runs_images_on_host(parts.record.site, job.spec.queue),
        grace=grace_of(job, parts.record.site.classes),
        confinement=parts.record.site.confinement,
        supplies=supplies,
    )


def _unstarted_cuts(
    allocations: Iterable[Allocation], nodes: Mapping[NodeId, Node]
) -> Iterator[tuple[ClusterName, Action]]:
    """Cuts that attempts still count on which were not seen to run."""
    wanted = {
        (allocation.cluster, placed.node, share.device)
        for allocation in allocations
        if allocation.started_at is None
        for placed in allocation.placements
        for share in placed.devices
        if isinstance(share.slice, Mig)
    }
    for cluster, name, device_id in sorted(wanted):
        for device in nodes[name].devices:
            if device.id == device_id:
                yield cluster, Cut(node=name, device=device_id, instances=device.mig)


def _hear(events: tuple[Event, ...], met: frozenset[ClusterName], transaction: Transaction) -> None:
    """Commit what backends report. met: nodes that these clusters do not name are no more.

    A cluster that does not answer names none, and what runs there goes on.
    """
    seen = {event.node.id for event in events if isinstance(event, NodeSeen)}
    known = [node.id for node in transaction.record.nodes.values() if node.cluster in met]
    _apply(events, transaction)
    gone = {name for name in known if name not in seen}
    for job_id, allocation in transaction.record.allocations.items():
        lost = sorted(gone & {placed.node for placed in allocation.placements})
        if lost:
            why = NodeFailed(node=lost[0])
            transaction.apply(
                JobEnded(at=transaction.now, job=job_id, attempt=allocation.attempt, why=why)
            )
    transaction.apply_all(NodeGone(at=transaction.now, node=name) for name in sorted(gone))


def _observed(backends: Iterable[Backend], now: Instant) -> Iterator[Event]:
    for backend in backends:
        try:
            yield from backend.observe(now)
        except BackendDownError as error:
            log.warning("%s", error)


def _apply(events: tuple[Event, ...], transaction: Transaction) -> None:
    for event in events:
        known = transaction.node(event.node.id) if isinstance(event, NodeSeen) else None
        transaction.apply_all(with_devices(event, known, transaction.record.allocations))
    if any(isinstance(event, NodeSeen) for event in events):
        transaction.apply_all(tuple(_lost(transaction)))


def _lost(transaction: Transaction) -> Iterator[Event]:
    """Attempts on devices that failed are over; their jobs wait for others."""
    sick = {
        (node.id, device.id)
        for node in transaction.nodes.values()
        if node is not None
        for device in node.devices
        if not device.healthy
    }
    if not sick:
        return
    for job_id, allocation in transaction.record.allocations.items():
        job = transaction.job(job_id)
        if job is None or job.state not in ATTEMPTING:
            continue
        node = _sick_node(allocation, sick)
        if node is not None:
            why = NodeFailed(node=node)
            yield JobEnded(at=transaction.now, job=job_id, attempt=allocation.attempt, why=why)


def _sick_node(allocation: Allocation, sick: set[tuple[NodeId, DeviceId]]) -> NodeId | None:
    for placed in allocation.placements:
        if any((placed.node, share.device) in sick for share in placed.devices):
            return placed.node
    return None
