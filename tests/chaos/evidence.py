"""What the jobs themselves told: read from the files that they wrote, never from Muster."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

Task = tuple[int, int]
"""Attempt and rank."""


@dataclass(kw_only=True)
class Told:
    """What one job told."""

    starts: Counter[Task] = field(default_factory=Counter[Task])
    ends: dict[Task, int] = field(default_factory=dict[Task, int])
    pids: set[int] = field(default_factory=set[int])
    overlaps: list[str] = field(default_factory=list[str])

    @property
    def attempts(self) -> set[int]:
        return {attempt for attempt, _ in self.starts}

    def ended_with(self, attempt: int, code: int) -> bool:
        """Did a task of this attempt come to its end, with this exit code?"""
        return any(told == code for (number, _), told in self.ends.items() if number == attempt)


def told_by_all(folder: Path) -> dict[int, Told]:
    return {int(path.name): _told(path.read_text()) for path in (folder / "told").iterdir()}


def _told(text: str) -> Told:
    told = Told()
    for line in text.splitlines():
        word, attempt, rank, *rest = line.split()
        task = (int(attempt), int(rank))
        match word:
            case "start":
                told.starts[task] += 1
                told.pids.add(int(rest[0]))
            case "child":
                told.pids.add(int(rest[0]))
            case "end":
                told.ends[task] = int(rest[0])
            case _:
                told.overlaps.append(line)
    return told
