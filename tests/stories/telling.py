"""A world in few words: what is as usual is left out."""

from collections.abc import Mapping
from enum import Enum
from typing import cast

import msgspec


def as_text(value: object) -> str:
    """The value as an expression, without the fields that have their defaults."""
    match value:
        case msgspec.Struct():
            said = ", ".join(f"{name}={as_text(part)}" for name, part in _unusual(value).items())
            return f"{type(value).__name__}({said})"
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple():
            parts = cast("tuple[object, ...]", value)
            return f"({', '.join(as_text(part) for part in parts)},)" if parts else "()"
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return f"{{{', '.join(f'{as_text(key)}: {as_text(item)}' for key, item in items)}}}"
        case _:
            return repr(value)


def _unusual(value: msgspec.Struct) -> dict[str, object]:
    fields = msgspec.structs.fields(value)
    parts = {field.name: getattr(value, field.name) for field in fields}
    usual = {field.name: field.default for field in fields}
    return {name: part for name, part in parts.items() if part != usual[name] and part != {}}
