"""Starts real processes that use a store, and kills them without warning."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("child.py")


class Child:
    """A process that says what it did, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> list[str]:
        """SIGKILL; what it had still said."""
        self._process.kill()
        said, _ = self._process.communicate()
        return said.split("\n")[:-1]


@contextmanager
def child(role: str, url: str) -> Generator[Child]:
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, str(CHILD), role, url],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    started = Child(process)
    try:
        yield started
    finally:
        if process.returncode is None:
            started.kill()
