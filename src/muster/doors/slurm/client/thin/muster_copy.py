"""sbcast's own part: a copy on this machine, with the caller's rights."""

import os
import shutil
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

UNREADABLE = 255


def run(then: "dict[str, Any]") -> int:
    """Copy the file; the exit code is the system's number of what went wrong."""
    try:
        source = open(then["source"], "rb")  # noqa: SIM115 -- closed below, and read between
    except OSError as error:
        sys.stderr.write(f"sbcast: error: Can't open `{then['source']}`: {error.strerror}\n")
        return UNREADABLE
    with source:
        try:
            _copy(source, then)
        except OSError as error:
            text = f"REQUEST_FILE_BCAST({then['node']}): {error.strerror}"
            sys.stderr.write(f"sbcast: error: {text}\n")
            return error.errno or 1
    return 0


def _copy(source: "BinaryIO", then: "dict[str, Any]") -> None:
    target: str = then["target"]
    if os.path.isdir(target):
        target = os.path.join(target, os.path.basename(then["source"]))
    found = os.fstat(source.fileno())
    # What exists is replaced and not written into: a process may be running it.
    unfinished = f"{target}.sbcast~"
    opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(opened, "wb") as file:
            shutil.copyfileobj(source, file)
            os.fchmod(file.fileno(), found.st_mode & 0o7777)
        if then["preserve"]:
            os.utime(unfinished, ns=(found.st_atime_ns, found.st_mtime_ns))
        if then["force"]:
            os.replace(unfinished, target)
        else:
            os.link(unfinished, target)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
