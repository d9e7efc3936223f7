"""The table of requests as the doors read it: the fields of a document with their rows."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeGuard, get_args, get_origin, get_type_hints

from msgspec import Meta

from muster.api.requests import Row
from muster.model.value import Value


class FieldType(StrEnum):
    """What a field holds, as far as those who read and write it must know."""

    FLAG = "flag"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    TEXTS = "texts"
    PAIRS = "pairs"
    GROUPS = "groups"


class Field(Value):
    """One field. optional: None may be written, and means that nothing is asked for."""

    name: str
    type: FieldType
    optional: bool
    default: Any
    row: Row

    @property
    def options(self) -> tuple[str, ...]:
        """Its names on the command line, `-t --time`; none where it is not said there."""
        if self.row.option is None:
            return ()
        return tuple(self.row.option.split()) or ("--" + self.name.replace("_", "-"),)


def is_pairs(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Is it a value of a field of pairs?"""
    return isinstance(value, Mapping)


@cache
def fields_of(document: type[Value]) -> Mapping[str, Field]:
    """All fields of a document that have a row, in their order."""
    hints = get_type_hints(document, include_extras=True)
    blank = document()
    return {
        name: _field(name, hints[name], getattr(blank, name))
        for name in document.__struct_fields__
        if get_origin(hints[name]) is Annotated
    }


def _field(name: str, hint: Any, default: Any) -> Field:
    kind: Any
    meta: Meta
    kind, meta = get_args(hint)
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return Field(
        name=name,
        type=_type(kinds),
        optional=NoneType in kinds,
        default=default,
        row=(meta.extra or {})["row"],
    )


def _type(kinds: tuple[Any, ...]) -> FieldType:
    if str in kinds:
        return FieldType.TEXT
    for kind in kinds:
        if kind in _PLAIN:
            return _PLAIN[kind]
        if get_origin(kind) is tuple:
            return FieldType.TEXTS if get_args(kind)[0] is str else FieldType.GROUPS
        if get_origin(kind) is Mapping:
            return FieldType.PAIRS
    raise TypeError(f"people have no way to write {kinds}")


_PLAIN = {bool: FieldType.FLAG, int: FieldType.INTEGER, float: FieldType.NUMBER}
