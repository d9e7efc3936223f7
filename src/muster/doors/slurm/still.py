"""Lines of jobs that wait, kept from one listing to the next: nothing in them moves by itself.

A long queue is listed again and again, and of its jobs hardly any has changed since.
"""

from collections.abc import Callable, Iterable, Iterator

from muster.doors.slurm.fleet import Lines, Memory
from muster.doors.slurm.formats import Form
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.states import State

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
        if row.state is not State.PENDING or row.indices or row.component is not None:
            yield write(row)
            continue
        job, wait = row.job, row.view.wait
        known = kept.get(job.id)
        # The very values: a job of another server with the same number is another job.
        if known is not None and known[0] is job and known[1] is wait:
            yield known[2]
            continue
        line = write(row)
        if row.attempt is None:
            kept[job.id] = (job, wait, line)
        yield line
