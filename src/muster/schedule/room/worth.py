"""What nodes are worth to tasks that take the same: worked out once for each view, then looked up.

Less is better. What decides first is how many devices must be cut, then how many steps of
fragmentation are lost; then how far the free CPU of a node is off the best amount for what would
be left there. They stand in one number, most important first, so that nodes are compared at once.
"""

from typing import NamedTuple

import numpy as np

from muster.model.gpu import WHOLE_GPU_MILLI, GpuAsk
from muster.model.policy import Packing
from muster.schedule.room.index import Index, NodeView, Numbers
from muster.schedule.room.needs import Needs, least_gpu_milli
from muster.schedule.room.profiles import GpuNeed, Profile, Profiles, Taking, family_of
from muster.schedule.room.score import MOST_CPU, Score

OFF_BITS, LOST_BITS, CUT_BITS, PENALTY_BITS = 32, 18, 5, 5
"""The parts of the number. What exceeds its part counts as the most that the part can hold; nodes
that are equal by the number are compared exactly."""

NEVER = 1 << (1 + OFF_BITS + LOST_BITS + CUT_BITS + PENALTY_BITS)
"""The worth of a node that cannot serve; twice that is a number still."""

UNKNOWN = -1

_MOST_OFF = (1 << OFF_BITS) - 1
_HALF_OFF = 1 << (OFF_BITS - 1)


class Demand(NamedTuple):
    """What makes nodes that look alike worth the same: what a task takes of devices and CPU.

    Of nodes with several GPU models, one is meant: the one in place `lane` of their models.
    """

    gpus: GpuAsk | None
    may_cut: bool
    lane: int
    cpu_milli: int


class Worth(NamedTuple):
    """What nodes that look alike are worth exactly, and which of them is best.

    That is the one whose free CPU is nearest the target. Without a target more CPU is better, for
    each `per_milli` of GPU beside it. Where `per_milli` is 0 the target is what the task asks for,
    and such nodes come before others, however far off they are.
    """

    cuts: int
    lost: int
    target_milli: int
    per_milli: int = WHOLE_GPU_MILLI

    def off(self, cpu_milli: int) -> int:
        """How far a node with this much free CPU is off; less is better."""
        if self.target_milli == MOST_CPU:
            return -cpu_milli * WHOLE_GPU_MILLI // self.per_milli
        return abs(cpu_milli - self.target_milli) - (0 if self.per_milli else MOST_CPU)

    def least_off(self, floor_milli: int, end_milli: int) -> int:
        """The least that any node between these amounts can be off."""
        return self.off(min(max(self.target_milli, floor_milli), end_milli))


def penalty_part(penalty: int) -> int:
    """What unmet preferences add to the number: they come before everything else."""
    return min(penalty, (1 << PENALTY_BITS) - 1) << (OFF_BITS + LOST_BITS + CUT_BITS)


class Appraiser:
    """Works out what a view is worth to a demand."""

    def __init__(self, profiles: Profiles, score: Score, needs: Needs, packing: Packing) -> None:
        self._profiles = profiles
        self._score = score
        self._needs = needs
        self._packing = packing

    def wants_plenty(self, demand: Demand) -> bool:
        """Is the best node for such a task one with much CPU, rather than with a certain amount?"""
        return demand.gpus is None or self._packing is Packing.SPREAD

    def gpus(self, demand: Demand, view: NodeView) -> GpuNeed | None:
        """What the task would take of the model that is meant; None without GPUs."""
        if demand.gpus is None:
            return None
        return self._needs.gpu(demand.gpus, view.models[demand.lane], may_cut=demand.may_cut)

    def taking(self, demand: Demand, view: NodeView) -> Taking | None:
        """Which devices the task would take."""
        gpus = self.gpus(demand, view)
        return None if gpus is None else self._profiles.taking(view.profile, gpus)

    def reach(self, view: NodeView) -> tuple[int, int]:
        """The free CPU at which the level of the view begins, and at which the next one does."""
        return self._score.reach(view.level)

    def worth(self, demand: Demand, view: NodeView) -> Worth | None:
        """What the view is worth, or None if it cannot serve."""
        if demand.gpus is None:
            return self._worth(demand, view, view.profile, 0)
        if demand.lane >= len(view.models):
            return None
        taking = self.taking(demand, view)
        return None if taking is None else self._worth(demand, view, taking.after, taking.cuts)

    def _worth(self, demand: Demand, view: NodeView, after: Profile, cuts: int) -> Worth:
        if self._packing is Packing.SPREAD:
            return Worth(cuts, -after.left_milli, MOST_CPU)
        score = self._score
        # The middle stands for all nodes of the level that are large enough.
        cpu_milli = max(score.middles[view.level], demand.cpu_milli)
        lost = -score.steps_gained(view.profile, cpu_milli, after, cpu_milli - demand.cpu_milli)
        if demand.gpus is not None:
            return Worth(cuts, lost, demand.cpu_milli + score.cpu_wanted(after.left_milli))
        if after.left_milli:
            return Worth(cuts, lost, MOST_CPU, after.left_milli)
        return Worth(cuts, lost, demand.cpu_milli, 0)


class Worths:
    """The worth of every view to one demand; of those that no search met yet it is not known."""

    def __init__(self, demand: Demand, index: Index, appraiser: Appraiser) -> None:
        self.demand = demand
        self.family = family_of(None if demand.gpus is None else demand.gpus.slice)
        self._appraiser = appraiser
        self._index = index
        self._views = index.views[self.family]
        self._worths = np.full(1, NEVER, np.int64)
        self._targets = np.zeros(1, np.int64)
        self._per = np.zeros(1, np.int64) if appraiser.wants_plenty(demand) else None
        # So many views were met, and those with less GPU left than this are worth nothing.
        self._met = 1
        self._least_milli = least_gpu_milli(demand.gpus)
        # What the views that can serve are worth exactly.
        self._exact: dict[int, Worth] = {}
        self._keys: Numbers = np.zeros(0, np.int64)
        self._lap = -1
        self._read = 0

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return len(self._keys) + len(self._worths) * (2 if self._per is None else 3)

    def keys(self) -> Numbers:
        """The number of each slot, as of now; `UNKNOWN` where the view was not met yet."""
        changed = self._index.since(self._lap, self._read)
        if changed is None or len(self._keys) != self._index.size:
            changed = np.arange(self._index.size)
            self._keys = np.empty(self._index.size, np.int64)
        if changed.size:
            self._lap, self._read = self._index.lap, self._index.end
            self._keys[changed] = self._work_out(changed)
        return self._keys

    def settled(self, slots: Numbers) -> Numbers:
        """The numbers of these slots, after finding out what their views are worth."""
        views: set[int] = set(self._index.numbers[self.family].take(slots).tolist())
        for view in views:
            if self._worths[view] == UNKNOWN:
                self._settle(view)
        keys = self._keys[slots] = self._work_out(slots)
        return keys

    def _work_out(self, slots: Numbers) -> Numbers:
        if self._met < len(self._views):
            self._meet_views()
        views = self._index.numbers[self.family].take(slots)
        cpu_milli = self._index.cpu_milli.take(slots)
        worths = self._worths.take(views)
        keys = worths + self._off(views, cpu_milli)
        keys[worths == UNKNOWN] = UNKNOWN
        keys[cpu_milli < self.demand.cpu_milli] = NEVER
        return keys

    def target_milli(self, view: int) -> int:
        """The free CPU of the best node with a view that was met."""
        return int(self._targets[view])

    def exactly(self, view: int, cpu_milli: int) -> tuple[int, ...]:
        """The parts of a node's worth in full; at last how far off any such node would be."""
        worth = self._exact[view]
        least_off = worth.least_off(*self._appraiser.reach(self._views[view]))
        return (worth.cuts, worth.lost, worth.off(cpu_milli), least_off)

    def _off(self, views: Numbers, cpu_milli: Numbers) -> Numbers:
        off = np.abs(cpu_milli - self._targets.take(views))
        if self._per is None:
            return off
        per = self._per.take(views)
        plenty = -(-cpu_milli * WHOLE_GPU_MILLI // np.maximum(per, 1))
        less_plenty = _MOST_OFF - np.minimum(plenty, _MOST_OFF - _HALF_OFF)
        return np.where(per == 0, np.minimum(off, _HALF_OFF - 1), less_plenty)

    def _settle(self, view: int) -> None:
        worth = self._appraiser.worth(self.demand, self._views[view])
        if worth is None:
            self._worths[view] = NEVER
            return
        self._exact[view] = worth
        most_cuts, middle = (1 << CUT_BITS) - 1, 1 << (LOST_BITS - 1)
        lost = min(max(worth.lost + middle, 0), 2 * middle - 1)
        self._worths[view] = ((min(worth.cuts, most_cuts) << LOST_BITS) + lost) << OFF_BITS
        self._targets[view] = worth.target_milli
        if self._per is not None:
            self._per[view] = worth.per_milli

    def _meet_views(self) -> None:
        """Views that are new: those with too little GPU left are worth nothing, at a glance."""
        if len(self._worths) < len(self._views):
            self._grow(len(self._views))
        for view in range(self._met, len(self._views)):
            if self._views[view].profile.left_milli < self._least_milli:
                self._worths[view] = NEVER
        self._met = len(self._views)

    def _grow(self, size: int) -> None:
        more = max(size, 2 * len(self._worths)) - len(self._worths)
        self._worths = np.concatenate((self._worths, np.full(more, UNKNOWN, np.int64)))
        self._targets = np.concatenate((self._targets, np.zeros(more, np.int64)))
        if self._per is not None:
            self._per = np.concatenate((self._per, np.zeros(more, np.int64)))


class Mosts:
    """How many tasks fit on the devices of each view, one after the other."""

    def __init__(self, gpus: GpuNeed, index: Index, profiles: Profiles) -> None:
        self._gpus = gpus
        self._profiles = profiles
        self._views = index.views[gpus.family]
        self._most = np.zeros(1, np.int64)

    def of(self, views: Numbers, fits: Numbers) -> Numbers:
        """For nodes with these views, and at most as many as fit beside the devices."""
        if len(self._most) < len(self._views):
            more = max(len(self._views), 2 * len(self._most)) - len(self._most)
            self._most = np.concatenate((self._most, np.full(more, UNKNOWN, np.int64)))
        most = self._most.take(views)
        missing = views[(most == UNKNOWN) & (fits > 0)]
        numbers: set[int] = set(missing.tolist())
        for number in numbers:
            self._most[number] = self._profiles.most(self._views[number].profile, self._gpus)
        if missing.size:
            most = self._most.take(views)
        return np.minimum(fits, np.maximum(most, 0))


MOST_KEPT = 1 << 25
"""So many numbers are kept at most, in worths and by finders: 256 MiB."""


class Appraisals:
    """What was worked out about views, for all who ask the same."""

    def __init__(self, index: Index, appraiser: Appraiser, profiles: Profiles) -> None:
        self._index = index
        self._appraiser = appraiser
        self._profiles = profiles
        self._worths: dict[Demand, Worths] = {}
        self._mosts: dict[GpuNeed, Mosts] = {}

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return sum(each.size for each in self._worths.values())

    def clear(self) -> None:
        """Forget everything."""
        self._worths.clear()
        self._mosts.clear()

    def worths(self, demand: Demand) -> Worths:
        """What nodes are worth to tasks that take the same."""
        known = self._worths.get(demand)
        if known is None:
            known = self._worths[demand] = Worths(demand, self._index, self._appraiser)
        return known

    def mosts(self, gpus: GpuNeed) -> Mosts:
        """How many tasks fit on the devices of nodes."""
        known = self._mosts.get(gpus)
        if known is None:
            known = self._mosts[gpus] = Mosts(gpus, self._index, self._profiles)
        return known
