"""Lists of nodes as Slurm reads them: `node[1-3,7],gpu[01-04]`. Pure.

They are written by `model.hostlist`, because jobs find such lists in their environment.
"""

import re
from collections.abc import Iterator
from itertools import product

from muster.doors.slurm.words.errors import SlurmError
from muster.model.hostlist import compressed, ranges_text, runs_text

__all__ = ["BadHostlistError", "compressed", "expanded", "ranges_text", "runs_text"]

MOST_IN_RANGE = 65_536
MOST_NODES = 1_000_000

_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class BadHostlistError(SlurmError):
    """The text is no list of nodes."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Invalid hostlist: {text}")


def expanded(text: str) -> tuple[str, ...]:
    """Every name that the expression stands for, in its order."""
    found: list[str] = []
    for each in _split(text):
        found.extend(_names(each, text))
        if len(found) > MOST_NODES:
            raise BadHostlistError(text)
    return tuple(found)


def _split(text: str) -> Iterator[str]:
    """At commas and spaces outside of brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in {0, 1}:
            raise BadHostlistError(text)
        if depth == 0 and letter in ", \n\t":
            yield text[begin:at]
            begin = at + 1
    if depth:
        raise BadHostlistError(text)
    yield text[begin:]


def _names(word: str, text: str) -> list[str]:
    if not word:
        return []
    if "[" in word and not word.endswith("]"):
        # Slurm has no names that go on behind their last number.
        raise BadHostlistError(text)
    choices: list[list[str]] = []
    size = 1
    for inside, outside in _PART.findall(word):
        choices.append([outside] if outside else _numbers(inside, text))
        size *= len(choices[-1])
        if size > MOST_NODES:
            raise BadHostlistError(text)
    return ["".join(each) for each in product(*choices)]


def _numbers(inside: str, text: str) -> list[str]:
    found: list[str] = []
    for each in inside.split(","):
        match = _RANGE.fullmatch(each.strip())
        if match is None:
            raise BadHostlistError(text)
        low = match[1]
        high = match[2] or low
        if not 0 <= int(high) - int(low) < MOST_IN_RANGE:
            raise BadHostlistError(text)
        found.extend(str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
    return found
