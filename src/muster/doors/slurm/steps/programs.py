"""`--multi-prog`: which task runs which program. Pure."""

import re

from muster.doors.slurm.submit.directives import BadDirectiveError, words
from muster.doors.slurm.words.errors import SlurmError, failed

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([0-9]{1,9}))?")
_MOST_TASKS = 65_536


def programs(text: str, rest: tuple[str, ...], tasks: int) -> tuple[tuple[str, ...], ...]:
    """The command of each task, by lines such as `0-3,8 program %t %o`.

    `%t` stands for the task's number, `%o` for its place among those of its line.
    """
    found: dict[int, tuple[str, ...]] = {}
    for number, line in enumerate(_joined(text), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        which, _, command = written.replace("\t", " ").partition(" ")
        ranks = _ranks(which, tasks, _FilePosition(file=rest[0], line=number))
        argv = _argv(command, _FilePosition(file=rest[0], line=number))
        for offset, rank in enumerate(ranks):
            found[rank] = (
                *(word.replace("%t", str(rank)).replace("%o", str(offset)) for word in argv),
                *rest[1:],
            )
    missing = next((rank for rank in range(tasks) if rank not in found), None)
    if missing is not None:
        problem = f"Configuration file {rest[0]} invalid, no record for task id {missing}"
        raise failed("srun", problem)
    return tuple(found[rank] for rank in range(tasks))


class _FilePosition:
    """Where in which file something is wrong."""

    def __init__(self, *, file: str, line: int) -> None:
        self._text = f"Line {line} of configuration file {file} invalid"

    def wrong(self, *before: str) -> SlurmError:
        return SlurmError(*(f"srun: error: {text}" for text in (*before, self._text)))


def _joined(text: str) -> list[str]:
    """Lines; one that ends with a backslash goes on in the next."""
    return text.replace("\\\n", " ").split("\n")


def _ranks(which: str, tasks: int, place: _FilePosition) -> list[int]:
    if which == "*":
        return list(range(tasks))
    found: list[int] = []
    for word in which.split(","):
        match = _RANGE.fullmatch(word)
        if match is None or match[3] == "0":
            raise place.wrong(f"Invalid task id specification, {which}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high >= tasks or high > _MOST_TASKS:
            raise place.wrong(f"Invalid task id, {high} >= ntasks")
        found.extend(range(low, high + 1, int(match[3] or 1)))
    return found


def _argv(command: str, place: _FilePosition) -> list[str]:
    try:
        argv = words(command)
    except BadDirectiveError:
        raise place.wrong() from None
    if not argv:
        raise place.wrong()
    return argv
