"""Mappings that come out in editions, each knowing in what it differs from the one before."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Edition(dict[K, V]):
    """One state of a mapping; `changed` are the keys whose values the edition before had not.

    It is for looking at: nobody changes an edition.
    """

    __slots__ = ("changed", "number", "press")

    def __init__(self, values: Mapping[K, V], press: object, number: int) -> None:
        super().__init__(values)
        self.press = press
        self.number = number
        self.changed: frozenset[K] = frozenset()


class Press(Generic[K, V]):
    """Brings out editions of a mapping that goes on changing. Whoever changes it says so."""

    def __init__(self, values: Mapping[K, V]) -> None:
        self._values = values
        self._changed: set[K] = set(values)
        self._latest: Edition[K, V] | None = None

    def note(self, key: K) -> None:
        """The value of this key is, or may be, another one now."""
        self._changed.add(key)

    def edition(self) -> Edition[K, V]:
        """How things are now; the same object as long as nothing was noted."""
        latest = self._latest
        if latest is not None and not self._changed:
            return latest
        made = Edition(self._values, self, 0 if latest is None else latest.number + 1)
        made.changed = frozenset(self._changed)
        self._changed = set()
        self._latest = made
        return made


def changed(old: Mapping[K, object], new: Mapping[K, object]) -> Iterable[K] | None:
    """Keys of which one or both have the value and that may differ; None if nobody kept count."""
    if old is new:
        return ()
    if not isinstance(old, Edition) or not isinstance(new, Edition) or old.press is not new.press:
        return None
    return new.changed if new.number == old.number + 1 else None
