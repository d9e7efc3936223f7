"""Whole sessions, word for word, as Muster answers them: what changes here, changes for users.

They were recorded from Muster and read beside a real Slurm's; they are no proof by themselves that
Slurm says the same. Each file is played on a Muster of its own, so that job ids are what they say.
"""

import os
import re
from pathlib import Path

import pytest

from doors.slurm.house import House, house, masked

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "golden" / "slurm").glob("*.txt"))
COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


@pytest.mark.skipif(os.getuid() != 0, reason="the sessions are root's, whose holds are others")
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_session_goes_as_it_was_recorded(path: Path) -> None:
    expected = path.read_text(encoding="utf-8")

    with house() as slurm:
        played = "".join(play(slurm, line) for line in COMMAND.findall(expected))

    assert played == expected


def play(slurm: House, line: str) -> str:
    """The command, what it printed on both streams, and its exit code."""
    ran = slurm.shell(f"exec 2>&1; {line}")
    return f"$ {line}\n{masked(ran.out, slurm.root)}[exit {ran.code}]\n"
