"""Arrays as people write them: `0-9`, `1,3,5-9:2`, with `%4` for at most four at once."""

import re

from muster.doors.request.bad import BadRequestError

MOST_PARTS = 100_000
"""So many jobs may one array have: ten times what Slurm takes by default."""

MOST_INDEX = 10_000_000

_ACCEPTED = "write indices such as `0-9` or `1,3,5-9:2`, and `%4` for at most four at once"
_RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8})(?::([0-9]{1,8}))?)?")


def array_of(text: str | None) -> tuple[tuple[int, ...], int | None]:
    """The indices in order, each once, and how many may run at the same time."""
    if text is None:
        return (), None
    written, percent, most = text.replace(" ", "").partition("%")
    ranges = [_range(each, text) for each in written.split(",")]
    if sum(map(len, ranges)) > MOST_PARTS:
        raise BadRequestError("array", f"an array may have {MOST_PARTS} jobs, not more")
    indices = tuple(sorted({index for each in ranges for index in each}))
    return indices, _at_once(most, text) if percent else None


def _range(written: str, text: str) -> range:
    found = _RANGE.fullmatch(written)
    if found is None:
        raise BadRequestError("array", f"`{text}` cannot be read; {_ACCEPTED}")
    first, last, step = (int(part) if part else None for part in found.groups())
    indices = range(first or 0, (last if last is not None else first or 0) + 1, step or 1)
    if not indices or step == 0 or indices[-1] > MOST_INDEX:
        raise BadRequestError("array", f"`{written}` has no index up to {MOST_INDEX}; {_ACCEPTED}")
    return indices


def _at_once(most: str, text: str) -> int:
    if not most.isascii() or not most.isdecimal() or not 0 < len(most) < 9 or int(most) == 0:
        raise BadRequestError("array", f"`{text}` cannot be read; {_ACCEPTED}")
    return int(most)
