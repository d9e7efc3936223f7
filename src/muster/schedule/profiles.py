"""The GPUs of one node as one value, and what a task takes from them, remembered once worked out.

Thousands of nodes share a few hundred profiles, so a question is answered once for all of them.
Nothing here hangs on the order in which profiles were met: names break every tie.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from muster.model.gpu import Slice
from muster.model.value import GpuModel
from muster.schedule.slices import Choice, DeviceState, choices, openings


class GpuNeed:
    """What one task takes from the GPUs of a node, once the model is settled.

    Equal needs are one object (see `needs.py`), so that they are compared by identity.
    """

    __slots__ = ("count", "may_cut", "min_memory_mib", "model", "part")

    def __init__(
        self, count: int, part: Slice | None, model: GpuModel, *, memory_mib: int, may_cut: bool
    ) -> None:
        self.count = count
        self.part = part
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


class Profile:
    """The states of a node's usable devices, in a fixed order. Equal profiles are one object."""

    __slots__ = ("fragments", "left_milli", "most", "name", "states", "takings")

    def __init__(self, states: tuple[DeviceState, ...], name: str) -> None:
        self.states = states
        self.name = name
        self.left_milli = sum(state.left_milli for state in states)
        self.takings: dict[GpuNeed, Taking | None] = {}
        self.most: dict[GpuNeed, int] = {}
        self.fragments: dict[int, int] = {}


Judge = Callable[[Profile], int]
"""How badly what is left would be fragmented; lower is better."""


class Profiles:
    """All profiles met so far. `judge` settles which device of a node serves a slice best."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._profiles: dict[tuple[str, ...], Profile] = {}
        self._states: dict[DeviceState, tuple[str, DeviceState]] = {}
        self._choices: dict[tuple[DeviceState, Slice | None, bool], list[Choice]] = {}
        self._openings: dict[DeviceState, int] = {}
        self.empty = self.of(())

    def state(self, state: DeviceState) -> DeviceState:
        """The one object that stands for this state."""
        return self._named(state)[1]

    def of(self, states: Iterable[DeviceState]) -> Profile:
        """The one profile with these states; devices with nothing left do not count."""
        named = [self._named(state) for state in states if state.left_milli > 0]
        named.sort(key=_name)
        key = tuple(name for name, _ in named)
        known = self._profiles.get(key)
        if known is None:
            known = Profile(tuple(state for _, state in named), "|".join(key))
            self._profiles[key] = known
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
        for _ in range(need.count):
            step = self._best_step(profile, need)
            if step is None:
                return None
            move, profile = step
            moves.append(move)
        return Taking(tuple(moves), profile, sum(move.cuts for move in moves))

    def _best_step(self, profile: Profile, need: GpuNeed) -> tuple[Move, Profile] | None:
        options: list[tuple[tuple[bool, int, int, int, str], Move, Profile]] = []
        for place, state in enumerate(profile.states):
            is_again = place > 0 and profile.states[place - 1] is state
            if is_again or not _suits(state, need):
                continue
            for choice in self._choices_of(state, need):
                move, after = self._step(profile, place, choice)
                options.append((self._rank(move, after), move, after))
        if not options:
            return None
        _, move, after = min(options, key=lambda option: option[0])
        return move, after

    def _rank(self, move: Move, after: Profile) -> tuple[bool, int, int, int, str]:
        left_milli, open_to = move.before.left_milli, self._openings_of(move.after)
        return (move.cuts, self._judge(after), -open_to, left_milli, after.name)

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
        states = profile.states
        before, after = states[place], self.state(choice.after)
        move = Move(before, after, choice.start, choice.cuts)
        return move, self.of((*states[:place], after, *states[place + 1 :]))

    def _named(self, state: DeviceState) -> tuple[str, DeviceState]:
        known = self._states.get(state)
        if known is None:
            known = self._states[state] = (state.name, state)
        return known


def _name(named: tuple[str, DeviceState]) -> str:
    return named[0]


def _suits(state: DeviceState, need: GpuNeed) -> bool:
    return state.model == need.model and state.memory_mib >= need.min_memory_mib
