"""Versions of a mapping: between any two recent ones it is known which keys may differ."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT = 256
"""So many versions back it is known what changed: not every reader reads every version."""


class VersionedMapping(dict[K, V]):
    """One version of a mapping. It must never be changed.

    replaced: keys that have other values here than in the version of the same number.
    """

    __slots__ = ("history", "number", "replaced")

    def __init__(
        self,
        values: Mapping[K, V],
        history: "VersionHistory[K, V]",
        number: int,
        replaced: frozenset[K] = frozenset(),
    ) -> None:
        super().__init__(values)
        self.history = history
        self.number = number
        self.replaced = replaced

    def with_values(self, others: Mapping[K, V]) -> "VersionedMapping[K, V]":
        """What the mapping would be with these values; how the two differ stays known."""
        made = VersionedMapping(self, self.history, self.number, self.replaced | others.keys())
        made.update(others)
        return made

    def without(self, keys: Iterable[K]) -> "VersionedMapping[K, V]":
        """What the mapping would be without these; how the two differ stays known."""
        gone = frozenset(keys)
        made = VersionedMapping(self, self.history, self.number, self.replaced | gone)
        for key in gone:
            made.pop(key, None)
        return made


class VersionHistory(Generic[K, V]):
    """Makes versions of a mapping that goes on changing. Whoever changes it must note the key."""

    def __init__(self, values: Mapping[K, V]) -> None:
        self._values = values
        self._changed: set[K] = set(values)
        self._latest: VersionedMapping[K, V] | None = None
        # By the number of a version, the keys that were noted since the one before it.
        self._notes: dict[int, frozenset[K]] = {}

    def note(self, key: K) -> None:
        """The value of this key is, or may be, another one now."""
        self._changed.add(key)

    def version(self) -> VersionedMapping[K, V]:
        """The mapping as it is now; the same object as long as nothing was noted."""
        latest = self._latest
        if latest is not None and not self._changed:
            return latest
        number = 0 if latest is None else latest.number + 1
        made = VersionedMapping(self._values, self, number)
        self._notes[number] = frozenset(self._changed)
        self._notes.pop(number - MOST_KEPT, None)
        self._changed = set()
        self._latest = made
        return made

    def between(self, old: int, new: int) -> Iterable[K] | None:
        """Keys that were noted after the old version up to the new one; None if too long ago."""
        if not old <= new <= old + MOST_KEPT:
            return None
        # One by one, because meanwhile another thread may make the next version.
        notes = [self._notes.get(number) for number in range(old + 1, new + 1)]
        found: set[K] = set()
        for each in notes:
            if each is None:
                return None
            found |= each
        return found


def changed_keys(old: Mapping[K, object], new: Mapping[K, object]) -> Iterable[K] | None:
    """Keys that only one of them has, or that may differ; None if that is not known."""
    if old is new:
        return ()
    if not isinstance(old, VersionedMapping) or not isinstance(new, VersionedMapping):
        return None
    if old.history is not new.history:
        return None
    noted = new.history.between(old.number, new.number)
    if noted is None or not (old.replaced or new.replaced):
        return noted
    return {*noted, *old.replaced, *new.replaced}


def with_values(mapping: Mapping[K, V], others: Mapping[K, V]) -> Mapping[K, V]:
    """The mapping with other values for some keys, of the same history if it has one."""
    if isinstance(mapping, VersionedMapping):
        return mapping.with_values(others)
    return {**mapping, **others}


def without(mapping: Mapping[K, V], keys: Iterable[K]) -> Mapping[K, V]:
    """The mapping without some keys, of the same history if it has one."""
    if isinstance(mapping, VersionedMapping):
        return mapping.without(keys)
    gone = frozenset(keys)
    return {key: value for key, value in mapping.items() if key not in gone}
