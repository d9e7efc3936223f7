"""Somebody else on this machine: programs of ours, run as a plain user."""

import os
import site
import sys
import sysconfig
from pathlib import Path

import pytest

STRANGER = "nobody"

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")


def python_for_all() -> str:
    """A Python like ours that every user can run; ours may lie in a folder of root's."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for each in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if Path(each).exists() and _is_open(Path(each).resolve()):
            return each
    pytest.skip(f"no {version} here can be run by every user")


def our_packages() -> str:
    """What PYTHONPATH says for that Python to find Muster and what it needs."""
    source = Path(__file__).parents[1] / "src"
    return os.pathsep.join((str(source), sysconfig.get_path("purelib"), *site.getsitepackages()))


def _is_open(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))
