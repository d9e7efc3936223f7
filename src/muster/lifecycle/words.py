"""Names as people read and mistype them."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three names like this one, the most alike first."""
    return tuple(get_close_matches(name, sorted(known), n=3))


def choice(names: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
