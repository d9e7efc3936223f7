"""Real programs that send mail: what they are given, and what becomes of those that fail."""

import stat
import time
from pathlib import Path

import pytest

from muster.controller.mail.program import MailProgram, NotSentError
from muster.controller.mail.sender import Letter

LETTER = Letter(
    to="ann@example.org,bob",
    subject="Slurm Job_id=12 Name=größe Began",
    env={"SLURM_JOB_ID": "12"},
)


def program(folder: Path, lines: str, name: str = "mail") -> str:
    """A small program; it finds its own folder in `$HERE`."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nHERE={folder}\n{lines}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_program_gets_subject_address_and_variables_and_an_empty_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_TOKEN", "secret")
    made = program(
        tmp_path,
        'printf "%s\\n" "$@" > $HERE/words; env > $HERE/env; cat > $HERE/message',
    )

    MailProgram(made).send(LETTER)

    words = (tmp_path / "words").read_text(encoding="utf-8").splitlines()
    assert words == ["-s", LETTER.subject, "ann@example.org,bob"]
    env = (tmp_path / "env").read_text(encoding="utf-8")
    assert "SLURM_JOB_ID=12\n" in env
    assert "PATH=" in env
    assert "secret" not in env
    assert (tmp_path / "message").read_bytes() == b""


def test_a_sendmail_gets_the_whole_message(tmp_path: Path) -> None:
    lines = 'printf "%s\\n" "$@" > $HERE/words; cat > $HERE/message'
    made = program(tmp_path, lines, name="sendmail")

    MailProgram(made).send(LETTER)

    words = (tmp_path / "words").read_text(encoding="utf-8").splitlines()
    assert words == ["-i", "--", "ann@example.org", "bob"]
    message = (tmp_path / "message").read_text(encoding="utf-8")
    assert "To: ann@example.org,bob\n" in message
    assert "Subject: Slurm Job_id=12 =?utf-8?" in message


def test_what_a_failing_program_said_is_reported(tmp_path: Path) -> None:
    made = program(tmp_path, "echo no such mailbox >&2; exit 67")

    with pytest.raises(NotSentError, match="ended with 67: no such mailbox"):
        MailProgram(made).send(LETTER)


def test_a_program_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    made = program(tmp_path, "sleep 600 & echo $! > $HERE/child; wait")

    with pytest.raises(NotSentError, match="did not end within 1 s and was killed"):
        MailProgram(made, patience_s=1).send(LETTER)

    child = Path("/proc") / (tmp_path / "child").read_text(encoding="utf-8").strip()
    deadline = time.monotonic() + 10
    while child.exists() and "(sleep) Z" not in (child / "stat").read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        MailProgram(str(tmp_path / "mail")).send(LETTER)


def test_nothing_is_run_for_what_is_no_address(tmp_path: Path) -> None:
    made = program(tmp_path, "touch $HERE/ran")

    with pytest.raises(NotSentError, match="is no address"):
        MailProgram(made).send(Letter(to="-f/etc/shadow", subject="x"))

    assert not (tmp_path / "ran").exists()
