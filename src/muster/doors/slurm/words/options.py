"""Options as getopt_long reads them, with its words for what it cannot read. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from muster.doors.slurm.words.errors import SlurmError
from muster.model.value import Value


class Takes(StrEnum):
    """Does the option have a value? `MAY` takes one only when it is joined on."""

    NO = "no"
    MUST = "must"
    MAY = "may"


class Option(Value):
    """One option of a command."""

    name: str
    short: str = ""
    takes: Takes = Takes.NO


class Manner(Value):
    """How a command reads its options.

    permute: options may come after other words. code: the exit code of a mistake.
    points_to_help: does it say where there is help?
    """

    command: str
    permute: bool = True
    code: int = 1
    points_to_help: bool = True


class Parsed(Value):
    """The options in their order, each with its value, and the words that are none."""

    given: tuple[tuple[str, str | None], ...] = ()
    rest: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Was it given?"""
        return any(each == name for each, _ in self.given)

    def count(self, name: str) -> int:
        """How often was it given?"""
        return sum(each == name for each, _ in self.given)

    def value(self, *names: str) -> str | None:
        """The value that was given last, under any of these names."""
        return next((value for name, value in reversed(self.given) if name in names), None)

    def values(self, *names: str) -> tuple[str, ...]:
        """All values."""
        return tuple(value for name, value in self.given if name in names and value is not None)

    def words(self, *names: str) -> tuple[str, ...]:
        """All values, which may have commas between them."""
        return tuple(
            word.strip() for value in self.values(*names) for word in value.split(",") if word
        )


def table(text: str) -> tuple[Option, ...]:
    """Options from lines of words: `name`, `name=` (takes a value), `name?` (may), `n:name=`."""
    return tuple(_option(word) for word in text.split())


def parsed(options: Sequence[Option], argv: Sequence[str], manner: Manner) -> Parsed:
    """Read a command line; SlurmError says what is wrong with it as getopt does."""
    return _OptionParser(options, argv, manner).all()


def _option(word: str) -> Option:
    short, colon, name = word.rpartition(":")
    takes = {"=": Takes.MUST, "?": Takes.MAY}.get(name[-1], Takes.NO)
    return Option(name=name.rstrip("=?"), short=short if colon else "", takes=takes)


class _OptionParser:
    def __init__(self, options: Sequence[Option], argv: Sequence[str], manner: Manner) -> None:
        self._long: Mapping[str, Option] = {option.name: option for option in options}
        self._short = {option.short: option for option in options if option.short}
        self._ahead = list(reversed(argv))
        self._manner = manner

    def all(self) -> Parsed:
        given: list[tuple[str, str | None]] = []
        rest: list[str] = []
        while self._ahead:
            word = self._ahead.pop()
            if word == "--":
                break
            if word.startswith("--"):
                given.append(self._of_long(word[2:]))
            elif word.startswith("-") and len(word) > 1:
                given.extend(self._of_cluster(word[1:]))
            elif self._manner.permute:
                rest.append(word)
            else:
                self._ahead.append(word)
                break
        return Parsed(given=tuple(given), rest=(*rest, *reversed(self._ahead)))

    def _of_long(self, word: str) -> tuple[str, str | None]:
        name, equals, value = word.partition("=")
        option = self._meant(name)
        if option.takes is Takes.NO and equals:
            raise self._wrong(f"option '--{option.name}' doesn't allow an argument")
        if option.takes is Takes.MUST and not equals:
            return option.name, self._next(f"option '--{option.name}' requires an argument")
        return option.name, value if equals else None

    def _meant(self, name: str) -> Option:
        """By its name or by a beginning that only it has."""
        if name in self._long:
            return self._long[name]
        near = [option for full, option in self._long.items() if full.startswith(name)]
        if len(near) == 1:
            return near[0]
        if not near:
            raise self._wrong(f"unrecognized option '--{name}'")
        named = " ".join(f"'--{option.name}'" for option in near)
        raise self._wrong(f"option '--{name}' is ambiguous; possibilities: {named}")

    def _of_cluster(self, letters: str) -> Iterator[tuple[str, str | None]]:
        for at, letter in enumerate(letters):
            option = self._short.get(letter)
            if option is None:
                raise self._wrong(f"invalid option -- '{letter}'")
            joined = letters[at + 1 :]
            if option.takes is Takes.NO:
                yield option.name, None
                continue
            if joined:
                yield option.name, joined
            elif option.takes is Takes.MAY:
                yield option.name, None
            else:
                yield option.name, self._next(f"option requires an argument -- '{letter}'")
            return

    def _next(self, otherwise: str) -> str:
        if not self._ahead:
            raise self._wrong(otherwise)
        return self._ahead.pop()

    def _wrong(self, text: str) -> SlurmError:
        command = self._manner.command
        lines = [f"{command}: {text}"]
        if self._manner.points_to_help:
            lines.append(f'Try "{command} --help" for more information')
        return SlurmError(*lines, code=self._manner.code)
