import shutil
import subprocess
from pathlib import Path

import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("muster sub", ["submit"]),
        ("muster re", ["report", "release", "resume", "requeue", "restore"]),
        ("muster show ", ["17"]),
        ("muster cancel 1", ["17"]),
        ("muster drain p", ["pretend1", "pretend2"]),
        ("muster resume ", ["17", "pretend1", "pretend2"]),
        ("muster submit --queue acme", ["acme", "acme/nlp"]),
        ("muster submit --class u", ["urgent"]),
        ("muster quota set d", ["default"]),
        ("muster ps --state c", ["completed", "cancelled"]),
        ("muster ps --no", ["--node", "--no-headers"]),
        ("muster completion z", ["zsh"]),
    ],
)
def test_the_shell_completes(
    muster: Caller, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    muster.environ = {"_MUSTER_COMPLETE": "bash_complete"}

    found = [each.partition(",")[2] for each in muster().out.split()]

    assert found == expected


def test_completion_is_silent_when_nobody_answers(
    muster: Caller, server: CannedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers.clear()
    monkeypatch.setenv("COMP_WORDS", "muster show ")
    monkeypatch.setenv("COMP_CWORD", "2")
    muster.environ = {"_MUSTER_COMPLETE": "bash_complete"}

    outcome = muster()

    assert (outcome.code, outcome.out.strip(), outcome.err) == (0, "", "")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_the_shell_accepts(
    muster: Caller, tmp_path: Path, name: str
) -> None:
    script = muster("completion", name).out
    path = tmp_path / "script"
    path.write_text(script, encoding="utf-8")

    assert "_MUSTER_COMPLETE" in script
    program = shutil.which(name)
    if program is not None:
        subprocess.run([program, "-n", str(path)], check=True)  # noqa: S603  our own script
