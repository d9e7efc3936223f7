"""What a line of another batch system means in terms of `muster submit`. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.model.errors import MusterError


class ForeignError(MusterError):
    """An option cannot be read, or means something that must not be passed over."""


@dataclass
class Meaning:
    """What a script comes to: fields of the table of requests, by their names.

    cautions: what was accepted and has no effect. shell: what runs a script without a first line.
    env: what the other system would tell the job when it is submitted.
    """

    options: dict[str, Any] = field(default_factory=dict[str, Any])
    cautions: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    shell: str = "/bin/sh"

    def add(self, name: str, *values: str) -> None:
        """One more of an option that may be given several times."""
        self.options[name] = (*self.options.get(name, ()), *values)

    def set(self, name: str, **values: str | None) -> None:
        """Some of an option that gives values to names."""
        self.options[name] = {**self.options.get(name, {}), **values}

    def set_env(self, settings: Iterable[str]) -> None:
        """Variables, `NAME=VALUE` or `NAME` alone."""
        for setting in settings:
            name, equals, value = setting.partition("=")
            self.set("env", **{name: value if equals else None})

    def add_mail(self, *occasions: str) -> None:
        """Send mail on these occasions too."""
        self.options["mail_on"] = tuple(
            dict.fromkeys((*self.options.get("mail_on", ()), *occasions))
        )


Reads = Callable[[Meaning, str], None]


@dataclass(frozen=True)
class ForeignOption:
    """An option: whether a value follows, and what it does to the meaning."""

    takes: bool
    reads: Reads


def flags(*names: str, does: Reads) -> dict[str, ForeignOption]:
    return {name: ForeignOption(takes=False, reads=does) for name in names}


def valued(*names: str, does: Reads) -> dict[str, ForeignOption]:
    return {name: ForeignOption(takes=True, reads=does) for name in names}


def without_effect(*names: str, why: str, takes: bool) -> dict[str, ForeignOption]:
    """Options that are accepted with a word about it."""

    def reader(name: str) -> Reads:
        return lambda meaning, _: meaning.cautions.append(f"{name} has no effect: {why}")

    return {name: ForeignOption(takes=takes, reads=reader(name)) for name in names}


def refused(*names: str, why: str, takes: bool) -> dict[str, ForeignOption]:
    """Options whose meaning we cannot give, and which must not be passed over."""

    def refuse(name: str) -> Reads:
        def reads(_: Meaning, __: str) -> None:
            raise ForeignError(f"{name} is not supported: {why}")

        return reads

    return {name: ForeignOption(takes=takes, reads=refuse(name)) for name in names}


def read_line(words: list[str], known: Mapping[str, ForeignOption], meaning: Meaning) -> None:
    """Every option of one line; a value may follow its option without a space."""
    left = iter(words)
    for word in left:
        name, value = _option(word, known)
        if name is None:
            raise ForeignError(f"there is no option {word}")
        option = known[name]
        if option.takes and not value:
            value = next(left, "")
            if not value:
                raise ForeignError(f"{name} needs a value")
        option.reads(meaning, value)


def memory_text(text: str, *, bare: str) -> str:
    """`16gb`, `512mb`, `4096kb` as `muster submit` reads it; digits alone are in `bare`."""
    found = re.fullmatch(r"([0-9]+)\s*([kmgt]?)[bw]?", text.strip().lower())
    if found is None:
        raise ForeignError(f"{text} is no amount of memory")
    unit = found[2] or bare
    if unit == "k":
        return f"{-(-int(found[1]) // 1_024)}M"
    return f"{found[1]}{unit.upper()}"


def pieces(text: str, mark: str) -> Iterator[str]:
    """At marks that no quotes and no brackets enclose."""
    depth, quote, begin = 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == mark and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _option(word: str, known: Mapping[str, ForeignOption]) -> tuple[str | None, str]:
    """The longest option that the word begins with, and what follows it there."""
    if word in known:
        return word, ""
    for size in range(len(word) - 1, 1, -1):
        name = word[:size]
        if name in known and known[name].takes and len(name) == 2:
            return name, word[size:].removeprefix("=")
    return None, ""
