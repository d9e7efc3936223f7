"""Making room: the running jobs with the least lost work go, and only if the other then starts.

Where service counts, those of the same class go by how much of it they had.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import NamedTuple

from muster.model.gpu import Mig
from muster.model.plan import Preempt
from muster.model.queue import PreemptMode
from muster.model.value import JobId
from muster.schedule.policy.place import Placed, place
from muster.schedule.policy.rights import Rights
from muster.schedule.policy.search import CycleState, Search
from muster.schedule.policy.walk import Clearance, Walk
from muster.schedule.room.index import Room, Tenant
from muster.schedule.state.books import Holding
from muster.schedule.state.roster import WaitingJob


class Clearing(NamedTuple):
    """Room that a job will have once the victims are gone."""

    placed: Placed
    victims: tuple[Holding, ...]


def clearing(
    entry: WaitingJob, cycle: CycleState, rights: Rights, spared: set[JobId]
) -> Clearing | None:
    """The cheapest victims found whose leaving lets the whole job start; None if there are none."""
    # Many small victims may be cheapest; where they are scattered, only large ones clear a node.
    for least_milli in (0, max(1, entry.shape.groups[0].need.gpu_milli)):
        willing = (
            victim
            for victim in _cheapest(rights, cycle, least_milli)
            if victim.job.id not in spared and rights.likes(victim)
        )
        found = _rehearsed(entry, cycle, rights, willing)
        if found is not None:
            return found
    return None


def lost_gpu_ms(holding: Holding, cycle: CycleState) -> int:
    """GPU-time since the last checkpoint that was really written, plus what a restart costs."""
    age = max(0, cycle.now - holding.since) if holding.since else 0
    restart = holding.spec.restart_cost or cycle.policy.preempt.restart_cost
    return holding.gpu_milli * (age + restart) // 1_000


def _rehearsed(
    entry: WaitingJob, cycle: CycleState, rights: Rights, willing: Iterator[Holding]
) -> Clearing | None:
    """Let them leave for a moment and see whether the job would really start."""
    with Vacancy(cycle) as vacancy:
        many = list(willing) if len(entry.shape.groups) > 1 else willing
        chosen = sorted(_enough(entry, many, cycle), key=_dearness(rights, cycle))
        for victim in chosen:
            # Each one that leaves brings his queue nearer to its guarantee, so ask again.
            if rights.may_take(victim):
                vacancy.remove(victim)
        placed = vacancy.rehearse(entry)
        if placed is None:
            return None
        vacancy.keep_only_needed(entry, placed)
        placed = vacancy.rehearse(entry)
        victims = tuple(victim for victim in chosen if vacancy.has_left(victim))
    if placed is None or not all(rights.has_right(placed.portions, each) for each in victims):
        return None
    return Clearing(placed, victims)


def _enough(entry: WaitingJob, willing: Iterable[Holding], cycle: CycleState) -> list[Holding]:
    """The first of them that make room for each group; maybe more than needed."""
    chosen: dict[JobId, Holding] = {}
    for group_need in entry.shape.groups:
        cleared = _cleared(Search(entry, group_need, cycle), willing)
        if cleared is None:
            return []
        chosen |= cleared.leaving
    return list(chosen.values())


def _cleared(search: Search, willing: Iterable[Holding]) -> Clearance | None:
    options = [
        (tier, option)
        for tier in search.cycle.ledger.catalogue.tiers(search.need)
        for option in search.cycle.ledger.catalogue.options(search.need)[tier]
    ]
    victims = willing if len(options) == 1 else list(willing)
    for tier, option in options:
        one_by_one = ((each.ends_at, (each,)) for each in victims)
        found = Walk(search, tier, option).until_it_fits(one_by_one)
        if found is not None:
            return found
    return None


def _cheapest(rights: Rights, cycle: CycleState, least_milli: int) -> Iterator[Holding]:
    """Jobs that might be taken, cheapest first; those alike in class and size are in order."""
    rows = (
        row
        for (job_class, gpu_milli, _), row in cycle.books.losses()
        if gpu_milli >= least_milli
        and job_class != rights.peers
        and (rights.reclaims or job_class in rights.lower)
    )

    def loss(item: tuple[int, int, Holding]) -> tuple[int, int]:
        return (lost_gpu_ms(item[2], cycle), item[1])

    found = (holding for _, _, holding in merge(*rows, key=loss))
    peers = _peers(rights, cycle, least_milli)
    return islice(chain(found, peers), cycle.policy.preempt.candidates)


def _peers(rights: Rights, cycle: CycleState, least_milli: int) -> Iterator[Holding]:
    """Jobs of the same class; time changes their order, so it is found once in each plan."""
    if rights.peers is None:
        return
    ranked = cycle.service.ranked
    if rights.peers not in ranked:
        ranked[rights.peers] = sorted(rights.those_beside(), key=_dearness(rights, cycle))
    for peer in ranked[rights.peers]:
        # They come by their level: behind the first that is too low, guarantees alone count.
        if not rights.reclaims and not rights.is_below(peer):
            return
        if peer.gpu_milli >= least_milli:
            yield peer


def _dearness(rights: Rights, cycle: CycleState) -> Callable[[Holding], tuple[int, int, int]]:
    return lambda each: (rights.closeness(each), lost_gpu_ms(each, cycle), -each.job.id)


def preemption(victim: Holding, for_job: JobId, cycle: CycleState) -> Preempt:
    """The measure that makes a victim leave."""
    return Preempt(
        job=victim.job.id,
        attempt=victim.job.attempt,
        for_job=for_job,
        mode=mode_of(victim, cycle),
        grace=cycle.snapshot.classes[victim.spec.job_class].grace,
        lost_gpu_ms=lost_gpu_ms(victim, cycle),
    )


def mode_of(victim: Holding, cycle: CycleState) -> PreemptMode:
    """What becomes of the victim; one that cannot be suspended is requeued instead."""
    mode = victim.spec.preempt_mode or cycle.snapshot.classes[victim.spec.job_class].preempt_mode
    if mode is PreemptMode.SUSPEND and not _can_be_suspended(victim, cycle):
        return PreemptMode.REQUEUE
    return mode


def _can_be_suspended(victim: Holding, cycle: CycleState) -> bool:
    # The room that it leaves may be cut again, and no process outlives its MIG instance.
    has_instances = any(
        isinstance(share.slice, Mig) for each in victim.placements for share in each.devices
    )
    snapshot = cycle.snapshot
    cluster = snapshot.clusters[snapshot.allocations[victim.job.id].cluster]
    return cluster.abilities.suspend and not has_instances


class Vacancy:
    """The ledger and books as if some jobs had left; they are back when it ends."""

    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._left: dict[JobId, tuple[Holding, dict[Room, Tenant]]] = {}

    def __enter__(self) -> "Vacancy":
        return self

    def __exit__(self, *_: object) -> None:
        for victim in self.victims:
            self.bring_back(victim)

    @property
    def victims(self) -> tuple[Holding, ...]:
        """Those who have left, cheapest first."""
        return tuple(holding for holding, _ in self._left.values())

    def has_left(self, victim: Holding) -> bool:
        """Is this one of those who have left?"""
        return victim.job.id in self._left

    def remove(self, victim: Holding) -> None:
        """One leaves; a job that is only suspended keeps its memory."""
        ledger = self._cycle.ledger
        rooms = {
            ledger.rooms[node]: ledger.rooms[node].tenants[victim.job.id]
            for node in dict.fromkeys(each.node for each in victim.placements)
            if node in ledger.rooms
        }
        self._cycle.books.close(victim.job.id)
        is_suspended = mode_of(victim, self._cycle) is PreemptMode.SUSPEND
        for room, tenant in rooms.items():
            if is_suspended:
                room.tenants[victim.job.id] = tenant._replace(is_suspended=True)
            else:
                del room.tenants[victim.job.id]
            ledger.settle(room)
        self._left[victim.job.id] = (victim, rooms)

    def bring_back(self, victim: Holding) -> None:
        """One need not leave after all."""
        _, rooms = self._left.pop(victim.job.id)
        self._cycle.books.open(victim)
        for room, tenant in rooms.items():
            room.tenants[victim.job.id] = tenant
            self._cycle.ledger.settle(room)

    def rehearse(self, entry: WaitingJob) -> Placed | None:
        """Where the job would start now; nothing is taken."""
        with self._cycle.ledger.trial():
            placed = place(entry, self._cycle)
            return placed if isinstance(placed, Placed) else None

    def keep_only_needed(self, entry: WaitingJob, placed: Placed) -> None:
        """Let those stay without whom the job starts as well, the dearest first."""
        nodes = {placement.node for placement in placed.placements}
        for victim in self.victims[::-1]:
            is_beside = nodes.isdisjoint(each.node for each in victim.placements)
            self.bring_back(victim)
            if not is_beside and self.rehearse(entry) is None:
                self.remove(victim)
