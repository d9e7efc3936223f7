"""Lists of nodes and of numbers as Slurm writes them: `node[1-3,7]`, `0-2,5`, `8(x2),4`.

The order is kept: `node2,node1` is `node[2,1]`, as in Slurm.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

MOST_IN_RANGE = 65_536
MOST_NODES = 1_000_000

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class NoHostlistError(ValueError):
    """The text is no list of nodes."""


def expanded(text: str) -> tuple[str, ...]:
    """Every name that the expression stands for, in its order."""
    found: list[str] = []
    for each in _split(text):
        found.extend(_names(each, text))
        if len(found) > MOST_NODES:
            raise NoHostlistError(text)
    return tuple(found)


def compressed(names: Iterable[str]) -> str:
    """The shortest expression that gives these names in this order."""
    return ",".join(_shown(spans) for spans in _by_prefix(_spans(names)))


def ranges_text(numbers: Iterable[int]) -> str:
    """`0-2,5` for numbers in rising order: the indices of an array, or of devices."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def runs_text(counts: Iterable[int]) -> str:
    """`8(x2),4`: how many for each node, as in SLURM_TASKS_PER_NODE."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][0] == count:
            runs[-1][1] += 1
        else:
            runs.append([count, 1])
    return ",".join(str(count) if times == 1 else f"{count}(x{times})" for count, times in runs)


class _Span(NamedTuple):
    """Names that differ in a number which rises; `width` counts its digits with leading zeros."""

    prefix: str
    low: int
    high: int
    width: int


def _spans(names: Iterable[str]) -> list[_Span | str]:
    found: list[_Span | str] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            found.append(name)
            continue
        number, width = int(match[2]), len(match[2])
        new = _Span(prefix=match[1], low=number, high=number, width=width)
        last = found[-1] if found else None
        if isinstance(last, _Span) and last.high + 1 == number and _go_together(last, new):
            found[-1] = _Span(
                prefix=last.prefix, low=last.low, high=number, width=_joint_width(last, new)
            )
        else:
            found.append(new)
    return found


def _by_prefix(spans: list[_Span | str]) -> list[list[_Span | str]]:
    """What can stand in one pair of brackets."""
    found: list[list[_Span | str]] = []
    for span in spans:
        last = found[-1][-1] if found else None
        if isinstance(span, _Span) and isinstance(last, _Span) and last.prefix == span.prefix:
            found[-1].append(span)
        else:
            found.append([span])
    return found


def _go_together(one: _Span, two: _Span) -> bool:
    return one.prefix == two.prefix and _are_alike(one.high, one.width, two.low, two.width)


def _are_alike(one: int, width: int, two: int, other: int) -> bool:
    """Would both numbers look the same if either were written as wide as the other?"""
    return width == other or _reads(one, width, other) or _reads(two, other, width)


def _reads(number: int, width: int, other: int) -> bool:
    return str(number).zfill(width) == str(number).zfill(other)


def _joint_width(one: _Span, two: _Span) -> int:
    if _reads(two.low, two.width, one.width):
        return one.width
    return two.width


def _shown(spans: list[_Span | str]) -> str:
    first = spans[0]
    if isinstance(first, str):
        return first
    texts = [_range_text(span) for span in spans if isinstance(span, _Span)]
    if len(texts) == 1 and first.low == first.high:
        return first.prefix + texts[0]
    return f"{first.prefix}[{','.join(texts)}]"


def _range_text(span: _Span) -> str:
    low = str(span.low).zfill(span.width)
    return low if span.low == span.high else f"{low}-{str(span.high).zfill(span.width)}"


def _split(text: str) -> Iterator[str]:
    """At commas and spaces outside of brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in {0, 1}:
            raise NoHostlistError(text)
        if depth == 0 and letter in ", \n\t":
            yield text[begin:at]
            begin = at + 1
    if depth:
        raise NoHostlistError(text)
    yield text[begin:]


def _names(word: str, text: str) -> list[str]:
    if not word:
        return []
    if "[" in word and not word.endswith("]"):
        # Slurm has no names that go on behind their last number.
        raise NoHostlistError(text)
    choices: list[list[str]] = []
    size = 1
    for inside, outside in _PART.findall(word):
        choices.append([outside] if outside else _numbers(inside, text))
        size *= len(choices[-1])
        if size > MOST_NODES:
            raise NoHostlistError(text)
    return ["".join(each) for each in product(*choices)]


def _numbers(inside: str, text: str) -> list[str]:
    found: list[str] = []
    for each in inside.split(","):
        match = _RANGE.fullmatch(each.strip())
        if match is None:
            raise NoHostlistError(text)
        low = match[1]
        high = match[2] or low
        if not 0 <= int(high) - int(low) < MOST_IN_RANGE:
            raise NoHostlistError(text)
        found.extend(str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
    return found
