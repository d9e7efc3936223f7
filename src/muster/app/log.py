"""The log of a daemon: a file that is rotated, or stderr for who runs it in the foreground.

With MUSTER_LOG=json each line is one JSON object, for programs that gather logs.
"""

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

from muster.telemetry.sinks.lines import Line, LineKind, cleaned

LOG_NAME = "muster.log"
LARGEST = 16 * 1_048_576
KEPT = 5
"""So many old files are kept beside the one that is written: 96 MiB in all."""

FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"


AS_JSON = ("MUSTER_LOG", "json")
"""The variable of the environment, and its value, with which lines are JSON."""


def log_to(home: Path | None) -> None:
    """To the log of this state folder; without one, to stderr."""
    handler = logging.StreamHandler(sys.stderr) if home is None else _log_file(home)
    variable, value = AS_JSON
    is_json = os.environ.get(variable) == value
    handler.setFormatter(JsonLine() if is_json else TextLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class JsonLine(logging.Formatter):
    """One object on one line: `ts level logger msg`, the line's own fields, and `error`."""

    default_msec_format = "%s.%03dZ"
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps({**own_fields(record), **line}, ensure_ascii=False)


class TextLine(logging.Formatter):
    """`FORM`, and the line's own fields behind the message: `job_idle job=17 minutes=30`."""

    def __init__(self) -> None:
        super().__init__(FORM)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name there
        said = super().formatMessage(record)
        return " ".join([said, *(f"{name}={value}" for name, value in own_fields(record).items())])


def own_fields(record: logging.LogRecord) -> dict[str, str | int | float | bool | None]:
    """What was said with `extra`: plain values as they are, and all others as text."""
    return {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in vars(record).items()
        if name not in _OF_EVERY_LINE
    }


_OF_EVERY_LINE = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


class LogToSinks(logging.Handler):
    """Hands every line over to those to whom the rules send the log; nothing waits for them."""

    def __init__(self, write: Callable[[Line], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        self._write(
            Line(
                at_ns=int(record.created * 1_000_000_000),
                text=cleaned(text),
                kind=LineKind.CONTROLLER,
                level=record.levelname.lower(),
                fields=(
                    ("logger", record.name),
                    ("node", platform.node()),
                    *((name, str(value)) for name, value in own_fields(record).items()),
                ),
            )
        )

    def detach(self) -> None:
        """Hand over no more."""
        logging.getLogger().removeHandler(self)


def log_also_to(write: Callable[[Line], None]) -> LogToSinks:
    """Beside where lines go already."""
    handler = LogToSinks(write)
    logging.getLogger().addHandler(handler)
    return handler


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
