"""`Name=value` as scontrol takes them, also `Name+=value` and `Name-=value`. Pure."""

from collections.abc import Iterable

from muster.doors.slurm.words.errors import SlurmError
from muster.model.value import Value


class Pair(Value):
    """One of them. name: in small letters. sign: `+`, `-` or nothing. text: as it was written."""

    name: str
    value: str
    sign: str = ""
    text: str = ""


def pair_of(word: str) -> Pair:
    """SlurmError for a word without a value."""
    name, equals, value = word.partition("=")
    if not equals:
        raise SlurmError(f"Invalid input: {word}", "Request aborted")
    sign = name[-1:] if name[-1:] in {"+", "-"} else ""
    plain = name[:-1] if sign else name
    return Pair(name=plain.lower(), value=value.strip("'\""), sign=sign, text=word)


def words_of(words: Iterable[str]) -> tuple[Pair, ...]:
    """All of them."""
    return tuple(map(pair_of, words))


def listed(old: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    """A list after `Users=a,b`, `Users+=c` or `Users-=a`."""
    given = tuple(each for each in pair.value.split(",") if each)
    if pair.sign == "+":
        return (*old, *(each for each in given if each not in old))
    if pair.sign == "-":
        return tuple(each for each in old if each not in given)
    return given
