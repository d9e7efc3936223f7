"""How squeue sorts: by the letters that Slurm can sort by, and by no others."""

from collections.abc import Callable

from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.jobs import JobRow, by_number
from muster.doors.slurm.lists.squeue_fields import LETTERS
from muster.doors.slurm.words.errors import failed
from muster.doors.slurm.words.formats import keys_of

USUAL = "P,t,-p"
BY_START = "S"

_LAST = 2**62
_BY_TEXT = "BfgGhHIjJnOPTuUvz"


def ordered(rows: list[JobRow], order: str) -> list[JobRow]:
    """By each key in turn, the least important first, because sorting keeps what was in order."""
    for letter, downwards in keys_of(order):
        key = _KEYS.get(letter)
        if key is None and letter in _BY_TEXT:
            key = LETTERS[letter].get
        if key is None:
            raise failed("squeue", f"Invalid sort specification: {letter}")
        rows.sort(key=key, reverse=downwards)
    return rows


def _nodes(row: JobRow) -> tuple[bool, tuple[str, int, str]]:
    """By name and number, those without a node last."""
    there = jobs.nodes(row)
    return not there, by_number(there[0] if there else "")


Key = Callable[[JobRow], int | str | tuple[int, int] | tuple[bool, tuple[str, int, str]]]

_KEYS: dict[str, Key] = {
    "c": lambda row: max(group.each.cpu_milli for group in row.job.spec.groups),
    "b": lambda _: 0,
    "d": lambda _: 0,
    "C": jobs.cpus,
    "D": jobs.node_count,
    "e": lambda row: jobs.ends_at(row) or 0,
    "i": lambda row: (jobs.family(row), row.job.id),
    "l": lambda row: jobs.time_limit(row) or _LAST,
    "L": lambda row: (jobs.time_limit(row) or _LAST) - jobs.elapsed(row),
    "m": jobs.memory_per_node_mib,
    "M": jobs.elapsed,
    "N": _nodes,
    "p": jobs.priority,
    "Q": jobs.priority,
    "S": lambda row: jobs.expected_at(row) or _LAST,
    "t": lambda row: row.state.value,
    "V": lambda row: row.job.submitted_at,
}
