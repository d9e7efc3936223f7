"""Which jobs are meant: ids, ranges, members of arrays."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from muster.api.pages import JobFilter
from muster.model.errors import UnknownError
from muster.model.value import Value

if TYPE_CHECKING:
    from muster.api.jobs import JobDocument, JobLine
    from muster.client.calls import Client

MOST_IN_A_RANGE = 100_000
PAGE = 20_000
"""The most that the server puts on one page."""

FORMS = "a job is written `17`, many `17-20`, one of an array `12_3`, a whole array `12_*`"

_PLAIN = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_MEMBER = re.compile(r"([0-9]{1,18})_(\*|[0-9]{1,9})")


class Chosen(Value):
    """Which jobs the filter options name."""

    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    name: str | None = None

    def filter(self, *, limit: int = PAGE) -> JobFilter:
        """As the server is asked."""
        return JobFilter(
            users=self.users,
            queues=self.queues,
            states=self.states,
            nodes=self.nodes,
            name=self.name,
            limit=limit,
        )


def is_job(text: str) -> bool:
    """Does it look like a job? Names of nodes never consist of digits alone."""
    return any(form.fullmatch(text) for form in (_PLAIN, _RANGE, _MEMBER))


def one_job(client: "Client", text: str) -> int:
    """The one job that is meant."""
    found = job_numbers(client, (text,))
    if len(found) != 1:
        raise click.UsageError(f"{text!r} names {len(found)} jobs; name one.")
    return found[0]


def job_numbers(client: "Client", texts: Iterable[str]) -> tuple[int, ...]:
    """The ids of all jobs that are named, each once, in the order in which they are named."""
    found: dict[int, None] = {}
    for text in texts:
        found.update(dict.fromkeys(_numbers(client, text)))
    return tuple(found)


def labelled(client: "Client", numbers: Sequence[int]) -> dict[int, str]:
    """What these jobs are called wherever they are shown: `17`, or `12_3` in an array."""
    labels = {number: str(number) for number in numbers}
    if numbers:
        asked = JobFilter(ids=tuple(numbers), ended=True, limit=len(numbers))
        found = (job for job in client.jobs(asked).jobs if job.id in labels)
        labels |= {job.id: label_of(job) for job in found}
    return labels


def label_of(job: "JobDocument | JobLine") -> str:
    """`17`, or `12_3` for a member of an array."""
    return str(job.id) if job.array is None else f"{job.array}_{job.array_index}"


def _numbers(client: "Client", text: str) -> Iterable[int]:
    if _PLAIN.fullmatch(text):
        return [int(text)]
    if found := _RANGE.fullmatch(text):
        first, last = int(found[1]), int(found[2])
        if not first <= last < first + MOST_IN_A_RANGE:
            raise click.UsageError(f"{text!r} is no range of jobs; write the smaller id first.")
        return range(first, last + 1)
    if found := _MEMBER.fullmatch(text):
        return _members(client, int(found[1]), found[2])
    raise click.UsageError(f"{text!r} is no job: {FORMS}.")


def _members(client: "Client", array: int, index: str) -> list[int]:
    """Among the live ones first: who steers a whole array means those that are not over."""
    for ended in (False, True):
        asked = JobFilter(arrays=(array,), limit=PAGE, ended=ended)
        wanted = [job.id for job in client.all_jobs(asked) if index in {"*", str(job.array_index)}]
        if wanted:
            return sorted(wanted)
    raise UnknownError(
        f"there is no job {array}_{index}; list jobs with: muster ps, muster history"
    )
