"""Removing what users left, whatever that is."""

import contextlib
import subprocess
from pathlib import Path

_REMOVE_S = 20


def remove(folder: Path | str) -> None:
    """Remove a folder with all that is in it, if that can be done soon. No link is followed.

    A user may have left a tree of any depth, which rm can remove and Python cannot.
    """
    with contextlib.suppress(subprocess.TimeoutExpired, FileNotFoundError):
        subprocess.run(  # noqa: S603 -- a folder that we made
            ["/bin/rm", "-rf", "--one-file-system", "--", str(folder)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_REMOVE_S,
        )
