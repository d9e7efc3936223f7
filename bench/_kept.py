"""Parts of a long benchmark that are finished, so that it can be ended and go on later."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

HELP = "keep finished parts here and do not measure them again; begin with none after a change"


def kept(folder: Path | None, key: Sequence[str], kind: type[T], make: Callable[[], T]) -> T:
    """What was found when this part was last measured, or is found now.

    No part knows by which code it was measured.
    """
    if folder is None:
        return make()
    path = folder / f"{'-'.join(key)}.json"
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=kind)
    found = make()
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever is ended while it writes leaves nothing that looks finished.
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(msgspec.json.encode(found))
    unfinished.replace(path)
    return found
