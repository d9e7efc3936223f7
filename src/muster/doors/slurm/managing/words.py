"""The words after sacctmgr's verb: `where name=alice set qos+=high`. Pure."""

from collections.abc import Iterable, Sequence

from muster.doors.slurm.words.errors import SlurmError
from muster.model.value import Value

EQUALS, PLUS, MINUS = "=", "+=", "-="


class Assignment(Value):
    """`name=value`, `name+=value`, `name-=value`; without a sign the name stands alone."""

    name: str
    sign: str = ""
    value: str = ""

    @property
    def text(self) -> str:
        return f"{self.name}{self.sign}{self.value}"

    @property
    def values(self) -> tuple[str, ...]:
        """Several, with commas between them."""
        return tuple(each.strip() for each in self.value.split(",") if each.strip())


class Words(Value):
    """Which ones, and what they are to be like."""

    where: tuple[Assignment, ...] = ()
    what: tuple[Assignment, ...] = ()


def split(words: Iterable[str], *, first: str = "where") -> Words:
    """Words up to `set` say which, those after it say what, as `where` and `set` turn it over."""
    found: dict[str, list[Assignment]] = {"where": [], "set": []}
    side = first
    for word in words:
        if word.lower() in found:
            side = word.lower()
        else:
            found[side].append(word_of(word))
    return Words(where=tuple(found["where"]), what=tuple(found["set"]))


def word_of(text: str) -> Assignment:
    name, equals, value = text.partition("=")
    if not equals:
        return Assignment(name=text)
    value = value.strip().strip("'\"")
    if name[-1:] in {"+", "-"}:
        return Assignment(name=name[:-1], sign=f"{name[-1]}=", value=value)
    return Assignment(name=name, sign=EQUALS, value=value)


def meant(name: str, known: Sequence[str]) -> str | None:
    """The first name that begins so, in any letters; None if none does."""
    wanted = name.lower()
    if not wanted:
        return None
    exact = [each for each in known if each.lower() == wanted]
    near = [each for each in known if each.lower().startswith(wanted)]
    return next(iter(exact or near), None)


def changed(old: Sequence[str], word: Assignment) -> tuple[str, ...]:
    """A list after `=`, `+=` or `-=`."""
    if word.sign == PLUS:
        return tuple(dict.fromkeys((*old, *word.values)))
    if word.sign == MINUS:
        return tuple(each for each in old if each not in word.values)
    return tuple(dict.fromkeys(word.values))


def number(word: Assignment, shown: str) -> int | None:
    """A whole number; -1 takes a bound away."""
    text = word.value
    if not text.lstrip("-").isdecimal() or len(text) > 12:
        raise bad_value(shown, text)
    return None if text.startswith("-") else int(text)


def whole(word: Assignment, shown: str) -> int:
    """A whole number, also below zero."""
    if not word.value.removeprefix("-").isdecimal() or len(word.value) > 12:
        raise bad_value(shown, word.value)
    return int(word.value)


def bad_value(shown: str, text: str) -> SlurmError:
    return SlurmError(
        f"sacctmgr: error: Invalid value for {shown} ({text})",
        " You didn't give me anything to set",
    )
