"""The best room for one task: groups of nodes in order of merit, the first one with room wins.

What a group is worth to a need never changes, so each need keeps its groups in order; only groups
that came to life since it last looked have to be judged. Between groups of equal worth the best
room decides, so those are looked into as long as they could hold a better one.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI
from muster.model.policy import Packing
from muster.schedule.room.index import Group, Kind, Room
from muster.schedule.room.ledger import Ledger, Seat
from muster.schedule.room.needs import Need, Offer, Shut, Tier
from muster.schedule.room.profiles import GpuNeed, Profile, Taking
from muster.schedule.room.score import MOST_CPU


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


class Worth(NamedTuple):
    """What the rooms of a level that look alike are worth to a need, whatever kind of node it is.

    Devices to cut, steps of fragmentation lost, the least that the balance of any such room can be
    off, and what that would be if nodes had no end; then what is taken, and which room is best.
    """

    cuts: int
    lost: int
    least_off: int
    nominal_off: int
    taking: Taking | None
    aim: _Aim


_Merit = tuple[int, int, int, int, int, tuple[str, int, str], str, Group, GpuNeed | None, Worth]
"""Groups are tried in this order; group and model make it complete, so that no two are equal.

Unmet preferences, then as `Worth` says; the group's own turn, model; then group and what is taken.
"""


class _Found(NamedTuple):
    """The best room so far: `key` is what the merit would be if every room were as far off."""

    key: tuple[object, ...]
    merit: _Merit
    room: Room


class _Source:
    """One kind of node: what it offers, and how far its log of groups was read."""

    __slots__ = ("groups", "offer", "read")

    def __init__(self, groups: list[Group], offer: Offer) -> None:
        self.groups = groups
        self.offer = offer
        self.read = 0


class Finder:
    """Looks for one need among the kinds of one tier."""

    __slots__ = (
        "_kinds_seen",
        "_ledger",
        "_merits",
        "_need",
        "_shut",
        "_sources",
        "_tier",
        "_to_judge",
    )

    def __init__(self, need: Need, tier: Tier, shut: Shut, ledger: Ledger) -> None:
        self._need = need
        self._tier = tier
        self._shut = shut
        self._ledger = ledger
        self._merits: list[_Merit] = []
        # Groups that had no rooms when it last looked, and came to have some.
        self._to_judge: list[Group] = []
        self._sources: dict[Kind, _Source] = {}
        self._kinds_seen = -1

    def best(self, bounds: Bounds) -> tuple[Seat, GpuNeed | None] | None:
        """The best seat that is open to jobs of any length."""
        self._catch_up()
        closed, allows = bounds
        best: _Found | None = None
        empty: list[int] = []
        for place, merit in enumerate(self._merits):
            # No room of a group, nor of any after it, is better than the group says.
            if best is not None and merit > best.key:
                break
            group = merit[7]
            if not group.rooms:
                empty.append(place)
            elif not closed or (group.kind, merit[8]) not in closed:
                best = self._better(best, merit, allows)
        self._drop(empty)
        return None if best is None else (Seat(best.room, best.merit[9].taking), best.merit[8])

    def _better(
        self, best: _Found | None, merit: _Merit, allows: Callable[[Room], bool] | None
    ) -> _Found | None:
        """The better of what was found before and the best room of this group."""
        aim = merit[9].aim
        room = _pick(merit[7].rooms, self._need, aim.target_milli, allows)
        if room is None:
            return best
        key = (*merit[:3], aim.off(room.open_cpu_milli), *merit[4:7])
        return _Found(key, merit, room) if best is None or key < best.key else best

    def _drop(self, places: list[int]) -> None:
        """Groups without rooms are judged again when they come to have some."""
        for place in reversed(places):
            self._merits.pop(place)[7].watchers.append(self._to_judge)

    def _catch_up(self) -> None:
        if self._kinds_seen != self._ledger.kinds_version:
            self._look_for_kinds()
        for source in self._sources.values():
            if source.read != len(source.groups):
                self._read(source)
        if self._to_judge:
            found, self._to_judge[:] = self._to_judge[:], ()
            for group in found:
                if group.rooms:
                    self._look_again(group)
                else:
                    group.watchers.append(self._to_judge)

    def _look_for_kinds(self) -> None:
        need, known = self._need, self._sources
        self._sources = {}
        for kind in self._ledger.kinds.values():
            offer = self._ledger.offer(kind, need)
            if offer is not None and offer.tier == self._tier and kind not in self._shut:
                self._sources[kind] = known.get(kind) or _Source(kind.families[need.family], offer)
        # A kind that came back by the same name is another one.
        self._merits = [merit for merit in self._merits if merit[7].kind in self._sources]
        self._kinds_seen = self._ledger.kinds_version

    def _read(self, source: _Source) -> None:
        gpu_milli, cpu_milli = self._need.gpu_milli, self._need.cpu_milli
        for group in source.groups[source.read :]:
            if group.profile.left_milli < gpu_milli or group.end_milli <= cpu_milli:
                continue
            if group.rooms:
                self._judge(group, source.offer)
            else:
                group.watchers.append(self._to_judge)
        source.read = len(source.groups)

    def _look_again(self, group: Group) -> None:
        source = self._sources.get(group.kind)
        if source is None:
            return
        if len(source.offer.gpus) > 1:
            # Of several merits only one need have been dropped.
            self._merits = [merit for merit in self._merits if merit[7] is not group]
        self._judge(group, source.offer)

    def _judge(self, group: Group, offer: Offer) -> None:
        worths = self._need.worths
        for gpus in offer.gpus:
            key = (group.profile, group.level, gpus)
            worth = worths[key] if key in worths else self._settle(key)
            if worth is not None:
                model = "" if gpus is None else gpus.model
                insort(
                    self._merits, (offer.penalty, *worth[:4], group.turn, model, group, gpus, worth)
                )

    def _settle(self, key: tuple[Profile, int, GpuNeed | None]) -> Worth | None:
        """Work out what such groups are worth, once and for all."""
        profile, level, gpus = key
        taking = None if gpus is None else self._ledger.profiles.taking(profile, gpus)
        worth = None
        if gpus is None or taking is not None:
            lost, aim = self._aim(profile, level, profile if taking is None else taking.after)
            floor_milli, end_milli = self._ledger.score.reach(level)
            most_milli = max(floor_milli, min(end_milli, self._ledger.most_cpu_milli))
            worth = Worth(
                0 if taking is None else taking.cuts,
                lost,
                aim.least_off(floor_milli, most_milli),
                aim.least_off(floor_milli, end_milli),
                taking,
                aim,
            )
        self._need.worths[key] = worth
        return worth

    def _aim(self, profile: Profile, level: int, after: Profile) -> tuple[int, _Aim]:
        """Steps of fragmentation lost, and which room is best."""
        score, need = self._ledger.score, self._need
        if self._ledger.policy.packing is Packing.SPREAD:
            return -after.left_milli, _Aim(MOST_CPU)
        # The middle stands for all rooms of the group that are large enough.
        cpu_milli = max(score.middles[level], need.cpu_milli)
        left_milli = cpu_milli - need.cpu_milli
        lost = -score.steps_gained((profile, cpu_milli), (after, left_milli))
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
