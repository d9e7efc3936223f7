"""Lines of waiting jobs, kept from one listing to the next: a waiting job seldom changes.

A long queue is listed again and again, and hardly any of its jobs has changed since.
"""

import gc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager

from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.submit.fleet import Lines, Memory
from muster.doors.slurm.words.formats import Form
from muster.doors.slurm.words.states import State

LETTERS = frozenset("aADFijKMPqrRtTu")
"""What of a waiting job hangs on itself, on why it waits and on the usual partition alone."""


def lines_of(
    rows: list[JobRow], form: Form, write: Callable[[JobRow], str], memory: Memory
) -> Iterable[str]:
    """The line of each row in letters; `write` makes those that are not known."""
    is_still = all(not column.field or column.field in LETTERS for column in form.columns)
    if not rows or not is_still:
        return map(write, rows)
    return _known(rows, memory.lines((form, rows[0].scene.default_pool), len(rows)), write)


def _known(rows: list[JobRow], kept: Lines, write: Callable[[JobRow], str]) -> Iterator[str]:
    for row in rows:
        if not _is_still(row):
            yield write(row)
            continue
        job, wait = row.job, row.view.wait
        why = None if wait is None else wait.why
        known = kept.get(job.id)
        # The very job: another server's with the same number is another one.
        if known is not None and known[0] is job and known[1] == why:
            yield known[2]
            continue
        line = write(row)
        kept[job.id] = (job, why, line)
        yield line


def _is_still(row: JobRow) -> bool:
    """Does it wait, all of one job, and with nothing that it still holds?"""
    is_whole = not row.indices and row.component is None
    return row.state is State.PENDING and is_whole and row.view.allocation is None


@contextmanager
def uncollected() -> Generator[None]:
    """No garbage is looked for until this is over, or somebody else's is."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
