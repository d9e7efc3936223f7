"""What changes from one site to another, line by line."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.controller.messages import SiteDiff
from muster.doors.config.kinds import ValueType
from muster.doors.config.of_machines import RESERVATION
from muster.doors.config.of_queues import QUEUE, QUOTA
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
from muster.doors.config.show import kind_of, kind_text, value_of
from muster.model.cluster import Reservation
from muster.model.queue import Meter, Quota, Scope
from muster.model.site import Site
from muster.model.value import Value
from muster.model.words import placed

Difference = tuple[str, str]
"""The way to a key, and `old -> new`."""


def changes(before: Site, after: Site) -> tuple[str, ...]:
    """`+` is new, `-` is gone, `~` is different; nothing where both are the same."""
    return tuple(line for key in SITE.keys for line in _lines(key, before, after))


def described(diff: SiteDiff) -> str:
    """The same in one line, for the audit log."""
    return "; ".join(changes(diff.before, diff.after))


def _lines(key: Key, before: Site, after: Site) -> Iterator[str]:
    was, becomes = value_of(before, key.target), value_of(after, key.target)
    match key.shape:
        case Branches():
            yield from _named(QUEUE, was, becomes)
        case NamedMapping(section=section):
            yield from _named(section, was, becomes)
        case ValueList():
            yield from _reservations(before.reservations, after.reservations)
        case Inside() | Aside() | ValueType() | Metered() | Many() | Pairs():
            yield from (f"~ {way}: {text}" for way, text in _key(key, before, after))


def _named(
    section: Section, before: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[str]:
    for name in sorted({*before, *after}):
        what = f"{section.noun} {name}"
        if name not in before:
            yield f"+ {what}"
        elif name not in after:
            yield f"- {what}"
        else:
            given = _fields(section, before[name], after[name])
            yield from (f"~ {what}: {way} {text}" for way, text in given)


def _reservations(before: tuple[Reservation, ...], after: tuple[Reservation, ...]) -> Iterator[str]:
    was, becomes = ({each.name: each for each in all_of} for all_of in (before, after))
    lines = tuple(_named(RESERVATION, was, becomes))
    yield from lines
    if not lines and before != after:
        yield "~ reservations: in another order"


def _fields(section: Section, before: Value, after: Value) -> Iterator[Difference]:
    for key in section.keys:
        yield from _key(key, before, after)


def _key(key: Key, before: Value, after: Value) -> Iterator[Difference]:
    """The difference in this key, or in each of the keys inside it."""
    match key.shape:
        case Inside(section=section):
            was, becomes = value_of(before, key.target), value_of(after, key.target)
            yield from _inside(key, _fields(section, was, becomes))
        case Aside(section=section):
            yield from _inside(key, _fields(section, before, after))
        case ValueList(section=section) if section is QUOTA:
            yield from _quotas(value_of(before, key.target), value_of(after, key.target))
        case ValueList():
            yield from _listed(key, value_of(before, key.target), value_of(after, key.target))
        case NamedMapping(section=section):
            was, becomes = value_of(before, key.target), value_of(after, key.target)
            yield from _inside(key, _members(section, was, becomes))
        case ValueType() | Metered() | Many() | Pairs() as shape:
            yield from _words(key, shape, before, after)
        case Branches():
            return


def _inside(key: Key, found: Iterator[Difference]) -> Iterator[Difference]:
    return ((f"{key.name}.{way}", text) for way, text in found)


def _listed(key: Key, before: tuple[Value, ...], after: tuple[Value, ...]) -> Iterator[Difference]:
    """Values without names: which of them is another cannot be said in a word."""
    if before != after:
        yield key.name, f"{len(before)} -> {len(after)}"


def _members(
    section: Section, before: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            yield name, "removed" if name in before else "added"
        else:
            found = _fields(section, before[name], after[name])
            yield from ((f"{name}.{way}", text) for way, text in found)


def _words(
    key: Key, shape: ValueType | Metered | Many | Pairs, before: Value, after: Value
) -> Iterator[Difference]:
    was, becomes = value_of(before, key.target), value_of(after, key.target)
    if was != becomes:
        yield key.name, f"{_text(shape, was, before)} -> {_text(shape, becomes, after)}"


def _quotas(before: tuple[Quota, ...], after: tuple[Quota, ...]) -> Iterator[Difference]:
    was, becomes = ({line.scope: line for line in lines} for lines in (before, after))
    for scope in dict.fromkeys((*was, *becomes)):
        nothing = Quota(scope=scope)
        found = tuple(_line(was.get(scope, nothing), becomes.get(scope, nothing)))
        yield from found or _coming_or_going(scope, is_old=scope in was, is_new=scope in becomes)
    if [*was] != [*becomes] and {*was} == {*becomes}:
        yield "quotas", "in another order"


def _line(before: Quota, after: Quota) -> Iterator[Difference]:
    for way, text in _fields(QUOTA, before, after):
        yield f"{way} ({_scope_text(after.scope)})", text


def _coming_or_going(scope: Scope, *, is_old: bool, is_new: bool) -> list[Difference]:
    """A line without numbers says nothing, but it is or is not there."""
    if is_old == is_new:
        return []
    return [(f"quota ({_scope_text(scope)})", "added" if is_new else "removed")]


def _scope_text(scope: Scope) -> str:
    meter = f"mig {scope.profile}" if scope.meter is Meter.MIG else str(scope.meter)
    return meter + placed(scope)


def _text(shape: ValueType | Metered | Many | Pairs, given: Any, value: Value) -> str:
    if isinstance(shape, Many):
        return f"[{', '.join(shape.each.write(each) for each in given or ())}]"
    if isinstance(shape, Pairs):
        found: Mapping[str, Any] = given or {}
        return f"{{{', '.join(f'{name}: {each}' for name, each in found.items())}}}"
    return kind_text(kind_of(shape, value), given)
