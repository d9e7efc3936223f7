"""The best room for one task: groups of nodes in order of merit, the first one with room wins.

What a group is worth to a need never changes, so each need keeps its groups in a heap;
only groups that came to life since it last looked have to be judged.
"""

from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from muster.model.policy import Packing
from muster.schedule.index import Group, Kind, Room
from muster.schedule.ledger import Ledger, Seat
from muster.schedule.needs import Need, Offer, Shut, Tier
from muster.schedule.profiles import GpuNeed, Profile, Taking

MOST_CPU = 1 << 60
"""A target above every node's CPU: take the room with the most."""


class Bounds(NamedTuple):
    """What a search must leave out: what its queue may not have more of, rooms it may not have."""

    closed: frozenset[tuple[Kind, GpuNeed | None]] = frozenset()
    allows: Callable[[Room], bool] | None = None


_Merit = tuple[int, int, int, int, Group, str, GpuNeed | None, Taking | None, int]
"""Groups are tried in this order; group and model make it complete, so that no two are equal.

Unmet preferences, devices to cut, steps of fragmentation lost, what decides between equals, group,
model; then what is taken, and the free CPU to aim at.
"""


class Finder:
    """Looks for one need among the kinds of one tier."""

    __slots__ = ("_born", "_heap", "_inside", "_ledger", "_need", "_read", "_shut", "_tier")

    def __init__(self, need: Need, tier: Tier, shut: Shut, ledger: Ledger) -> None:
        self._need = need
        self._tier = tier
        self._shut = shut
        self._ledger = ledger
        self._heap: list[_Merit] = []
        self._inside: set[Group] = set()
        self._read = 0
        self._born = ledger.index.born[need.family]

    def best(self, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
        """The best seat that is open to jobs of any length."""
        self._catch_up()
        aside: list[_Merit] = []
        found = self._search(bounds, aside)
        for merit in aside:
            heappush(self._heap, merit)
        return found

    def _search(self, bounds: Bounds, aside: list[_Merit]) -> tuple[Seat, GpuNeed | None] | None:
        heap, need, (closed, allows) = self._heap, self._need, bounds
        while heap:
            merit = heap[0]
            group, gpus = merit[4], merit[6]
            if not group.rooms:
                heappop(heap)
                self._inside.discard(group)
                continue
            if not closed or (group.kind, gpus) not in closed:
                room = _pick(group.rooms, need, merit[8], allows)
                if room is not None:
                    return Seat(room, merit[7]), gpus
            aside.append(heappop(heap))
        return None

    def _catch_up(self) -> None:
        born = self._born
        if self._read == len(born):
            return
        inside, gpu_milli = self._inside, self._need.gpu_milli
        for group in dict.fromkeys(born[self._read :]):
            if group.rooms and group.profile.left_milli >= gpu_milli and group not in inside:
                self._judge(group)
        self._read = len(born)

    def _judge(self, group: Group) -> None:
        offer = self._ledger.offer(group.kind, self._need)
        if offer is None or offer.tier != self._tier or group.kind in self._shut:
            return
        floors, level = self._ledger.score.floors, group.level
        if level + 1 < len(floors) and floors[level + 1] <= self._need.cpu_milli:
            return
        for gpus in offer.gpus:
            merit = self._merit(group, offer, gpus)
            if merit is not None:
                heappush(self._heap, merit)
                self._inside.add(group)

    def _merit(self, group: Group, offer: Offer, gpus: GpuNeed | None) -> _Merit | None:
        if gpus is None:
            lost, tiebreak, target = self._worth(group, group.profile)
            return (offer.penalty, 0, lost, tiebreak, group, "", None, None, target)
        taking = self._ledger.profiles.taking(group.profile, gpus)
        if taking is None:
            return None
        lost, tiebreak, target = self._worth(group, taking.after)
        cuts, model = taking.cuts, gpus.model
        return (offer.penalty, cuts, lost, tiebreak, group, model, gpus, taking, target)

    def _is_spread(self) -> bool:
        return self._ledger.policy.packing is Packing.SPREAD

    def _worth(self, group: Group, after: Profile) -> tuple[int, int, int]:
        """Steps of fragmentation lost, what decides between equals, and the free CPU to aim at."""
        score, need = self._ledger.score, self._need
        floor_milli = score.floors[group.level]
        if self._is_spread():
            return -after.left_milli, -floor_milli, MOST_CPU
        left_milli = max(0, floor_milli - need.cpu_milli)
        lost = -score.steps_gained((group.profile, group.level), (after, score.level(left_milli)))
        if need.gpus is not None:
            wanted_milli = score.cpu_wanted(after.left_milli)
            return lost, abs(left_milli - wanted_milli), need.cpu_milli + wanted_milli
        if after.left_milli == 0:
            return lost, -MOST_CPU, need.cpu_milli
        return lost, -floor_milli * 1_000 // after.left_milli, MOST_CPU


def _pick(
    rooms: list[tuple[int, str, Room]],
    need: Need,
    target_cpu_milli: int,
    allows: Callable[[Room], bool] | None,
) -> Room | None:
    """The room whose free CPU is nearest the target, among those that fit and are allowed."""
    low = bisect_left(rooms, (need.cpu_milli,))
    right = bisect_left(rooms, (target_cpu_milli,), low)
    left, end = right - 1, len(rooms)
    memory_mib = need.memory_mib
    while left >= low or right < end:
        goes_right = left < low or (
            right < end and rooms[right][0] - target_cpu_milli <= target_cpu_milli - rooms[left][0]
        )
        room = rooms[right if goes_right else left][2]
        if room.open_memory_mib >= memory_mib and (allows is None or allows(room)):
            return room
        if goes_right:
            right += 1
        else:
            left -= 1
    return None
