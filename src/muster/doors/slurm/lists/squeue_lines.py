"""The lines of squeue: those of waiting jobs are kept from one listing to the next."""

from collections.abc import Callable, Iterable, Iterator

from muster.doors.line_cache import LineCache
from muster.doors.slurm.call import Door
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.words.formats import Form

LETTERS = frozenset("aADFijKMPqrRtTu")
"""What of a waiting job depends only on itself, on why it waits and on the default partition."""


def lines_of(
    rows: list[JobRow], form: Form, write: Callable[[JobRow], str], door: Door
) -> Iterable[str]:
    """The line of each row in letters; `write` makes those that are not known."""
    if not rows or any(column.field and column.field not in LETTERS for column in form.columns):
        return map(write, rows)
    cache = door.cache.lines.of((form, rows[0].listing.default_pool))
    cache.forget_ended(door.queries.jobs.is_live)
    return _cached(rows, cache, write)


def _cached(
    rows: list[JobRow], cache: LineCache[str], write: Callable[[JobRow], str]
) -> Iterator[str]:
    for row in rows:
        if row.indices or row.component is not None:
            # It is not all of one job.
            yield write(row)
            continue
        yield cache.get(row.view) or cache.put(row.view, write(row))
