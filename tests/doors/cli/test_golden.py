"""Whole outputs: each file in tests/golden/cli has a command, and what it prints."""

import shlex
from pathlib import Path

import pytest

from doors.cli.calling import Caller
from muster.doors.cli.screen.screen import Screen

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "cli").glob("*.txt"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_command_prints_what_the_golden_file_says(path: Path, muster: Caller) -> None:
    command, _, expected = path.read_text(encoding="utf-8").partition("--- expected\n")
    # `@60` on the first line is a terminal that is so wide.
    first, *argv = shlex.split(command)
    if first.startswith("@"):
        muster.screen = Screen(width=int(first[1:]), colour=True)
        argv = argv[1:]

    outcome = muster(*argv)

    assert outcome.out.replace("\x1b", "\\e") == expected
