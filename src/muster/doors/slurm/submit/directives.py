"""`#SBATCH` lines: the options that a script carries. Pure."""

from collections.abc import Iterator, Sequence

from muster.doors.slurm.words.errors import SlurmError

MARKS = ("#SBATCH",)
BETWEEN = frozenset({"hetjob", "packjob"})
"""A line of this word alone begins the next component of a heterogeneous job."""


class BadDirectiveError(SlurmError):
    """A quote in a directive has no end."""

    def __init__(self, quote: str, text: str, place: str) -> None:
        super().__init__(f"sbatch: fatal: {place}: Unmatched `{quote}` in [{text}]")


def components(script: str, name: str = "sbatch") -> tuple[tuple[str, ...], ...]:
    """The options of each component of the job; one component unless `hetjob` separates more."""
    found: list[list[str]] = [[]]
    for number, line in _directives(script):
        options = words(line, f"{name}: line {number}")
        if len(options) == 1 and options[0] in BETWEEN:
            found.append([])
        else:
            found[-1].extend(options)
    return tuple(map(tuple, found))


def is_batch(script: str) -> bool:
    """Does it have lines for sbatch?"""
    return any(True for _ in _directives(script))


def words(line: str, place: str = "sbatch") -> list[str]:
    """Split as a shell would: quotes keep spaces, a backslash the next letter, `#` ends it."""
    found: list[str] = []
    letters = iter(line)
    word: list[str] | None = None
    for letter in letters:
        if letter.isspace():
            if word is not None:
                found.append("".join(word))
            word = None
        elif letter == "#" and word is None:
            return found
        else:
            word = [] if word is None else word
            word.append(_quoted(letter, letters, place, line))
    return found if word is None else [*found, "".join(word)]


def joined(argv: Sequence[str]) -> str:
    """The command line as one text, for people: in one line, whatever was typed."""
    text = " ".join(argv)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


def _quoted(letter: str, letters: Iterator[str], place: str, line: str) -> str:
    """What one letter of a word stands for, or everything up to the end of its quotes."""
    if letter == "\\":
        return next(letters, "")
    if letter not in "\"'":
        return letter
    inside: list[str] = []
    for each in letters:
        if each == letter:
            return "".join(inside)
        inside.append(next(letters, "") if each == "\\" and letter == '"' else each)
    raise BadDirectiveError(letter, line.strip(), place)


def _directives(script: str) -> Iterator[tuple[int, str]]:
    """What follows the mark, up to the first line that the shell would carry out."""
    for number, line in enumerate(script.splitlines(), 1):
        for mark in MARKS:
            if line.startswith(mark) and line[len(mark) : len(mark) + 1] in {"", " ", "\t"}:
                yield number, line[len(mark) :]
        if line.strip() and not line.startswith("#"):
            return
