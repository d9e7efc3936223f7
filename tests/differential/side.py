"""One of the two systems that are compared: how its commands are typed, and what they answered."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from differential.masks import masked
from differential.sessions import Case

PATIENCE_S = 15
TOOLS = Path(__file__).parent / "tools"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command line came to."""

    out: str
    err: str
    code: int

    @property
    def text(self) -> str:
        """As sessions have it: stdout, then stderr with a mark, then the exit code."""
        lines = [*_lines(self.out), *(f"2> {line}" for line in _lines(self.err))]
        return "\n".join([*lines, f"[exit {self.code}]"])


@dataclass(frozen=True, kw_only=True)
class Side:
    """A system, a folder to work in, and the variables that command lines may name."""

    name: str
    root: Path
    environ: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def work(self) -> Path:
        return self.root / "work"

    def shell(self, line: str) -> Answer:
        """As if typed."""
        path = f"{TOOLS}:{self._tools}:{self.environ['PATH']}"
        done = subprocess.run(  # noqa: S603 -- what the sessions say
            ["/usr/bin/timeout", str(PATIENCE_S), "/bin/bash", "-c", line],
            env={**self.environ, "PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8", **self.variables},
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        out, err = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
        return Answer(out=out, err=err, code=done.returncode)

    @property
    def _tools(self) -> Path:
        return self.root / "tools"

    def has_tool(self, name: str, line: str) -> None:
        """A command that means something else on the other side."""
        self._tools.mkdir(exist_ok=True)
        file = self._tools / name
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    def text(self, line: str) -> str:
        """What a command that must go well prints."""
        answer = self.shell(line)
        assert answer.code == 0, f"{self.name}: {line}: {answer.text}"
        return answer.out.strip()

    def answered(self, case: Case) -> str:
        """What a case came to, without what may differ."""
        found = self.shell(case.line)
        out, err = (masked(text, case.masks, self.root) for text in (found.out, found.err))
        return Answer(out=out, err=err, code=found.code).text


def _lines(text: str) -> list[str]:
    if not text:
        return []
    ends = [] if text.endswith("\n") else ["[no end of line]"]
    return [*text.removesuffix("\n").split("\n"), *ends]
