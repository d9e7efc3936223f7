"""Muster as a service of systemd: what is written, and that it is taken away again."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doors.cli.calling import Caller


def test_the_unit_starts_muster_and_leaves_its_jobs_alone(muster: Caller) -> None:
    unit = muster("install-service", "--print", "--home", "/srv/muster").out

    assert "up --foreground --home /srv/muster\n" in unit
    assert str(Path(sys.executable).parent) in unit
    assert "\nKillMode=process\n" in unit
    assert "\nRestart=on-failure\n" in unit


def test_systemd_finds_nothing_wrong_with_the_unit(muster: Caller, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    muster("install-service", "--folder", str(tmp_path))

    done = subprocess.run(  # noqa: S603  systemd's own program
        [analyze, "verify", "--man=no", str(tmp_path / "muster.service")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert [line for line in done.stderr.splitlines() if "muster.service" in line] == []


def test_what_is_installed_is_removed_again(muster: Caller, tmp_path: Path) -> None:
    written = muster("install-service", "--folder", str(tmp_path))
    removed = muster("uninstall-service", "--folder", str(tmp_path))
    again = muster("uninstall-service", "--folder", str(tmp_path))

    assert (written.code, removed.code, again.code) == (0, 0, 0)
    assert written.out == f"{tmp_path}/muster.service is written\n"
    assert list(tmp_path.iterdir()) == []
    assert "There is no" in again.err


def test_login_shells_find_the_commands_of_slurm(muster: Caller, tmp_path: Path) -> None:
    bin, profiles = tmp_path / "bin", tmp_path / "profile.d"

    done = muster("slurm", "install", str(bin), "--force", "--profile", str(profiles))

    assert done.code == 0, done.err
    found = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", f". {profiles}/muster-slurm.sh; command -v squeue"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert found.stdout == f"{bin}/squeue\n"
