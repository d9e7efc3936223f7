"""Keeping up with the world: what changed between two snapshots is all that is looked at.

What is remembered decides how long a plan takes, never what is in it:
after any history, everything here is as if it had been made from the newest snapshot alone.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from muster.model.cluster import Node, NodeState
from muster.model.job import HOLDING, Job, JobState
from muster.model.placement import Claim, Placement
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import Instant, JobId, NodeId, PoolName, replace
from muster.model.versioned import changed_keys
from muster.schedule.policy.search import CycleState, ShutKey, ShutKinds
from muster.schedule.policy.service import Service
from muster.schedule.room.index import Room, Tenant
from muster.schedule.room.ledger import Ledger
from muster.schedule.state.accounts import WITHOUT_END, Portion
from muster.schedule.state.books import Books, Holding, portions_of
from muster.schedule.state.calendar import Calendar, likely_time
from muster.schedule.state.neighbours import Neighbours
from muster.schedule.state.quota import Quotas
from muster.schedule.state.roster import Lane, Roster, WaitingJob, is_elastic, is_sociable
from muster.schedule.state.share import Branch, Shares, dominant_milli

Key = TypeVar("Key", JobId, NodeId)

MOST_SHUT = 20_000
"""So many answers are kept about which kinds of node are closed to which jobs."""


class HeldRoom(NamedTuple):
    """What the snapshot says one job holds; for a claim, also who has still to leave."""

    job: Job
    placements: tuple[Placement, ...]
    ends_at: Instant
    is_suspended: bool = False
    since: Instant = Instant(0)
    victims: tuple[JobId, ...] = ()
    is_claim: bool = False


class PlannerState:
    """The ledger, the books and the roster, made to agree with one snapshot after the other."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.policy = policy
        self.ledger = Ledger(snapshot, policy)
        shares = Shares(snapshot.queues, policy.share)
        self.books = Books(snapshot, Quotas(snapshot.queues), shares)
        self.books.quotas.resolve(snapshot.nodes.values())
        self.roster = Roster(snapshot, policy, self.ledger.needs)
        self.held: dict[JobId, Job] = {}
        self.neighbours = Neighbours(snapshot.nodes, snapshot.pools)
        self.elastic: set[JobId] = set()
        self._holds: dict[JobId, HeldRoom] = {}
        self._claimants: dict[JobId, JobId] = {}
        self._unsure: set[JobId] = set()
        self._shut: dict[ShutKey, ShutKinds] = {}
        self._shut_as_of: tuple[object, ...] = ()
        self._touched: set[JobId] = set()
        # The rules are known, but no node, job or allocation was seen yet.
        self._before = replace(snapshot, version=-1, nodes={}, jobs={}, allocations={})

    def follow(self, snapshot: Snapshot) -> None:
        """Agree with this snapshot."""
        old, self._before = self._before, snapshot
        stale = self._follow_nodes(old, snapshot)
        self._follow_rules(old, snapshot)
        changed = _changed(old.jobs, snapshot.jobs)
        for job_id in sorted(changed):
            self._follow_job(old.jobs.get(job_id), snapshot.jobs.get(job_id))
        changed |= _changed(old.allocations, snapshot.allocations) | self._unsure
        changed |= self._overdue(snapshot.now)
        if _limits(old) != _limits(snapshot):
            # Those that have no time limit of their own end at other times.
            changed |= self._holds.keys()
        self._follow_holds(changed, snapshot)
        self._count_again(stale)
        self.roster.settle()
        self._unsure = set()

    def start(self, hold: HeldRoom, portions: tuple[Portion, ...]) -> None:
        """The plan gave a job its room; whether it came to that, the next snapshot will tell."""
        job = hold.job
        self.ledger.occupy(job.id, hold.placements, _tenant(hold))
        self.books.open(self._holding(hold, portions))
        self._note(job.id, hold)
        self._unsure.add(job.id)

    def change(self, job_id: JobId, hold: HeldRoom | None) -> None:
        """The plan changes what a job holds: a claim, a victim, a job that resumes."""
        unsettled: dict[NodeId, Room] = {}
        self._follow_hold(job_id, hold, unsettled)
        for _, room in sorted(unsettled.items()):
            self.ledger.settle(room)
        self._unsure.add(job_id)

    def grow(self, job_id: JobId, more: tuple[Placement, ...]) -> None:
        """The plan gives a running job further placements."""
        hold = self._holds[job_id]
        self.change(job_id, hold._replace(placements=hold.placements + more))

    def shrink(self, job_id: JobId, less: tuple[Placement, ...]) -> None:
        """Take back what `grow` gave."""
        hold = self._holds[job_id]
        self.change(job_id, hold._replace(placements=hold.placements[: -len(less)]))

    def begin_cycle(self) -> CycleState:
        """How things stand before the first decision."""
        snapshot, books = self.snapshot, self.books
        self.ledger.forget_promises()
        books.shares.recount(snapshot, books.whole.gpu_milli or books.whole.cpu_milli)
        calendar = Calendar(snapshot, self.policy, books.quotas.capacity)
        calendar.take_stock(books)
        service = Service(snapshot, self.policy.preempt.waited_percent)
        as_of = (
            calendar.order,
            self.ledger.catalogue.version,
            snapshot.reservations,
            snapshot.classes,
            snapshot.pools,
        )
        if as_of != self._shut_as_of or len(self._shut) > MOST_SHUT:
            self._shut, self._shut_as_of = {}, as_of
        return CycleState(
            snapshot,
            self.policy,
            self.ledger,
            books,
            calendar,
            self.neighbours,
            service,
            self._shut,
        )

    def entry(self, job: Job) -> WaitingJob:
        """A job as it would wait, though it runs."""
        leaf = self._leaf(job)
        return self.roster.entry(job, Lane(job.spec.queue, job.spec.user, leaf))

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._before

    def hold(self, job_id: JobId) -> HeldRoom | None:
        """What the job holds."""
        return self._holds.get(job_id)

    def _follow_nodes(self, old: Snapshot, new: Snapshot) -> set[JobId]:
        """The jobs that hold something that counts for more or less than before."""
        changed = _changed(old.nodes, new.nodes)
        pairs = {each: (old.nodes.get(each), new.nodes.get(each)) for each in changed}
        resized = {each for each, (one, other) in pairs.items() if _size(one) != _size(other)}
        is_sorted = all(_sorting(one) == _sorting(other) for one, other in pairs.values())
        if resized or not is_sorted or _kinds(old) != _kinds(new):
            self.ledger.follow(new)
        for node_id in sorted(changed):
            if node_id in new.nodes:
                self.ledger.set_node(new.nodes[node_id])
            else:
                self.ledger.drop_node(node_id)
        self.neighbours.follow(new.nodes)
        if old.pools != new.pools or any(_place(one) != _place(two) for one, two in pairs.values()):
            self._meet_neighbours(new)
        if resized or any(_counts(one) != _counts(other) for one, other in pairs.values()):
            self.books.quotas.resolve(new.nodes.values())
        if not resized:
            return set()
        return self.books.follow_nodes(new.nodes) | {
            job_id
            for job_id, hold in self._holds.items()
            if any(placement.node in resized for placement in hold.placements)
        }

    def _meet_neighbours(self, snapshot: Snapshot) -> None:
        """Where things are has changed for some of those who want company, or none."""
        self.neighbours = Neighbours(snapshot.nodes, snapshot.pools)
        for hold in self._holds.values():
            self._tell_neighbours(hold, 1)

    def _follow_rules(self, old: Snapshot, new: Snapshot) -> None:
        """Queues, classes, pools and levels: what they decide about those who wait or hold."""
        if _rules(old) == _rules(new) and not self.policy.bursts:
            return
        if old.classes != new.classes:
            self.books.follow_classes(new.classes)
        if old.queues != new.queues:
            self.books.follow_queues(new.queues, new.nodes.values())
            self.roster.follow_shares(self.books.shares)
        for job in self.roster.follow(new):
            self._touched.add(job.id)
            self.roster.remove(job.id)
            self.roster.add(job, self.books.shares)

    def _count_again(self, jobs: set[JobId]) -> None:
        """What these hold counts for more or less; claims last, for they count their victims."""
        if not jobs:
            return
        claimants = {job_id for job_id, hold in self._holds.items() if hold.is_claim}
        for job_id in (*sorted(jobs - claimants), *sorted(claimants)):
            hold = self._holds.get(job_id)
            if hold is not None:
                self.books.close(job_id)
                self.books.open(self._holding(hold, self._portions(hold)))

    def take_touched(self) -> set[JobId]:
        """The jobs that came, went or changed since this was last asked."""
        touched, self._touched = self._touched, set()
        return touched

    def _follow_job(self, old: Job | None, new: Job | None) -> None:
        """Whether and where the job waits."""
        if old is not None:
            self._touched.add(old.id)
            self.roster.remove(old.id)
            self.held.pop(old.id, None)
            self._leaf(old).jobs -= 1
        if new is None:
            return
        self._leaf(new).jobs += 1
        self._touched.add(new.id)
        if new.state is JobState.HELD:
            self.held[new.id] = new
        elif new.state in (JobState.PENDING, JobState.SUSPENDED):
            self.roster.add(new, self.books.shares)

    def _follow_holds(self, changed: set[JobId], new: Snapshot) -> None:
        """What each job holds; claims last, because they are measured by who has to leave."""
        claimants = {self._claimants[each] for each in changed if each in self._claimants} | {
            each for each in changed if _claim_of(new.jobs.get(each)) is not None
        }
        unsettled: dict[NodeId, Room] = {}
        for job_id in (*sorted(changed - claimants), *sorted(claimants)):
            self._follow_hold(job_id, hold_of(job_id, new, self.policy), unsettled)
        for _, room in sorted(unsettled.items()):
            self.ledger.settle(room)

    def _overdue(self, now: Instant) -> set[JobId]:
        """Those that run longer than they were expected to: now they are expected to end later."""
        found: set[JobId] = set()
        for pool in self.books.held_by_pool:
            for ends_at, job_id, _ in self.books.ends(pool):
                if ends_at > now:
                    break
                found.add(job_id)
        return found

    def _follow_hold(
        self, job_id: JobId, new: HeldRoom | None, unsettled: dict[NodeId, Room]
    ) -> None:
        old = self._holds.get(job_id)
        if old == new:
            return
        if old is not None and new is not None and _is_renewed(old, new):
            self.ledger.occupy(job_id, new.placements, _tenant(new))
            self.books.renew(new.job, ends_at=new.ends_at, since=new.since)
            self._holds[job_id] = new
            return
        left = [] if old is None else self.ledger.vacate(job_id, old.placements)
        entered = []
        if new is not None:
            entered = self.ledger.occupy(job_id, new.placements, _tenant(new))
        if old is None or new is None or not _same_room(old, new):
            unsettled.update((room.node.id, room) for room in (*left, *entered))
        self.books.close(job_id)
        if new is not None:
            self.books.open(self._holding(new, self._portions(new)))
        self._note(job_id, new)

    def _note(self, job_id: JobId, hold: HeldRoom | None) -> None:
        old = self._holds.pop(job_id, None)
        for victim in () if old is None else old.victims:
            self._claimants.pop(victim, None)
        if old is not None:
            self._tell_neighbours(old, -1)
        self.elastic.discard(job_id)
        if hold is not None:
            self._holds[job_id] = hold
            self._claimants.update(dict.fromkeys(hold.victims, job_id))
            self._tell_neighbours(hold, 1)
            if is_elastic(hold.job.spec):
                self.elastic.add(job_id)

    def _tell_neighbours(self, hold: HeldRoom, sign: int) -> None:
        spec = hold.job.spec
        is_away = hold.is_claim or hold.is_suspended
        if is_away or spec.labels or is_sociable(spec):
            self.neighbours.count(spec, hold.placements, is_away=is_away, sign=sign)

    def _portions(self, hold: HeldRoom) -> tuple[Portion, ...]:
        nodes = self.snapshot.nodes
        return portions_of(hold.placements, nodes, is_suspended=hold.is_suspended)

    def _holding(self, hold: HeldRoom, portions: tuple[Portion, ...]) -> Holding:
        whole, holdings = self.books.whole, self.books.holdings
        milli = gpu_milli = 0
        for each in portions:
            milli += dominant_milli(each.amount, whole)
            gpu_milli += each.amount.gpu_milli
        return Holding(
            hold.job,
            hold.placements,
            portions,
            milli,
            self._by_pool(hold, portions),
            hold.ends_at,
            gpu_milli,
            hold.since,
            tuple([holdings[each] for each in hold.victims if each in holdings]),
            not hold.is_suspended,
            hold.is_claim,
            _is_exclusive(hold),
        )

    def _by_pool(
        self, hold: HeldRoom, portions: tuple[Portion, ...]
    ) -> tuple[tuple[PoolName, int], ...]:
        """What its pools get back when the job ends: whole nodes, if it has them to itself."""
        whole = self.books.whole
        amounts = [(portion.pool, portion.amount) for portion in portions]
        if _is_exclusive(hold):
            names = dict.fromkeys(placement.node for placement in hold.placements)
            nodes = (self.snapshot.nodes.get(name) for name in names)
            amounts = [(node.pool, node.capacity) for node in nodes if node is not None]
        if len(amounts) == 1:
            return ((amounts[0][0], dominant_milli(amounts[0][1], whole)),)
        found: dict[PoolName, int] = {}
        for pool, amount in amounts:
            found[pool] = found.get(pool, 0) + dominant_milli(amount, whole)
        return tuple(found.items())

    def _leaf(self, job: Job) -> Branch:
        return self.books.shares.leaf(job.spec.queue, job.spec.user)


def hold_of(job_id: JobId, snapshot: Snapshot, policy: Policy) -> HeldRoom | None:
    """What the snapshot says that the job holds."""
    job, allocation = snapshot.jobs.get(job_id), snapshot.allocations.get(job_id)
    if job is None:
        return None
    claim = _claim_of(job)
    if claim is not None:
        left = tuple(each for each in claim.victims if holds_room(snapshot.jobs.get(each)))
        return HeldRoom(job, claim.placements, claim.until, victims=left, is_claim=True)
    if allocation is None or job.state not in HOLDING | {JobState.SUSPENDED}:
        return None
    since = allocation.placed_at if allocation.started_at is None else allocation.started_at
    return HeldRoom(
        job,
        allocation.placements,
        _ends_at(job, allocation.placements, since, snapshot, policy),
        is_suspended=job.state is JobState.SUSPENDED,
        since=Instant(max(allocation.started_at or 0, allocation.checkpointed_at or 0)),
    )


def _changed(old: Mapping[Key, object], new: Mapping[Key, object]) -> set[Key]:
    """Which values are not the very same object any more. Unchanged values are shared."""
    if old is new:
        return set()
    noted = changed_keys(old, new)
    if noted is not None:
        return {key for key in noted if old.get(key) is not new.get(key)}
    before = old.get
    changed = {key for key, value in new.items() if before(key) is not value}
    if len(old) + len(changed) != len(new) or changed:
        changed.update(key for key in old if key not in new)
    return changed


def _rules(snapshot: Snapshot) -> tuple[object, ...]:
    """What decides who waits how."""
    return (snapshot.queues, snapshot.classes, snapshot.pools, snapshot.levels)


def _kinds(snapshot: Snapshot) -> tuple[object, ...]:
    """What sorts nodes beside themselves."""
    return (snapshot.clusters, snapshot.pools, snapshot.reservations, snapshot.usual)


def _limits(snapshot: Snapshot) -> tuple[object, ...]:
    """What decides how long jobs without a time limit of their own are taken to run."""
    defaults = {name: pool.default_time for name, pool in snapshot.pools.items()}
    return (bool(snapshot.reservations), defaults)


def _sorting(node: Node | None) -> object:
    return None if node is None else (node.labels, node.taints, node.pool, node.cluster)


def _size(node: Node | None) -> tuple[int, int, tuple[tuple[str, int], ...]] | None:
    if node is None:
        return None
    devices = tuple((device.model, device.memory_mib) for device in node.devices)
    return node.cpu_milli, node.memory_mib, devices


def _counts(node: Node | None) -> tuple[str, ...]:
    """What the node adds to the capacity of which percentages are taken, beside its size."""
    if node is None or node.state is NodeState.DOWN:
        return ()
    return (node.pool, *(device.model for device in node.devices))


def _place(node: Node | None) -> tuple[str, ...]:
    return () if node is None else (node.pool, *node.where)


def _claim_of(job: Job | None) -> Claim | None:
    """The room that is held for a job, which counts only while it waits."""
    return job.claim if job is not None and job.state is JobState.PENDING else None


def holds_room(job: Job | None) -> bool:
    """Does the job still have all that its allocation names?"""
    return job is not None and job.state in HOLDING


def _same_room(old: HeldRoom, new: HeldRoom) -> bool:
    is_same = old.placements is new.placements or old.placements == new.placements
    is_ready = bool(old.victims) == bool(new.victims)
    return is_same and is_ready and old.is_suspended == new.is_suspended


def _is_renewed(old: HeldRoom, new: HeldRoom) -> bool:
    """Does the job hold the same as before, though its state or its times are others?"""
    is_alike = (old.is_claim, old.victims) == (new.is_claim, new.victims)
    return is_alike and old.job.spec == new.job.spec and _same_room(old, new)


def _tenant(hold: HeldRoom) -> Tenant:
    is_unready = bool(hold.victims)
    return Tenant(hold.placements, _is_exclusive(hold), hold.is_suspended, is_unready, hold.ends_at)


def _is_exclusive(hold: HeldRoom) -> bool:
    """Has the job its nodes to itself?"""
    groups = hold.job.spec.groups
    return not hold.is_suspended and any(group.where.exclusive for group in groups)


def _ends_at(
    job: Job,
    placements: tuple[Placement, ...],
    since: Instant,
    snapshot: Snapshot,
    policy: Policy,
) -> Instant:
    is_bound = bool(snapshot.reservations)
    longest = -1
    for name in {placement.pool for placement in placements}:
        pool = snapshot.pools.get(name)
        if pool is not None:
            ran = snapshot.now - since
            longest = max(longest, likely_time(job, pool, policy, is_bound=is_bound, ran=ran))
    return Instant(WITHOUT_END if longest < 0 else min(WITHOUT_END, since + longest))
