"""YAML as we take it: words, lists and mappings, each with its place in the text.

Every word stays text, whatever YAML would make of it: `no`, `1e3`, `12:30` and dates are read by
who knows what belongs there.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from muster.doors.config.faults import Findings, Path, TextPosition
from muster.model.value import Value

MOST_CHARACTERS = 4_000_000
MOST_NODES = 500_000
DEEPEST = 60


class Scalar(Value):
    """A scalar. A plain one is not quoted, so that `null` can mean nothing."""

    text: str
    plain: bool
    spot: TextPosition

    @property
    def is_nothing(self) -> bool:
        return self.plain and self.text.lower() in ("", "~", "null", "none")


class Listed(Value):
    """A list."""

    items: "tuple[Tree, ...]"
    spot: TextPosition


class Mapped(Value):
    """A mapping, in the order in which it is written."""

    entries: "tuple[tuple[Scalar, Tree], ...]"
    spot: TextPosition


Tree = Scalar | Listed | Mapped


def tree_of(text: str, findings: Findings) -> Tree | None:
    """The one document of a text, or None where it is empty or no YAML."""
    if len(text) > MOST_CHARACTERS:
        findings.wrong(
            TextPosition(line=1, column=1), (), "the file is too long to be a configuration"
        )
        return None
    try:
        if (spot := _too_deep(text)) is not None:
            findings.wrong(spot, (), "this is nested too deeply")
            return None
        root = _root(text)
    except yaml.YAMLError as bad:
        findings.wrong(_spot_of_error(bad), (), f"this is not YAML: {_complaint(bad)}")
        return None
    return None if root is None else _Planting(findings).tree(root, ())


class _Planting:
    """Turns one document's nodes into trees, and stops where aliases would make them endless."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._count = 0

    def tree(self, node: yaml.Node, keys: Path) -> Tree:
        spot = _spot(node)
        self._count += 1
        if len(keys) > DEEPEST or self._count > MOST_NODES:
            self._findings.wrong(spot, keys[:4], "this is nested too deeply, or repeats too often")
            return Scalar(text="", plain=True, spot=spot)
        if not node.tag.startswith("tag:yaml.org,2002:"):
            self._findings.wrong(spot, keys, f"the tag `{node.tag}` means nothing here; remove it")
        match node:
            case yaml.MappingNode():
                return Mapped(entries=tuple(self._entries(node, keys)), spot=spot)
            case yaml.SequenceNode():
                items = (self.tree(item, (*keys, n)) for n, item in enumerate(node.value))
                return Listed(items=tuple(items), spot=spot)
            case _:
                return Scalar(text=str(node.value), plain=not _is_quoted(node), spot=spot)

    def _entries(self, node: yaml.MappingNode, keys: Path) -> Iterator[tuple[Scalar, Tree]]:
        """What is written here, then what `<<` brings along and is not written here."""
        seen: dict[str, TextPosition] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged.append(value)
                continue
            name = self._name(key, keys)
            if name is not None and not self._is_twice(name, seen, keys):
                yield name, self.tree(value, (*keys, name.text))
        for value in merged:
            for name, below in self._merged(value, keys):
                if name.text not in seen:
                    seen[name.text] = name.spot
                    yield name, below

    def _name(self, key: yaml.Node, keys: Path) -> Scalar | None:
        if isinstance(key, yaml.ScalarNode):
            return Scalar(text=str(key.value), plain=not _is_quoted(key), spot=_spot(key))
        self._findings.wrong(_spot(key), keys, "a key must be one word")
        return None

    def _is_twice(self, name: Scalar, seen: dict[str, TextPosition], keys: Path) -> bool:
        first = seen.setdefault(name.text, name.spot)
        if first == name.spot:
            return False
        text = f"this is here twice, first in line {first.line}; keep one of them"
        self._findings.wrong(name.spot, (*keys, name.text), text)
        return True

    def _merged(self, value: yaml.Node, keys: Path) -> Iterator[tuple[Scalar, Tree]]:
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for source in sources:
            tree = self.tree(source, (*keys, "<<"))
            if isinstance(tree, Mapped):
                yield from tree.entries
            else:
                self._findings.wrong(tree.spot, (*keys, "<<"), "only mappings can be merged")


def _too_deep(text: str) -> TextPosition | None:
    """Where the nesting goes too far: libyaml would follow it until the stack is full."""
    depth = 0
    # The stubs say nothing about events.
    loader: Any = _LOADER(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return _spot_at(event.start_mark)
    finally:
        loader.dispose()
    return None


def _root(text: str) -> yaml.Node | None:
    loader = _LOADER(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _spot(node: yaml.Node) -> TextPosition:
    return _spot_at(node.start_mark)


def _spot_at(mark: yaml.Mark | None) -> TextPosition:
    if mark is None:
        return TextPosition(line=1, column=1)
    return TextPosition(line=mark.line + 1, column=mark.column + 1)


def _is_quoted(node: yaml.Node) -> bool:
    return getattr(node, "style", None) in ("'", '"', "|", ">")


def _spot_of_error(bad: yaml.YAMLError) -> TextPosition:
    mark = getattr(bad, "problem_mark", None) or getattr(bad, "context_mark", None)
    return _spot_at(mark)


def _complaint(bad: yaml.YAMLError) -> str:
    if not isinstance(bad, yaml.MarkedYAMLError):
        return " ".join(str(bad).split())
    return ", ".join(part for part in (bad.context, bad.problem) if part)


_MERGE = "tag:yaml.org,2002:merge"
# The one in C is ten times faster, and is missing where libyaml is.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
