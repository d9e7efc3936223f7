"""README and how-tos, typed as they stand: as root and as a plain user, each in a fresh home."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.house import folder
from people import STRANGER, our_packages, python_for_all

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:sh|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATIENCE_S = 300

UP = "muster up --nodes 2 --gpus 4xA100-40GB\n"
DOWN = "muster down\n"


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a clone of Muster and a home in which nothing is yet."""

    user: str | None
    clone: Path
    home: Path

    def types(self, text: str) -> str:
        env = {
            "HOME": str(self.home),
            "PATH": f"{self.clone}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        if self.user is None:
            env["MUSTER_HOME"] = str(self.home / "state")
        done = subprocess.run(  # noqa: S603  our own pages
            ["/bin/bash", "-euo", "pipefail", "-c", text],
            cwd=self.clone,
            env=env,
            user=self.user,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout


@pytest.fixture(params=["root", STRANGER])
def newcomer(request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    is_root = os.getuid() == 0
    if request.param == STRANGER and not is_root:
        pytest.skip("only root can be somebody else; whoever runs the tests is tried instead")
    user = STRANGER if request.param == STRANGER else None
    with folder() as place:
        made = Newcomer(user=user, clone=place / "clone", home=place / "home")
        _cloned(made)
        try:
            yield made
        finally:
            made.types(
                "muster cancel $(muster ps -o name) >/dev/null 2>&1 || true; muster down || true"
            )


def _cloned(newcomer: Newcomer) -> None:
    """As after `make`: what it would fetch from the network is there already."""
    clone = newcomer.clone
    python = sys.executable if newcomer.user is None else python_for_all()
    (clone / ".venv" / "bin").mkdir(parents=True)
    newcomer.home.mkdir()
    shutil.copytree(ROOT / "examples", clone / "examples")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, clone / name)
        os.utime(clone / name, (1, 1))
    command = clone / ".venv" / "bin" / "muster"
    command.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{our_packages()}"\nexec {python} -m muster "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    version = re.search(r"UV_VERSION := (\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert version is not None
    uv = clone / ".tools" / f"uv-{version[1]}" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.touch()
    os.utime(uv, (2, 2))
    for minor in range(11, 20):
        (clone / ".venv" / f"synced-with-python3.{minor}").touch()
    (clone / ".venv" / "synced-with-python3").touch()
    if newcomer.user is not None:
        for each in (clone, newcomer.home, *clone.rglob("*")):
            shutil.chown(each, newcomer.user)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def test_the_first_screen_of_the_readme_works(newcomer: Newcomer) -> None:
    (screen,) = blocks("README.md")

    said = newcomer.types(screen)

    assert "GPUs 0,1 on pretend1" in said
    assert "Needs 4 GPUs" in said
    assert "Submitted batch job 5" in said
    assert " of pretend" in said
    assert "COMPLETED" in said
    assert "Muster has stopped" in said


def test_a_backup_is_made_and_restored(newcomer: Newcomer) -> None:
    make, restore = blocks("docs/howto/backup.md")

    said = newcomer.types(UP + make + restore)

    assert "Restored." in said
    assert (newcomer.clone / "muster-monday.db").exists()


def test_history_is_kept_for_a_time(newcomer: Newcomer) -> None:
    (keep,) = blocks("docs/howto/disk.md")

    said = newcomer.types(UP + keep + "muster site\n" + DOWN)

    assert "keep: 90d" in said


def test_it_is_uninstalled(newcomer: Newcomer) -> None:
    first, _ = blocks("docs/howto/uninstall.md")

    said = newcomer.types(UP + "muster submit -- sleep 600\n" + first)

    assert "Muster has stopped" in said


def test_the_sizes_of_gpus_and_slices_can_be_asked_for(newcomer: Newcomer) -> None:
    ask, _ = blocks("docs/howto/gpus.md")[:2]

    newcomer.types(UP + ask + DOWN)
