"""The GPUs of one node as one value, and what a task takes from them, remembered once worked out.

Tasks come in families: those that want whole GPUs, MPS shares, time shares, MIG instances. Each
sees of a node only the devices that could serve it. So thousands of nodes share a few hundred
profiles, and a question is answered once for all of them.
Nothing here hangs on the order in which profiles were met: names break every tie.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
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

    __slots__ = ("count", "family", "is_apart", "may_cut", "min_memory_mib", "model", "part")

    def __init__(
        self, count: int, part: Slice | None, model: GpuModel, *, memory_mib: int, may_cut: bool
    ) -> None:
        self.count = count
        self.part = part
        self.family = family_of(part)
        self.is_apart = count > 1 and self.family in (Family.MPS, Family.TIME)
        self.model = model
        self.min_memory_mib = memory_mib
        self.may_cut = may_cut


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
        self.swaps: dict[tuple[DeviceState, DeviceState], Profile] = {}


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
        moves: list[Move] = []
        open_to = profile
        for _ in range(need.count):
            step = self._best_step(open_to, need)
            if step is None:
                return None
            move, after = step
            moves.append(move)
            profile = self.swapped(profile, move.before, move.after)
            open_to = self._without(open_to, move.before) if need.is_apart else after
        return Taking(tuple(moves), profile, sum(move.cuts for move in moves))

    def _without(self, profile: Profile, state: DeviceState) -> Profile:
        """The devices less one of this state."""
        states = list(profile.states)
        states.remove(state)
        return self.of(states, profile.family)

    def _best_step(self, profile: Profile, need: GpuNeed) -> tuple[Move, Profile] | None:
        found = list(self._steps(profile, need))
        if not found:
            return None
        place, choice = found[0]
        if len(found) > 1:
            place, choice = min(found, key=lambda step: self._rank(profile, *step))
        return self._step(profile, place, choice)

    def _steps(self, profile: Profile, need: GpuNeed) -> Iterator[tuple[int, Choice]]:
        """All ways to take one device or slice; of devices that are alike, the first."""
        before = None
        for place, state in enumerate(profile.states):
            if state is not before and _suits(state, need):
                for choice in self._choices_of(state, need):
                    yield place, choice
            before = state

    def _rank(
        self, profile: Profile, place: int, choice: Choice
    ) -> tuple[bool, int, int, int, str]:
        """Rather not cut anew; then leave what is useful, open, and on devices in use already."""
        state = profile.states[place]
        after = self.state(choice.after)
        worse = self._judge(profile, state, after)
        openings_left = self._openings_of(after)
        return (choice.cuts, worse, -openings_left, state.left_milli, self._named(state)[0])

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

    def _step(self, profile: Profile, place: int, choice: Choice) -> tuple[Move, Profile]:
        before, after = profile.states[place], self.state(choice.after)
        move = Move(before, after, choice.start, choice.cuts)
        return move, self.swapped(profile, before, after)

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
