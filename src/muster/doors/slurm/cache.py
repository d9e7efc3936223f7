"""What this door keeps between calls, so that it need not be worked out each time."""

from collections.abc import Mapping, Sequence

from muster.controller.messages import Caller
from muster.controller.queries.queries import Queries
from muster.doors.line_cache import LineCaches
from muster.doors.slurm.priority import rank_of
from muster.doors.slurm.submit.fleet import Machines, machines_of
from muster.model.cluster import Node
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.plan import Backlog
from muster.model.value import JobId, NodeId, replace

MOST_LAUNCHES = 200_000


class Cache:
    """Of one server. lines: of waiting jobs, as squeue lists them."""

    def __init__(self) -> None:
        self.lines: LineCaches[str] = LineCaches()
        self._machines: Machines | None = None
        self._launches: dict[tuple[JobId, bool], Launch] = {}
        self._ranks: tuple[Backlog, Mapping[JobId, int]] = ({}, {})

    def machines(self, nodes: Mapping[NodeId, Node]) -> Machines:
        """What requests need to know of these nodes; worked out again when nodes change."""
        known = self._machines
        if known is None or known.nodes is not nodes:
            known = self._machines = machines_of(nodes)
        return known

    def ranks(self, backlog: Backlog) -> Mapping[JobId, int]:
        """The priority of each waiting job as one number; worked out once for each backlog."""
        known, ranks = self._ranks
        if known is not backlog:
            ranks = {
                job: rank_of(each.priority)
                for job, each in backlog.items()
                if each.priority is not None
            }
            self._ranks = (backlog, ranks)
        return ranks

    def launches(
        self, queries: Queries, caller: Caller, jobs: Sequence[Job]
    ) -> Mapping[JobId, Launch]:
        """What those of the jobs run that the caller may see, without script and environment."""
        if len(self._launches) > MOST_LAUNCHES:
            self._launches.clear()
        seen = [job for job in jobs if queries.jobs.may_see(caller, job)]
        # Who looks after a queue sees less of a job than its user does.
        keys = {job.id: (job.id, queries.jobs.owns(caller, job)) for job in seen}
        missing = [job for job in seen if keys[job.id] not in self._launches]
        for job, launch in (queries.jobs.launches(caller, missing) if missing else {}).items():
            self._launches[keys[job]] = replace(launch, script=None, env={})
        found = ((job, self._launches.get(key)) for job, key in keys.items())
        return {job: launch for job, launch in found if launch is not None}
