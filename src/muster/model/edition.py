"""Mappings that come out in editions, of which any two can be told what differs between them."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT = 256
"""So many editions back it is known what changed: several follow, and not all read every one."""


class Edition(dict[K, V]):
    """One state of a mapping. It is for looking at: nobody changes an edition."""

    __slots__ = ("number", "press")

    def __init__(self, values: Mapping[K, V], press: "Press[K, V]", number: int) -> None:
        super().__init__(values)
        self.press = press
        self.number = number


class Press(Generic[K, V]):
    """Brings out editions of a mapping that goes on changing. Whoever changes it says so."""

    def __init__(self, values: Mapping[K, V]) -> None:
        self._values = values
        self._changed: set[K] = set(values)
        self._latest: Edition[K, V] | None = None
        # By the number of an edition, the keys whose values the one before it had not.
        self._notes: dict[int, frozenset[K]] = {}

    def note(self, key: K) -> None:
        """The value of this key is, or may be, another one now."""
        self._changed.add(key)

    def edition(self) -> Edition[K, V]:
        """How things are now; the same object as long as nothing was noted."""
        latest = self._latest
        if latest is not None and not self._changed:
            return latest
        number = 0 if latest is None else latest.number + 1
        made = Edition(self._values, self, number)
        self._notes[number] = frozenset(self._changed)
        self._notes.pop(number - MOST_KEPT, None)
        self._changed = set()
        self._latest = made
        return made

    def between(self, old: int, new: int) -> Iterable[K] | None:
        """Keys that were noted after the one edition up to the other; None if that is forgotten."""
        if not old <= new <= old + MOST_KEPT:
            return None
        # One by one, because meanwhile another thread may bring out the next edition.
        notes = [self._notes.get(number) for number in range(old + 1, new + 1)]
        found: set[K] = set()
        for each in notes:
            if each is None:
                return None
            found |= each
        return found


def changed(old: Mapping[K, object], new: Mapping[K, object]) -> Iterable[K] | None:
    """Keys of which one or both have the value and that may differ; None if nobody kept count."""
    if old is new:
        return ()
    if not isinstance(old, Edition) or not isinstance(new, Edition) or old.press is not new.press:
        return None
    return new.press.between(old.number, new.number)
