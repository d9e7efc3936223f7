"""Which batch system a script was written for, and what its lines mean. Pure."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from muster.doors.foreign import lsf, pbs
from muster.doors.foreign.meaning import ForeignError, ForeignOption, Meaning, read_line


@dataclass(frozen=True)
class System:
    """A batch system: how its lines begin, its options, and what it does in the end."""

    mark: str
    options: Mapping[str, ForeignOption]
    finish: Callable[[Meaning, str, str], None]


SYSTEMS = (
    System(pbs.MARK, pbs.OPTIONS, pbs.finish),
    System(lsf.MARK, lsf.OPTIONS, lsf.finish),
)


def meaning_of(script: str, name: str, workdir: str) -> Meaning | None:
    """What the script asks for in another system's words; None if it speaks of none.

    ForeignError: a line cannot be read; the text begins with its number.
    """
    found = [(system, line) for system in SYSTEMS for line in _lines(script, system.mark)]
    if not found:
        return None
    marks = {system.mark: system for system, _ in found}
    if len(marks) > 1:
        raise ForeignError(f"{' and '.join(marks)} lines in one script: keep those of one system")
    (system,) = marks.values()
    meaning = Meaning()
    for _, (number, text) in found:
        try:
            read_line(shlex.split(text, comments=True), system.options, meaning)
        except (ForeignError, ValueError) as wrong:
            raise ForeignError(f"{number}: {system.mark}: {wrong}") from wrong
    system.finish(meaning, name, workdir)
    return meaning


def _lines(script: str, mark: str) -> Iterator[tuple[int, str]]:
    """What follows the mark, before the first line that the shell would carry out."""
    for number, line in enumerate(script.splitlines(), 1):
        word = line.strip()
        if line.startswith(mark) and line[len(mark) : len(mark) + 1] in {"", " ", "\t"}:
            yield number, line[len(mark) :]
        elif word and not word.startswith("#"):
            return
