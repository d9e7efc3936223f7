"""The GPUs of one node as one value, and what a task takes from them, remembered once worked out.

Tasks come in families: those that want whole GPUs, MPS shares, time shares, MIG instances. Each
sees of a node only the devices that could serve it. So thousands of nodes share a few hundred
profiles, and a question is answered once for all of them.
Nothing here depends on the order in which profiles were met: names break every tie.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from muster.model.gpu import WHOLE_GPU_MILLI, Mig, MpsShare, Slice, TimeShare
from muster.model.value import GpuModel
from muster.schedule.room.slices import Choice, DeviceState, Use, choices, openings


class Family(IntEnum):
    """Tasks that look at the same devices; those without GPUs count with those for whole ones."""

    WHOLE = 0
    MPS = 1
    TIME = 2
    MIG = 3


def family_of(part: Slice | None) -> Family:
    """The family of a task that wants this part of a GPU."""
    match part:
        case None:
            return Family.WHOLE
        case MpsShare():
            return Family.MPS
        case TimeShare():
            return Family.TIME
        case Mig():
            return Family.MIG


_SEEN_BY = {
    Use.IDLE: frozenset(Family),
    Use.WHOLE: frozenset[Family](),
    Use.MPS: frozenset({Family.WHOLE, Family.MPS}),
    Use.TIME: frozenset({Family.WHOLE, Family.TIME}),
    Use.MIG: frozenset({Family.MIG}),
}
"""Who wants whole GPUs, or none, cannot use a share, but may take the CPU that its rest needs."""


class GpuNeed:
    """What one task takes from the GPUs of a node, once the model is settled.

    Equal needs are one object (see `needs.py`), so that they are compared by identity.
    is_apart: each of its shares is on a device of its own.
    """

    __slots__ = (
        "count",
        "family",
        "is_apart",
        "least_milli",
        "may_cut",
        "min_memory_mib",
        "model",
        "part",
    )

    def __init__(
        self, count: int, part: Slice | None, model: GpuModel, *, memory_mib: int, may_cut: bool
    ) -> None:
        self.count = count
        self.part = part
        self.family = family_of(part)
        self.is_apart = count > 1 and self.family in (Family.MPS, Family.TIME)
        self.least_milli = 0 if isinstance(part, Mig) else count * _milli(part)
        self.model = model
        self.min_memory_mib = memory_mib
        self.may_cut = may_cut


def _milli(part: MpsShare | TimeShare | None) -> int:
    """What one device must have left to give this part."""
    match part:
        case None:
            return WHOLE_GPU_MILLI
        case MpsShare(milli=milli):
            return milli
        case TimeShare(replicas=replicas):
            return WHOLE_GPU_MILLI // replicas


class Move(NamedTuple):
    """One device goes from one state to another; `start` is where a MIG instance begins."""

    before: DeviceState
    after: DeviceState
    start: int | None
    cuts: bool


class Taking(NamedTuple):
    """What a task takes: its moves, the profile it leaves, and how many devices must be cut."""

    moves: tuple[Move, ...]
    after: "Profile"
    cuts: int


Idle = tuple[tuple[GpuModel, int, int], ...]
"""Idle devices by model and memory, and how many."""


class Profile:
    """The devices of a node that a family looks at, in order. Equal ones are one object."""

    __slots__ = (
        "family",
        "fragments",
        "idle",
        "left_milli",
        "most",
        "name",
        "numbers",
        "states",
        "swaps",
        "takings",
    )

    def __init__(self, family: Family, states: tuple[DeviceState, ...], name: str) -> None:
        self.family = family
        self.states = states
        self.name = name
        self.left_milli = sum(state.left_milli for state in states)
        self.idle: Idle = _idle(states)
        self.takings: dict[GpuNeed, Taking | None] = {}
        self.most: dict[GpuNeed, int] = {}
        self.fragments: dict[int, int] = {}
        # The numbers of its views in the index, by level and models.
        self.numbers: dict[tuple[int, int], int] = {}
        self.swaps: dict[tuple[DeviceState, DeviceState], Profile] = {}


Rank = tuple[bool, int, int, int, str]
"""How well a device serves a slice, beside others that are idle."""

Judge = Callable[[Profile, DeviceState, DeviceState], int]
"""How much worse what is left would be fragmented if one device went from one state to another."""


class Profiles:
    """All profiles met so far. `judge` settles which device of a node serves a slice best."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._profiles: dict[tuple[Family, tuple[str, ...]], Profile] = {}
        self._states: dict[DeviceState, tuple[str, DeviceState]] = {}
        self._choices: dict[tuple[DeviceState, Slice | None, bool], list[Choice]] = {}
        self._openings: dict[DeviceState, int] = {}
        self._ranks: dict[tuple[Idle, DeviceState, Slice | None, bool], Rank] = {}

    def forget(self) -> None:
        """Devices are judged otherwise from now on, and levels of CPU may have other numbers."""
        self._ranks.clear()
        for profile in self._profiles.values():
            profile.takings.clear()
            profile.most.clear()
            profile.fragments.clear()
            profile.numbers.clear()

    def state(self, state: DeviceState) -> DeviceState:
        """The one object that stands for this state."""
        return self._named(state)[1]

    def of(self, states: Iterable[DeviceState | None], family: Family) -> Profile:
        """The one profile with these states, less those that are of no use to the family."""
        named = [
            self._named(state)
            for state in states
            if state is not None and state.left_milli > 0 and family in _SEEN_BY[state.use]
        ]
        named.sort(key=_name)
        names = tuple(name for name, _ in named)
        known = self._profiles.get((family, names))
        if known is None:
            known = Profile(family, tuple(state for _, state in named), "|".join(names))
            self._profiles[family, names] = known
        return known

    def swapped(self, profile: Profile, before: DeviceState, after: DeviceState) -> Profile:
        """The profile after one device went from one state to another."""
        known = profile.swaps.get((before, after))
        if known is None:
            states: list[DeviceState] = list(profile.states)
            if before in states:
                states.remove(before)
            known = self.of((*states, after), profile.family)
            profile.swaps[before, after] = known
        return known

    def taking(self, profile: Profile, need: GpuNeed) -> Taking | None:
        """The best way to take what a task needs from these devices, or None if they cannot."""
        if need not in profile.takings:
            profile.takings[need] = self._best_taking(profile, need)
        return profile.takings[need]

    def most(self, profile: Profile, need: GpuNeed) -> int:
        """How many such tasks fit on these devices, one after the other."""
        if need not in profile.most:
            taking = self.taking(profile, need)
            profile.most[need] = 0 if taking is None else 1 + self.most(taking.after, need)
        return profile.most[need]

    def _best_taking(self, profile: Profile, need: GpuNeed) -> Taking | None:
        if profile.left_milli < need.least_milli:
            return None
        if need.part is None and need.count > 1:
            suiting = [state for state in profile.states if _suits(state, need)]
            if suiting and suiting[0] is suiting[-1]:
                return self._all_alike(profile, need, suiting)
        moves: list[Move] = []
        open_to = profile
        for _ in range(need.count):
            move = self._best_move(open_to, need)
            if move is None:
                return None
            moves.append(move)
            profile = self.swapped(profile, move.before, move.after)
            open_to = self._without(open_to, move.before) if need.is_apart else profile
        return Taking(tuple(moves), profile, sum(move.cuts for move in moves))

    def _all_alike(
        self, profile: Profile, need: GpuNeed, suiting: list[DeviceState]
    ) -> Taking | None:
        """Several whole devices, where there is no choice between them."""
        before = suiting[0]
        found = self._choices_of(before, need)
        if not found or len(suiting) < need.count:
            return None
        after = self.state(found[0].after)
        staying = list(profile.states)
        for _ in range(need.count):
            staying.remove(before)
        left = self.of((*staying, *[after] * need.count), profile.family)
        move = Move(before, after, found[0].start, found[0].cuts)
        return Taking((move,) * need.count, left, need.count * move.cuts)

    def _without(self, profile: Profile, state: DeviceState) -> Profile:
        """The devices less one of this state."""
        states = list(profile.states)
        states.remove(state)
        return self.of(states, profile.family)

    def _best_move(self, profile: Profile, need: GpuNeed) -> Move | None:
        found = list(self._steps(profile, need))
        if not found:
            return None
        before, choice = found[0]
        if len(found) > 1:
            before, choice = min(found, key=lambda step: self._rank(profile, need, *step))
        return Move(before, self.state(choice.after), choice.start, choice.cuts)

    def _steps(self, profile: Profile, need: GpuNeed) -> Iterator[tuple[DeviceState, Choice]]:
        """All ways to take one device or slice; of devices that are alike, the first."""
        before = None
        for state in profile.states:
            if state is not before and _suits(state, need):
                for choice in self._choices_of(state, need):
                    yield state, choice
            before = state

    def _rank(self, profile: Profile, need: GpuNeed, state: DeviceState, choice: Choice) -> Rank:
        """Rather not cut again; then leave what is useful, open, and on devices in use already."""
        key = (profile.idle, state, need.part, need.may_cut)
        known = self._ranks.get(key)
        if known is None:
            after = self.state(choice.after)
            worse = self._judge(profile, state, after)
            openings_left = self._openings_of(after)
            known = (choice.cuts, worse, -openings_left, state.left_milli, self._named(state)[0])
            self._ranks[key] = known
        return known

    def _choices_of(self, state: DeviceState, need: GpuNeed) -> list[Choice]:
        """Ways to take the slice; of several instances to cut, those that leave most openings."""
        key = (state, need.part, need.may_cut)
        known = self._choices.get(key)
        if known is None:
            found = choices(state, need.part, may_cut=need.may_cut)
            known = self._choices[key] = sorted(found, key=self._closing)[:1]
        return known

    def _closing(self, choice: Choice) -> tuple[int, str]:
        return (-self._openings_of(choice.after), choice.after.name)

    def _openings_of(self, state: DeviceState) -> int:
        known = self._openings.get(state)
        if known is None:
            known = self._openings[state] = openings(state)
        return known

    def _named(self, state: DeviceState) -> tuple[str, DeviceState]:
        known = self._states.get(state)
        if known is None:
            known = self._states[state] = (state.name, state)
        return known


def _name(named: tuple[str, DeviceState]) -> str:
    return named[0]


def _idle(states: tuple[DeviceState, ...]) -> Idle:
    found: dict[tuple[GpuModel, int], int] = {}
    for state in states:
        if state.use is Use.IDLE:
            key = (state.model, state.memory_mib)
            found[key] = found.get(key, 0) + 1
    return tuple((model, memory_mib, count) for (model, memory_mib), count in sorted(found.items()))


def less_one(idle: Idle, state: DeviceState) -> Idle:
    """The idle devices when one like this is idle no more."""
    kind = (state.model, state.memory_mib)
    counts = ((*each[:2], each[2] - (each[:2] == kind)) for each in idle)
    return tuple(each for each in counts if each[2])


def _suits(state: DeviceState, need: GpuNeed) -> bool:
    return state.model == need.model and state.memory_mib >= need.min_memory_mib
