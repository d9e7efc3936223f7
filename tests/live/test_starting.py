"""`muster up` and `muster down` where something is in the way: said in words, and undone."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.house import LONGEST_S, folder
from people import STRANGER, only_root, our_packages, python_for_all

pytestmark = pytest.mark.slow


RULES = """\
queues:
  ours: {}
classes:
  normal: {}
default_queue: ours
"""


@dataclass(frozen=True)
class Ran:
    code: int
    said: str


@dataclass(frozen=True)
class Shell:
    """Somebody at a shell of this machine."""

    home: Path

    def muster(self, *argv: str, user: str | None = None) -> Ran:
        python = sys.executable if user is None else python_for_all()
        env = {"MUSTER_HOME": str(self.home), "PATH": os.environ["PATH"], "NO_COLOR": "1"}
        done = subprocess.run(  # noqa: S603  our own program
            [python, "-m", "muster", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
            cwd="/",
            user=user,
            env=env if user is None else env | {"PYTHONPATH": our_packages()},
        )
        assert "Traceback" not in done.stdout, done.stdout
        return Ran(code=done.returncode, said=done.stdout)


@pytest.fixture
def shell() -> Iterator[Shell]:
    with folder() as place:
        found = Shell(place / "home")
        yield found
        found.muster("down")


def test_options_that_do_not_work_are_forgotten(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = shell.muster("up", "--nodes", "1", "--listen", f"127.0.0.1:{port}")

        again = shell.muster("up", "--nodes", "1")

    assert failed.code == 1
    assert again.code == 0, again.said


def test_rules_that_cannot_be_read_are_told_before_anything_starts(shell: Shell) -> None:
    missing = shell.muster("up", "--nodes", "1", "--site", "/nowhere.yaml")

    assert missing.code == 1
    assert "--site /nowhere.yaml cannot be read" in missing.said


def test_rules_for_a_muster_that_has_some_are_not_dropped_silently(
    shell: Shell, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    assert shell.muster("up", "--nodes", "1").code == 0

    running = shell.muster("up", "--site", str(rules))
    shell.muster("down")
    stopped = shell.muster("up", "--site", str(rules))

    for ran in (running, stopped):
        assert ran.code == 1
        assert f"--site {rules} was not applied" in ran.said
        assert f"muster apply --dry-run -f {rules}" in ran.said


def test_the_rules_of_a_new_muster_are_those_of_its_file(shell: Shell, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")

    ran = shell.muster("up", "--nodes", "1", "--site", str(rules))
    again = shell.muster("up", "--site", str(rules))

    assert (ran.code, again.code) == (0, 0), ran.said + again.said
    assert "ours" in shell.muster("queues").said


def test_options_for_a_running_muster_are_not_dropped_silently(shell: Shell) -> None:
    assert shell.muster("up", "--nodes", "1").code == 0

    other = shell.muster("up", "--listen", "127.0.0.1:0")
    same = shell.muster("up", "--nodes", "1")

    assert other.code == 1
    assert "those given now were not taken" in other.said
    assert same.code == 0
    assert "runs already" in same.said


def test_up_says_which_folder_it_uses_and_why(shell: Shell) -> None:
    ran = shell.muster("up", "--nodes", "1")

    assert f"State folder: {shell.home.resolve()} (MUSTER_HOME says so)" in ran.said


@only_root
@pytest.mark.parametrize(
    "argv",
    [
        ("up", "--nodes", "1"),
        ("down",),
        ("serve", "--store", "postgresql://db/muster"),
        ("up", "--foreground"),
    ],
)
def test_in_the_folder_of_another_user_it_says_whose_it_is(
    shell: Shell, argv: tuple[str, ...]
) -> None:
    assert shell.muster("up", "--nodes", "1").code == 0

    ran = shell.muster(*argv, user=STRANGER)

    assert ran.code == 1
    assert f"you may not use the state folder {shell.home}" in ran.said
    assert "belongs to root" in ran.said
    assert shell.muster("status").code == 0


@only_root
def test_the_doctor_looks_at_the_folder_of_another_user(shell: Shell) -> None:
    assert shell.muster("up", "--nodes", "1").code == 0
    (shell.home / "settings.json").chmod(0o600)

    ran = shell.muster("doctor", user=STRANGER)

    assert ran.code == 0, ran.said
    assert f"the settings in {shell.home} belong to another user, as they should" in ran.said


def test_a_folder_that_is_a_file_is_no_state_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    ran = Shell(tmp_path / "file").muster("up", "--nodes", "1")

    assert ran.code == 1
    assert "cannot be a state folder" in ran.said
