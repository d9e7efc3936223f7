"""Slurm's patterns in file names: `%j %A %a %x %N %n %u %t %s %%`, and `%5j` for zeros in front."""

import re
from dataclasses import dataclass

from muster.model.job import Job
from muster.model.launch import Launch

_PATTERN = re.compile(r"%(\d*)([a-zA-Z%])")
_NUMBERS = frozenset("jAanst")
_WIDEST = 10
_NO_INDEX = "4294967294"


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the patterns stand for, of one task."""

    job: int
    job_name: str
    user: str
    node: str
    node_index: int = 0
    task: int = 0
    array: int | None = None
    index: int | None = None


def filled(text: str, names: Names) -> str:
    r"""The file name that is meant; a backslash anywhere means that nothing is a pattern."""
    if "\\" in text:
        return text.replace("\\", "")
    meanings = _meanings(names)

    def meaning(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        if letter not in meanings:
            return found[0]
        return _padded(meanings[letter], width if letter in _NUMBERS else "")

    return _PATTERN.sub(meaning, text)


def names_of(job: Job, node: str, task: int, node_index: int = 0) -> Names:
    """What the patterns stand for in a task of this job, on this node."""
    part = job.spec.array
    return Names(
        job=job.id,
        job_name=job.spec.name,
        user=job.spec.user,
        node=node,
        node_index=node_index,
        task=task,
        array=None if part is None else part.array,
        index=None if part is None else part.index,
    )


def stdout_pattern(job: Job, launch: Launch) -> str:
    """Where the job's output goes, as it asked for it or as is usual."""
    return launch.stdout or default_stdout(is_array=job.spec.array is not None)


def output_name(job: Job, launch: Launch, node: str, task: int, *, stderr: bool) -> str:
    """The file that a task wrote to, perhaps relative to where the job began."""
    wanted = launch.stderr if stderr else None
    return filled(wanted or stdout_pattern(job, launch), names_of(job, node, task))


def default_stdout(*, is_array: bool) -> str:
    return "muster-%A_%a.out" if is_array else "muster-%j.out"


def _meanings(names: Names) -> dict[str, str]:
    return {
        "%": "%",
        "j": str(names.job),
        "J": str(names.job),
        "A": str(names.array if names.array is not None else names.job),
        "a": str(names.index) if names.index is not None else _NO_INDEX,
        "x": names.job_name,
        "N": names.node,
        "n": str(names.node_index),
        "u": names.user,
        "t": str(names.task),
        "s": "batch",
    }


def _padded(meaning: str, width: str) -> str:
    return meaning.zfill(min(int(width), _WIDEST)) if width else meaning
