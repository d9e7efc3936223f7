"""What the jobs themselves wrote: read from their files, never from Muster."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

Task = tuple[int, int]
"""Attempt and rank."""


@dataclass(kw_only=True)
class Written:
    """What one job wrote."""

    starts: Counter[Task] = field(default_factory=Counter[Task])
    ends: dict[Task, int] = field(default_factory=dict[Task, int])
    pids: set[int] = field(default_factory=set[int])
    overlaps: list[str] = field(default_factory=list[str])

    @property
    def attempts(self) -> set[int]:
        return {attempt for attempt, _ in self.starts}

    def ended_with(self, attempt: int, code: int) -> bool:
        """Did a task of this attempt come to its end, with this exit code?"""
        return any(
            written == code for (number, _), written in self.ends.items() if number == attempt
        )


def written_by_all(folder: Path) -> dict[int, Written]:
    return {int(path.name): _written(path.read_text()) for path in (folder / "written").iterdir()}


def _written(text: str) -> Written:
    written = Written()
    for line in text.splitlines():
        word, attempt, rank, *rest = line.split()
        task = (int(attempt), int(rank))
        match word:
            case "start":
                written.starts[task] += 1
                written.pids.add(int(rest[0]))
            case "child":
                written.pids.add(int(rest[0]))
            case "end":
                written.ends[task] = int(rest[0])
            case _:
                written.overlaps.append(line)
    return written
