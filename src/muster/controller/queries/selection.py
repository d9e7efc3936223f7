"""Which of the live jobs a query asks for; only the filters that it has cost anything."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from muster.controller.messages import JobQuery
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.queue import is_within
from muster.model.value import JobId, QueuePath


def select_jobs(
    jobs: Iterable[Job], query: JobQuery, allocations: Mapping[JobId, Allocation]
) -> Iterator[Job]:
    """Those of the jobs, in their order, for which everything holds that the query gives."""
    found = iter(jobs)
    if query.states:
        found = (job for job in found if job.state in query.states)
    if query.users:
        found = (job for job in found if job.spec.user in query.users)
    if query.queues:
        within = _Within(query.queues)
        found = (job for job in found if within[job.spec.queue])
    if query.name is not None:
        found = (job for job in found if job.spec.name == query.name)
    if query.reservation is not None:
        found = (job for job in found if job.spec.reservation == query.reservation)
    if query.arrays:
        found = (job for job in found if job.spec.array and job.spec.array.array in query.arrays)
    if query.nodes:
        nodes = frozenset(query.nodes)
        found = (job for job in found if _is_on(allocations.get(job.id), nodes))
    return found


class _Within(dict[QueuePath, bool]):
    """Is a queue one of these or below one? Worked out once for each queue."""

    def __init__(self, queues: tuple[QueuePath, ...]) -> None:
        super().__init__()
        self._queues = queues

    def __missing__(self, queue: QueuePath) -> bool:
        found = self[queue] = any(is_within(queue, each) for each in self._queues)
        return found


_NODE = attrgetter("node")


def _is_on(allocation: Allocation | None, nodes: frozenset[str]) -> bool:
    return allocation is not None and not nodes.isdisjoint(map(_NODE, allocation.placements))
