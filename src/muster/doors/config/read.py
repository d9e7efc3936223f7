"""From a tree to values, by the table of keys; whatever cannot be read is noted, and left out."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeGuard

from muster.doors.config.faults import Findings, Path, suggestion
from muster.doors.config.kinds import NAME, ValueType, amount_kind
from muster.doors.config.make import made
from muster.doors.config.of_queues import QUEUE
from muster.doors.config.shapes import (
    Aside,
    Branches,
    Inside,
    Key,
    Many,
    Metered,
    NamedMapping,
    Pairs,
    Section,
    ValueList,
)
from muster.doors.config.tree import Listed, Mapped, Scalar, Tree
from muster.doors.units import BadTextError
from muster.model.queue import Meter, Queue
from muster.model.value import QueuePath, Value

Fields = dict[str, Any]
"""What a mapping sets, by the model's names; it ends where a value is made of it."""


class Reader:
    """Reads one file; what it finds wrong goes to `findings`."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def value(self, section: Section, tree: Tree, keys: Path, name: str = "") -> Value | None:
        """The value that this mapping describes, or None where too much is missing."""
        known_faults = len(self._findings.faults)
        fields = self._fields(section, tree, keys)
        for key in section.keys:
            if key.required and key.target not in fields and not self._is_noted((*keys, key.name)):
                self._findings.wrong(
                    tree.spot,
                    keys,
                    f"`{key.name}` is missing; for example `{key.name}: {key.example}`",
                )
        value = made(section, fields, name)
        if not isinstance(value, str):
            return value
        # Where a part could not be read, what is wrong with the whole may be wrong itself.
        if len(self._findings.faults) == known_faults:
            self._findings.wrong(tree.spot, keys, value)
        return None

    def _fields(self, section: Section, tree: Tree, keys: Path) -> Fields:
        fields: Fields = {}
        meter = _meter(tree)
        for key, below in self._known(section, tree, keys):
            way = (*keys, key.name)
            self._findings.spots[way] = below.spot
            if isinstance(key.shape, Aside):
                fields |= self._fields(key.shape.section, below, way)
            elif (value := self._shaped(key, below, way, meter)) is not _UNREAD:
                fields[key.target] = value
        return fields

    def _known(self, section: Section, tree: Tree, keys: Path) -> Iterator[tuple[Key, Tree]]:
        for word, below in self._entries(tree, keys, [key.name for key in section.keys]):
            key = section.key(word.text)
            if key is not None:
                yield key, below
                continue
            hint = _suggested(word.text, section)
            self._findings.wrong(word.spot, (*keys, word.text), f"unknown key{hint}")

    def _entries(
        self, tree: Tree, keys: Path, such_as: list[str]
    ) -> tuple[tuple[Scalar, Tree], ...]:
        match tree:
            case Mapped(entries=entries):
                return entries
            case Scalar(is_nothing=True):
                return ()
            case Scalar() | Listed():
                wanted = f"with keys such as `{such_as[0]}:`" if such_as else "from names to values"
                self._findings.wrong(tree.spot, keys, f"a mapping is wanted here, {wanted}")
                return ()

    def _shaped(self, key: Key, tree: Tree, keys: Path, meter: Meter) -> Any:
        match key.shape:
            case ValueType() | Metered() as kind:
                return self._word(
                    amount_kind(meter) if isinstance(kind, Metered) else kind, key, tree, keys
                )
            case Many(each=kind, split=split):
                if split is not None and isinstance(tree, Scalar) and not tree.is_nothing:
                    return self._split(split, tree, keys)
                return tuple(self._words(kind, tree, keys))
            case Pairs() as pairs:
                return dict(self._pairs(pairs, tree, keys))
            case Inside(section=section):
                return self._made(section, tree, keys)
            case NamedMapping(section=section, name=kind):
                return dict(self._named(section, kind, tree, keys))
            case Branches():
                return dict(self._branches(tree, keys))
            case ValueList(section=section):
                return tuple(self._lines(section, tree, keys))
            case Aside():
                return _UNREAD

    def _word(self, kind: ValueType, key: Key, tree: Tree, keys: Path) -> Any:
        if not isinstance(tree, Scalar):
            self._findings.wrong(tree.spot, keys, f"one word is wanted here: {kind.called}")
            return _UNREAD
        if tree.is_nothing and key.optional:
            return None
        if tree.is_nothing and tree.text.lower() != "none":
            text = f"nothing is written here; write {kind.called}, or leave the key out"
            self._findings.wrong(tree.spot, keys, text)
            return _UNREAD
        return self._read(kind, tree, keys)

    def _read(self, kind: ValueType, word: Scalar, keys: Path) -> Any:
        try:
            return kind.read(word.text)
        except BadTextError as bad:
            self._findings.wrong(word.spot, keys, str(bad))
            return _UNREAD

    def _words(self, kind: ValueType, tree: Tree, keys: Path) -> Iterator[Any]:
        for item, way in self._items(tree, keys, kind.called):
            if not isinstance(item, Scalar):
                self._findings.wrong(item.spot, way, f"one word is wanted here: {kind.called}")
            elif (value := self._read(kind, item, way)) is not _UNREAD:
                yield value

    def _split(
        self, split: Callable[[str], tuple[str, ...]], word: Scalar, keys: Path
    ) -> tuple[str, ...]:
        try:
            return split(word.text)
        except ValueError as bad:
            self._findings.wrong(word.spot, keys, f"this cannot be read: {bad}; mind the quotes")
            return ()

    def _pairs(self, pairs: Pairs, tree: Tree, keys: Path) -> Iterator[tuple[str, Any]]:
        for name, below in self._entries(tree, keys, []):
            way = (*keys, name.text)
            self._findings.spots[way] = below.spot
            key = Key(name=name.text, shape=pairs.each, meaning="", optional=pairs.optional)
            if (value := self._word(pairs.each, key, below, way)) is not _UNREAD:
                yield name.text, value

    def _lines(self, section: Section, tree: Tree, keys: Path) -> Iterator[Value]:
        for item, way in self._items(tree, keys, f"a {section.noun}"):
            value = self.value(section, item, way)
            if value is not None:
                yield value

    def _items(self, tree: Tree, keys: Path, called: str) -> Iterator[tuple[Tree, Path]]:
        if isinstance(tree, Listed):
            for number, item in enumerate(tree.items):
                self._findings.spots[(*keys, number)] = item.spot
                yield item, (*keys, number)
        elif not (isinstance(tree, Scalar) and tree.is_nothing):
            text = f"a list is wanted here, with {called} in each place: `[..., ...]`"
            self._findings.wrong(tree.spot, keys, text)

    def _made(self, section: Section, tree: Tree, keys: Path) -> Any:
        value = self.value(section, tree, keys)
        return _UNREAD if value is None else value

    def _named(
        self, section: Section, kind: ValueType, tree: Tree, keys: Path
    ) -> Iterator[tuple[str, Value]]:
        for word, below in self._entries(tree, keys, []):
            way = (*keys, word.text)
            self._findings.spots[way] = word.spot
            name = self._read(kind, word, way)
            value = self.value(section, below, way, "" if name is _UNREAD else name)
            if value is not None and name is not _UNREAD:
                yield name, value

    def _branches(self, tree: Tree, keys: Path) -> Iterator[tuple[QueuePath, Queue]]:
        """Each queue before those below it. Every second key of the way is a queue's name."""
        above = "".join(f"{key}/" for key in keys[1::2])
        for word, below in self._entries(tree, keys, []):
            way = (*keys, word.text)
            self._findings.spots[way] = word.spot
            name = self._read(NAME, word, way)
            fields = self._fields(QUEUE, below, way)
            deeper: Mapping[QueuePath, Queue] = fields.pop("queues", {})
            if name is _UNREAD:
                continue
            path = QueuePath(above + name)
            yield path, Queue(path=path, **fields)
            yield from deeper.items()

    def _is_noted(self, keys: Path) -> bool:
        return keys in self._findings.spots


def _meter(tree: Tree) -> Meter:
    """What a line counts, so that its amounts can be read; a bad word is noted elsewhere."""
    entries = tree.entries if isinstance(tree, Mapped) else ()
    given = [below.text for word, below in entries if word.text == "meter" and _is_meter(below)]
    return Meter(given[0]) if given else Meter.GPU


def _is_meter(tree: Tree) -> TypeGuard[Scalar]:
    return isinstance(tree, Scalar) and tree.text in list(Meter)


def _suggested(word: str, section: Section) -> str:
    """The key that is meant: by another name of it, or by one that looks alike."""
    for key in section.keys:
        if word in key.other_names:
            return f"; did you mean `{key.name}`?"
    return suggestion(word, (each.name for each in section.keys))


class _Unread(Enum):
    """Stands for what could not be read: the reason is noted."""

    UNREAD = "unread"


_UNREAD = _Unread.UNREAD
