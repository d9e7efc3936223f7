"""Sessions: command lines with what a real Slurm said to them, as one text file each.

    # mask: elapsed
    # differs: Muster has no backup controllers
    $ squeue -h -o %i
    12
    2> what came on stderr
    [exit 0]

`mask` names rules of `masks.NAMED`; `differs` says why Muster answers otherwise, on purpose; `open`
says what is still missing.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden" / "slurm" / "real"

_NOTE = re.compile(r"# (mask|differs|open): (.*)")
_END = re.compile(r"\[exit \d+\]")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One command line, how its answer is read, and what Slurm said."""

    session: str
    place: int
    line: str
    remarks: tuple[str, ...] = ()
    answer: str = ""

    @property
    def id(self) -> str:
        return f"{self.session}-{self.place:03} {self.line}"

    @property
    def masks(self) -> tuple[str, ...]:
        return tuple(word for text in self._notes("mask") for word in text.split())

    @property
    def differs(self) -> str | None:
        """Why Muster's answer is another one; None if it must be the same."""
        return next(iter(self._notes("differs")), None)

    @property
    def open(self) -> str | None:
        """What is still to be done before Muster's answer is the same."""
        return next(iter(self._notes("open")), None)

    def _notes(self, kind: str) -> list[str]:
        found = [_NOTE.fullmatch(remark) for remark in self.remarks]
        return [note[2] for note in found if note is not None and note[1] == kind]


def names() -> list[str]:
    """The sessions in the order in which they are played: those that change nothing come first."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read(name: str) -> list[Case]:
    """The cases of a session; one without an answer yet has an empty one."""
    found: list[Case] = []
    remarks: list[str] = []
    answer: list[str] = []
    is_answer = False
    for text in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n"):
        if is_answer and not text.startswith("$ ") and not _NOTE.fullmatch(text):
            answer.append(text)
            if _END.fullmatch(text):
                is_answer = False
                found[-1] = replace(found[-1], answer="\n".join(answer))
        elif text.startswith("$ "):
            case = Case(session=name, place=len(found) + 1, line=text[2:], remarks=tuple(remarks))
            found.append(case)
            remarks, answer, is_answer = [], [], True
        elif text.startswith("#"):
            remarks.append(text)
    return found


def write(name: str, cases: list[Case]) -> None:
    """Keep what Slurm said."""
    blocks = ("\n".join([*case.remarks, f"$ {case.line}", case.answer, ""]) for case in cases)
    (FOLDER / f"{name}.txt").write_text("\n".join(blocks), encoding="utf-8")
