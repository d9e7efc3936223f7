"""Writes the configuration file that gives a site back."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muster.doors.config.kinds import ValueType, amount_kind
from muster.doors.config.of_queues import QUEUE
from muster.doors.config.of_site import SITE
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
from muster.model.queue import Meter, Queue, Quota
from muster.model.site import Site
from muster.model.value import QueuePath, Value

HEADER = """\
# The rules of this installation. `muster apply -f FILE` makes them hold, all of them:
# what is not in the file is removed. What has its default value is not written here.
"""

WIDEST = 96

Written = str | list["Written"] | dict[str, "Written"]
"""A file before it is laid out: words as they are written, lists and mappings."""


def site_text(site: Site) -> str:
    """The file that describes this site: read again, it gives the same value."""
    written = _mapping(SITE, site)
    # A file without any word would be refused, because applied by mistake it removes everything.
    written.setdefault("default_queue", _word(site.default_queue))
    parts = ["\n".join(_entry(name, below, 0)) for name, below in _ordered(written)]
    return HEADER + "".join(f"\n{part}\n" for part in parts)


def value_of(value: Value | None, target: str) -> Any:
    """What a value has at `scope.pool`; None where it has no such field."""
    found: Any = value
    for name in target.split("."):
        found = getattr(found, name, None)
    return found


def kind_text(kind: ValueType, value: Any) -> str:
    """One word as it is written, or `none`."""
    return "none" if value is None else kind.write(value)


def kind_of(shape: ValueType | Metered, value: Value) -> ValueType:
    """How words of this shape are written inside this value."""
    if isinstance(shape, ValueType):
        return shape
    return amount_kind(value.scope.meter if isinstance(value, Quota) else Meter.GPU)


def _ordered(written: dict[str, Written]) -> Iterator[tuple[str, Written]]:
    for key in SITE.keys:
        if key.name in written:
            yield key.name, written[key.name]


def _mapping(section: Section, value: Value) -> dict[str, Written]:
    found: dict[str, Written] = {}
    for key in section.keys:
        if (written := _written(key, section, value)) is not None:
            found[key.name] = written
    return found


def _written(key: Key, section: Section, value: Value) -> Written | None:
    """What to write for this key, or None where the default says it."""
    given = value_of(value, key.target)
    match key.shape:
        case Branches():
            return _branches(value.queues, "") or None if isinstance(value, Site) else None
        case Aside(section=beside):
            return _mapping(beside, value) or None
        case Inside(section=within):
            return _mapping(within, given) or None
        case NamedMapping(section=each):
            return {_word(name): _mapping(each, given[name]) for name in sorted(given)} or None
        case ValueList(section=each):
            return [_mapping(each, line) for line in given] or None
        case ValueType() | Metered() | Many() | Pairs() as shape:
            is_default = _is_default(given, section, key)
            return None if is_default and not key.required else _words(shape, given, value)


def _is_default(given: Any, section: Section, key: Key) -> bool:
    """Without a blank to compare with, what is not there, nothing and no are the default."""
    if section.blank is None:
        return given is None or given is False or given == ()
    return given == value_of(section.blank, key.target)


def _words(shape: ValueType | Metered | Many | Pairs, given: Any, value: Value) -> Written:
    if isinstance(shape, Many):
        return [_quoted(shape.each, each) for each in given]
    if isinstance(shape, Pairs):
        return {name: _quoted(shape.each, each) for name, each in given.items()}
    return _quoted(kind_of(shape, value), given)


def _quoted(kind: ValueType, given: Any) -> str:
    text = kind_text(kind, given)
    return _word(text) if kind.is_name and given is not None else text


def _branches(queues: Mapping[QueuePath, Queue], above: str) -> dict[str, Written]:
    found: dict[str, Written] = {}
    for name in sorted({_next_name(path, above) for path in queues if path.startswith(above)}):
        path = QueuePath(above + name)
        here = _mapping(QUEUE, queues.get(path, Queue(path=path)))
        if below := _branches(queues, f"{path}/"):
            here["queues"] = below
        found[_word(name)] = here
    return found


def _next_name(path: str, above: str) -> str:
    return path.removeprefix(above).partition("/")[0]


def _word(text: str) -> str:
    """In quotes, unless every reader of YAML takes it for the text that it is."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _entry(name: str, below: Written, depth: int) -> list[str]:
    """One key with what belongs to it, on one line where it fits and is no tree."""
    indent = "  " * depth
    short = f"{indent}{name}: {_inline(below)}"
    if isinstance(below, str) or (_is_flat(below, depth) and len(short) <= WIDEST):
        return [short]
    return [f"{indent}{name}:", *_block(below, depth + 1)]


def _block(below: list[Written] | dict[str, Written], depth: int) -> Iterator[str]:
    if isinstance(below, dict):
        for name, deeper in below.items():
            yield from _entry(name, deeper, depth)
        return
    for item in below:
        yield from _item(item, depth)


def _item(item: Written, depth: int) -> Iterator[str]:
    """One place of a list. What does not fit on a line hangs below the dash."""
    short = f"{'  ' * depth}- {_inline(item)}"
    if not isinstance(item, dict) or len(short) <= WIDEST:
        yield short
        return
    lines = list(_block(item, depth + 1))
    yield f"{'  ' * depth}- {lines[0].lstrip()}"
    yield from lines[1:]


def _is_flat(below: list[Written] | dict[str, Written], depth: int) -> bool:
    """Nothing but words and short lists of words; at the top, only where it is one of these."""
    parts = list(below.values()) if isinstance(below, dict) else below
    if not parts:
        return True
    if any(isinstance(part, dict) for part in parts):
        return False
    return all(
        isinstance(part, str) or all(isinstance(word, str) for word in part) for part in parts
    ) and (depth > 0 or len(parts) == 1)


def _inline(written: Written) -> str:
    if isinstance(written, str):
        return written
    if isinstance(written, list):
        return f"[{', '.join(_inline(each) for each in written)}]"
    return f"{{{', '.join(f'{name}: {_inline(each)}' for name, each in written.items())}}}"


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.@+/-]*")
_NOT_TEXT = frozenset("y n yes no on off true false null none".split())
