"""The log of a daemon: a file that is rotated, or stderr for who runs it in the foreground."""

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_NAME = "muster.log"
LARGEST = 16 * 1_048_576
KEPT = 5
"""So many old files are kept beside the one that is written: 96 MiB in all."""

FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"


def log_to(home: Path | None) -> None:
    """To the log of this state folder; without one, to stderr."""
    handler = logging.StreamHandler(sys.stderr) if home is None else _log_file(home)
    logging.basicConfig(level=logging.INFO, format=FORM, handlers=[handler])


def _log_file(home: Path) -> logging.Handler:
    path = home / "logs" / LOG_NAME
    return RotatedLog(path, maxBytes=LARGEST, backupCount=KEPT, encoding="utf-8")


class RotatedLog(RotatingFileHandler):
    """What is written past the log, to stdout and stderr, stays in the newest file as well."""

    def doRollover(self) -> None:  # noqa: N802 - its name in the standard library
        super().doRollover()
        if self.stream is None:  # pyright: ignore[reportUnnecessaryComparison] - it may be
            self.stream = self._open()
        for number in (1, 2):
            os.dup2(self.stream.fileno(), number)
