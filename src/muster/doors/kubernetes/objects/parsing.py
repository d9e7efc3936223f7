"""JSON that somebody else wrote, read as Go reads it, and refused in its words."""

import json
import math
from collections.abc import Iterator
from typing import Any

from muster.doors.kubernetes.objects.value import is_list, is_map

DEEPEST = 200
"""Whatever looks at objects goes into them as deep as they are."""


class UnreadableError(Exception):
    """No JSON; the text is what Go says of it."""


def parse_json(body: bytes) -> Any:
    """JSON; UnreadableError says what is wrong with it, in Go's words as far as they matter."""
    try:
        found = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise UnreadableError("exceeded max depth") from None
    except UnicodeDecodeError:
        raise UnreadableError("invalid UTF-8 in string") from None
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()):
            raise UnreadableError("unexpected end of JSON input") from None
        raise UnreadableError(
            f"invalid character {error.doc[error.pos]!r} looking for beginning of value"
        ) from None
    except ValueError:
        raise UnreadableError("a number has too many digits") from None
    demand_shallow(found)
    return well_formed(found, body)


def well_formed(found: Any, body: bytes) -> Any:
    """Half a pair of UTF-16, which no text may have, is written as Go writes it: U+FFFD."""
    if b"\\u" not in body and b"\\U" not in body:
        return found
    text = json.dumps(found, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise UnreadableError(f"cannot unmarshal number {text} into Go value of type float64")
    return number


def _refuse_constant(name: str) -> Any:
    raise UnreadableError(f"invalid character {name[0]!r} looking for beginning of value")


def demand_shallow(value: Any) -> None:
    """UnreadableError if it is nested deeper than any honest object."""
    for depth, _ in enumerate(levels_of(value)):
        if depth > DEEPEST:
            raise UnreadableError("exceeded max depth")


def levels_of(value: Any) -> Iterator[list[Any]]:
    """What is in a value, level by level: the maps and lists there."""
    level: list[Any] = [value] if is_map(value) or is_list(value) else []
    while level:
        yield level
        level = [
            child
            for each in level
            for child in (each.values() if is_map(each) else each)
            if is_map(child) or is_list(child)
        ]
