"""The best room for one task: groups of nodes in order of merit, the first one with room wins.

What a group is worth to a need never changes, so each need keeps its groups in a heap; only groups
that came to life since it last looked have to be judged. Between groups of equal worth the best
room decides, so those are looked into as long as they could hold a better one.
"""

from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI
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


class _Aim(NamedTuple):
    """Which room of a group is best: the one whose free CPU is nearest the target, and how far off.

    Without a target more CPU is better, for each `per_milli` of GPU beside it.
    """

    target_milli: int
    per_milli: int = WHOLE_GPU_MILLI
    ahead: int = 0

    def off(self, cpu_milli: int) -> int:
        """How far a room with this much free CPU is off; less is better."""
        if self.target_milli == MOST_CPU:
            return -cpu_milli * WHOLE_GPU_MILLI // self.per_milli
        return abs(cpu_milli - self.target_milli) - self.ahead

    def least_off(self, floor_milli: int, end_milli: int) -> int:
        """The least that any room between these amounts can be off."""
        return self.off(min(max(self.target_milli, floor_milli), end_milli))


_Merit = tuple[int, int, int, int, Group, str, GpuNeed | None, Taking | None, _Aim]
"""Groups are tried in this order; group and model make it complete, so that no two are equal.

Unmet preferences, devices to cut, steps of fragmentation lost, the least that the balance of any
room in the group can be off, group, model; then what is taken, and which room of the group is best.
"""


class _Found(NamedTuple):
    """The best room so far: as far off as `key` says, in the same order as groups are tried."""

    key: tuple[int, ...]
    merit: _Merit
    room: Room


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
        heap, (closed, allows) = self._heap, bounds
        best: _Found | None = None
        # No room of a group, nor of any after it, is better than the group says.
        while heap and (best is None or heap[0][:4] < best.key):
            merit = heappop(heap)
            group = merit[4]
            if not group.rooms:
                self._inside.discard(group)
                continue
            aside.append(merit)
            if not closed or (group.kind, merit[6]) not in closed:
                best = self._better(best, merit, allows)
        return None if best is None else (Seat(best.room, best.merit[7]), best.merit[6])

    def _better(
        self, best: _Found | None, merit: _Merit, allows: Callable[[Room], bool] | None
    ) -> _Found | None:
        """The better of what was found before and the best room of this group."""
        aim = merit[8]
        room = _pick(merit[4].rooms, self._need, aim.target_milli, allows)
        if room is None:
            return best
        key = (*merit[:3], aim.off(room.open_cpu_milli))
        return _Found(key, merit, room) if best is None or key < best.key else best

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
        taking = None if gpus is None else self._ledger.profiles.taking(group.profile, gpus)
        if gpus is not None and taking is None:
            return None
        after = group.profile if taking is None else taking.after
        lost, aim = self._worth(group, after)
        floors, level = self._ledger.score.floors, group.level
        end_milli = floors[level + 1] if level + 1 < len(floors) else MOST_CPU
        least_off = aim.least_off(floors[level], end_milli)
        model, cuts = "" if gpus is None else gpus.model, 0 if taking is None else taking.cuts
        return (offer.penalty, cuts, lost, least_off, group, model, gpus, taking, aim)

    def _worth(self, group: Group, after: Profile) -> tuple[int, _Aim]:
        """Steps of fragmentation lost, and which room is best."""
        score, need = self._ledger.score, self._need
        if self._ledger.policy.packing is Packing.SPREAD:
            return -after.left_milli, _Aim(MOST_CPU)
        # The middle stands for all rooms of the group that are large enough.
        cpu_milli = max(score.middles[group.level], need.cpu_milli)
        left_milli = cpu_milli - need.cpu_milli
        lost = -score.steps_gained((group.profile, cpu_milli), (after, left_milli))
        if need.gpus is not None:
            return lost, _Aim(need.cpu_milli + score.cpu_wanted(after.left_milli))
        if after.left_milli == 0:
            return lost, _Aim(need.cpu_milli, ahead=MOST_CPU)
        return lost, _Aim(MOST_CPU, after.left_milli)


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
