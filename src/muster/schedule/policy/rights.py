"""Who may take room from whom.

A chain of preemptions cannot come back to where it began. By class, priority strictly rises.
By service, the class stays and the level strictly falls; who has waited long has a while to itself.
A site may say that only those are stopped so that save their work, and have shown it.
Reclaiming, a queue within its guarantee takes from one beyond it, and a job that starts within its
guarantee is protected from other queues; the one who lost the room cannot take it back in that way,
because with him his queue was beyond its guarantee.
"""

from collections.abc import Iterable, Sequence

from muster.model.job import JobState
from muster.model.levels import HIGHEST_LEVEL, has_saved
from muster.model.queue import lineage
from muster.model.snapshot import Snapshot
from muster.model.value import ClassName, JobId, QueuePath
from muster.schedule.policy.search import CycleState, Search
from muster.schedule.state.accounts import Account, Portion
from muster.schedule.state.books import Holding
from muster.schedule.state.roster import WaitingJob

TAKEABLE = frozenset({JobState.STARTING, JobState.RUNNING})


class Rights:
    """What one waiting job may take from those who run."""

    def __init__(self, entry: WaitingJob, cycle: CycleState) -> None:
        self._cycle = cycle
        self._quotas = cycle.books.quotas
        self._queue = entry.job.spec.queue
        self._needed = _needed(entry)
        self._sides_of: dict[QueuePath, tuple[QueuePath | None, QueuePath | None]] = {}
        self._open: dict[tuple[object, ...], bool] = {}
        self._portions = _likely_portions(entry, cycle)
        self.lower = _lower_classes(entry, cycle.snapshot) if _by_class(cycle) else ()
        self.reclaims = cycle.policy.preempt.reclaim and self._has_guarantee()
        self.peers = self._peers(entry)
        self._level = entry.level

    @property
    def any(self) -> bool:
        """Is there anything at all that the job might take?"""
        held = self._cycle.books.by_class
        if self.reclaims or any(held.get(ClassName(name)) for name in self.lower):
            return True
        return any(map(self.outranks, self.those_beside()))

    def outranks(self, victim: Holding) -> bool:
        """Is the victim of a lower class, or of the same and has it had more service?"""
        name = victim.spec.job_class
        if name in self.lower:
            return True
        if name != self.peers or not self.is_below(victim) or self._rests(victim):
            return False
        return self._cycle.policy.preempt.by_service or self._has_saved(victim)

    def is_below(self, peer: Holding) -> bool:
        """Of the same class: does the job stand on a lower level than this one?"""
        return self._cycle.service.level(peer) > self._level

    def closeness(self, victim: Holding) -> int:
        """Others go before peers, and of these go first who had the most service."""
        if victim.spec.job_class != self.peers:
            return 0
        return 1 + HIGHEST_LEVEL - self._cycle.service.level(victim)

    def may_take(self, victim: Holding) -> bool:
        """May this job stop that one, as things stand?"""
        return is_takeable(victim, self._cycle) and self._is_open(victim)

    def likes(self, victim: Holding) -> bool:
        """The same, as things stood when this was first asked about a queue: quick, and a hint."""
        _, his = self._sides(victim.spec.queue)
        key = (his, self.outranks(victim), victim.portions[0][:2])
        known = self._open.get(key)
        if known is None:
            known = self._open[key] = self._is_open(victim)
        return known and is_takeable(victim, self._cycle) and not self._needs(victim)

    def those_beside(self) -> Iterable[Holding]:
        """Who runs of the same class, and may be stopped by service at all."""
        if self.peers is None:
            return ()
        books, by_all = self._cycle.books, self._cycle.policy.preempt.by_service
        return (books.by_class if by_all else books.with_checkpoint).get(self.peers, {}).values()

    def _peers(self, entry: WaitingJob) -> ClassName | None:
        rules, name = self._cycle.policy.preempt, entry.job.spec.job_class
        if rules.by_service:
            return name
        # Who takes back a guarantee takes from all who borrow, by the work that would be lost.
        may_take = rules.by_service_if_saved and not self.reclaims
        return name if may_take and self._cycle.books.with_checkpoint.get(name) else None

    def _has_saved(self, victim: Holding) -> bool:
        return has_saved(victim.job, self._cycle.snapshot.classes.get(victim.spec.job_class))

    def _rests(self, victim: Holding) -> bool:
        return self._cycle.service.rests(victim)

    def _needs(self, victim: Holding) -> bool:
        """A job does not stop the one it waits for, or whose company it wants."""
        jobs, labels = self._needed
        return victim.job.id in jobs or not labels.isdisjoint(victim.spec.labels.items())

    def _is_open(self, victim: Holding) -> bool:
        _, his = self._sides(victim.spec.queue)
        if his is not None and not self._is_borrowing(his, victim):
            return False
        return self.has_right(self._portions, victim)

    def _sides(self, queue: QueuePath) -> tuple[QueuePath | None, QueuePath | None]:
        known = self._sides_of.get(queue)
        if known is None:
            known = self._sides_of[queue] = sides(self._queue, queue)
        return known

    def has_right(self, portions: Sequence[Portion], victim: Holding) -> bool:
        """With what it would really hold, has it the right by rank, or by its guarantee?"""
        mine, _ = self._sides(victim.spec.queue)
        return self.outranks(victim) or (
            mine is not None and self.reclaims and self._is_within(mine, portions)
        )

    def _has_guarantee(self) -> bool:
        return any(self._is_within(path, self._portions) for path in lineage(self._queue))

    def _is_within(self, path: QueuePath, portions: Sequence[Portion]) -> bool:
        account = self._quotas.accounts.get(path)
        return account is not None and self._quotas.is_within_guarantee(account, portions)

    def _is_borrowing(self, path: QueuePath, victim: Holding) -> bool:
        account: Account | None = self._quotas.accounts.get(path)
        return account is None or self._quotas.is_borrowing(account, victim.portions)


def sides(mine: QueuePath, his: QueuePath) -> tuple[QueuePath | None, QueuePath | None]:
    """The queues just below the nearest common ancestor on each way down; None on its own level."""
    ours, theirs = list(lineage(mine))[::-1], list(lineage(his))[::-1]
    depth = 0
    while depth < min(len(ours), len(theirs)) and ours[depth] == theirs[depth]:
        depth += 1
    return (
        ours[depth] if depth < len(ours) else None,
        theirs[depth] if depth < len(theirs) else None,
    )


def is_takeable(victim: Holding, cycle: CycleState) -> bool:
    """Is the job of a kind that can be stopped, and has it had its minimum run time?"""
    job, job_class = victim.job, cycle.snapshot.classes.get(victim.spec.job_class)
    if job.state not in TAKEABLE or job_class is None:
        return False
    if not (job.spec.preemptible and job_class.preemptible):
        return False
    allocation = cycle.snapshot.allocations.get(job.id)
    if allocation is None:
        return False
    started_at = allocation.started_at
    ran = 0 if started_at is None else cycle.now - started_at
    return ran >= max(job_class.min_run, cycle.policy.preempt.min_run)


def _needed(entry: WaitingJob) -> tuple[set[JobId | None], set[tuple[str, str]]]:
    spec = entry.job.spec
    rules = (rule for group in spec.groups for rule in group.where.near)
    return {each.job for each in spec.after}, {(rule.key, rule.value) for rule in rules}


def _by_class(cycle: CycleState) -> bool:
    return cycle.policy.preempt.by_class


def _lower_classes(entry: WaitingJob, snapshot: Snapshot) -> tuple[str, ...]:
    """Classes that this one names, and only while its own priority is the higher one."""
    own = entry.job_class
    named = (snapshot.classes.get(name) for name in own.preempts)
    return tuple(each.name for each in named if each is not None and each.priority < own.priority)


def _likely_portions(entry: WaitingJob, cycle: CycleState) -> tuple[Portion, ...]:
    """What the job would hold where it is tried first."""
    found: list[Portion] = []
    for group_need in entry.shape.groups:
        search = Search(entry, group_need, cycle)
        order = cycle.ledger.catalogue.tiers(search.need)
        if order:
            option = search.cycle.ledger.catalogue.options(search.need)[order[0]][0]
            found.append(search.portion(option.pool, option.gpus, search.group.fewest))
    return tuple(found)
