"""Versions of a mapping: between any two recent ones it is known which keys may differ.

A version costs what changed since the one before, not what it holds: all versions share one
dictionary that goes on changing, and each remembers the values that were replaced after it.
"""

from collections import deque
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Generic, TypeVar, overload
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

MOST_KEPT = 256
"""So many versions back it is known what changed: not every reader reads every version."""

MOST_SHARED = 8
"""Versions further back than this get a dictionary of their own, if somebody still has them."""

ABSENT: Any = object()
"""Stands for the value of a key that is not there."""

UNCHANGED: Any = object()


class VersionedMapping(Mapping[K, V]):
    """One version of a mapping; nobody can change it.

    A key is looked up in the shared dictionary first and among the replaced values after that.
    A writer notes what it replaces before it replaces it. So whatever another thread writes
    meanwhile, what is found is the value of this version.
    replaced: keys that have other values here than in the version of the same number.
    """

    __slots__ = (
        "__weakref__",
        "_later",
        "_own",
        "_shared",
        "_size",
        "_undo",
        "history",
        "number",
        "replaced",
    )

    def __init__(
        self,
        shared: Mapping[K, V],
        history: "VersionHistory[K, V]",
        number: int,
        replaced: frozenset[K] = frozenset(),
    ) -> None:
        self.history = history
        self.number = number
        self.replaced = replaced
        self._shared = shared
        self._size = len(shared)
        # What keys had here that have another value, or none, in later versions.
        self._undo: dict[K, V] = {}
        self._later: VersionedMapping[K, V] | None = None
        self._own: dict[K, V] | None = None

    def __getitem__(self, key: K) -> V:
        value = self._value(key)
        if value is ABSENT:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        value = self._value(key)
        return default if value is ABSENT else value

    def __contains__(self, key: object) -> bool:
        return self._value(key) is not ABSENT  # pyright: ignore[reportArgumentType]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        return iter(self.whole())

    def keys(self) -> KeysView[K]:
        return self.whole().keys()

    def values(self) -> ValuesView[V]:
        return self.whole().values()

    def items(self) -> ItemsView[K, V]:
        return self.whole().items()

    def with_values(self, others: Mapping[K, V]) -> "VersionedMapping[K, V]":
        """What the mapping would be with these values; how the two differ stays known."""
        return self._beside(dict(others))

    def without(self, keys: Iterable[K]) -> "VersionedMapping[K, V]":
        """What the mapping would be without these; how the two differ stays known."""
        gone: dict[K, Any] = dict.fromkeys(keys, ABSENT)
        return self._beside(gone)

    def whole(self) -> dict[K, V]:
        """A dictionary of its own; made when it is first needed."""
        own = self._own
        if own is None:
            # First what is shared, then what was replaced: see above.
            own = dict(self._shared)
            line: list[VersionedMapping[K, V]] = []
            version: VersionedMapping[K, V] | None = self
            while version is not None:
                if version._own is not None:
                    own = dict(version._own)
                    break
                line.append(version)
                version = version._later
            for each in reversed(line):
                _put_back(own, dict(each._undo))
            self._own = own
        return own

    def note(self, key: K, value: V) -> None:
        """The key had this value here; for the history alone."""
        self._undo.setdefault(key, value)

    def precede(self, later: "VersionedMapping[K, V]") -> None:
        """From now on, what is replaced is noted there; for the history alone."""
        self._later = later

    def stand_alone(self) -> None:
        """Need no later version any more; for the history alone."""
        self.whole()
        self._later = None

    def _value(self, key: K) -> Any:
        own = self._own
        if own is not None:
            return own.get(key, ABSENT)
        value = self._shared.get(key, ABSENT)
        if not self._undo and self._later is None:
            return value
        version: VersionedMapping[K, V] | None = self
        while version is not None:
            if version._own is not None:
                return version._own.get(key, ABSENT)
            replaced = version._undo.get(key, UNCHANGED)
            if replaced is not UNCHANGED:
                return replaced
            version = version._later
        return value

    def _beside(self, others: dict[K, V]) -> "VersionedMapping[K, V]":
        made = VersionedMapping(
            self._shared, self.history, self.number, self.replaced | others.keys()
        )
        made._undo, made._later = others, self
        gone = sum(value is ABSENT and key in self for key, value in others.items())
        come = sum(value is not ABSENT and key not in self for key, value in others.items())
        made._size = len(self) - gone + come
        return made


def _put_back(values: dict[K, V], replaced: dict[K, V]) -> None:
    for key, value in replaced.items():
        if value is ABSENT:
            values.pop(key, None)
        else:
            values[key] = value


class VersionHistory(Generic[K, V]):
    """A dictionary that goes on changing, and its versions. All changes must go through this."""

    def __init__(self, values: dict[K, V]) -> None:
        self._values = values
        self._changed: set[K] = set(values)
        self._latest: VersionedMapping[K, V] | None = None
        # By the number of a version, the keys that were changed since the one before it.
        self._notes: dict[int, frozenset[K]] = {}
        self._recent: deque[ref[VersionedMapping[K, V]]] = deque()

    def set(self, key: K, value: V) -> None:
        """The key has this value from now on."""
        self._note(key)
        self._values[key] = value

    def drop(self, key: K) -> V | None:
        """The key is gone from now on; what it had."""
        self._note(key)
        return self._values.pop(key, None)

    def version(self) -> VersionedMapping[K, V]:
        """The mapping as it is now; the same object as long as nothing was changed."""
        latest = self._latest
        if latest is not None and not self._changed:
            return latest
        number = 0 if latest is None else latest.number + 1
        made = VersionedMapping(self._values, self, number)
        self._notes[number] = frozenset(self._changed)
        self._notes.pop(number - MOST_KEPT, None)
        self._changed = set()
        if latest is not None:
            latest.precede(made)
        self._latest = made
        self._keep_short(made)
        return made

    def between(self, old: int, new: int) -> Iterable[K] | None:
        """Keys that were changed after the old version up to the new one; None if too long ago."""
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

    def _note(self, key: K) -> None:
        """Before the change: what the last version must remember."""
        if self._latest is not None:
            had: Any = self._values.get(key, ABSENT)
            self._latest.note(key, had)
        self._changed.add(key)

    def _keep_short(self, made: VersionedMapping[K, V]) -> None:
        """A version that somebody keeps for long must not keep all those after it."""
        self._recent.append(ref(made))
        if len(self._recent) > MOST_SHARED:
            old = self._recent.popleft()()
            if old is not None:
                old.stand_alone()


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
