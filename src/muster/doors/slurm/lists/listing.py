"""What all rows of one answer have in common: when, for whom, and the nodes and rules then."""

from collections.abc import Hashable, Mapping
from datetime import tzinfo
from functools import cached_property

from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists.usage import Scale
from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.words.gres import type_of
from muster.model.cluster import Node, NodesReserved, Pool
from muster.model.efficiency import JobReport
from muster.model.errors import MusterError
from muster.model.history import Finished
from muster.model.job import Job
from muster.model.placement import Allocation
from muster.model.plan import Backlog, Priority
from muster.model.site import Site
from muster.model.value import Duration, GpuModel, Instant, JobId, NodeId, PoolName

BACKLOG_PATIENCE_S = 1.0
"""So long a list waits for the priorities of the last plan; else it shows those of an earlier."""


class Listing:
    """One answer with rows: the moment and the user that it is for."""

    def __init__(self, call: Call, door: Door) -> None:
        fleet = door.queries.nodes.fleet()
        self.now: Instant = door.now
        self.zone: tzinfo | None = call.zone
        self.time_form = call.env.get("SLURM_TIME_FORMAT", "")
        self.site: Site = door.queries.site()
        self.nodes: Mapping[NodeId, Node] = fleet.nodes
        self.allocations: Mapping[JobId, Allocation] = fleet.allocations
        self.reservations = fleet.reservations
        self.pools: Mapping[PoolName, Pool] = fleet.pools
        self.clusters = tuple(sorted(fleet.clusters))
        self.convert = True
        self.scale = Scale()
        self.types_there: dict[tuple[str, ...], str | None] = {}
        self.tres_known: dict[Hashable, str] = {}
        # Slurm always has a default partition: where the site names none, the first stands for it.
        self.default_pool = self.site.default_pool or min(self.pools, default=PoolName("local"))
        self._door = door
        self._kept: dict[NodeId, str] | None = None
        self._models: tuple[GpuModel, ...] | None = None

    @property
    def cluster(self) -> str:
        return self.clusters[0] if self.clusters else "muster"

    def live_job(self, job: JobId) -> Job | None:
        """The job, if it has not ended."""
        return self._door.queries.jobs.find(self._door.caller, job)

    def report_of(self, job: Job) -> JobReport | None:
        """What the job's last attempt did with its GPUs, if the user may see that."""
        return self._door.queries.diagnosis.known(self._door.caller, job)

    def outcome(self, job: JobId) -> Finished | None:
        """How a job came out that a live one depends on."""
        return self._door.queries.jobs.outcome(job)

    def cpus_of(self, job: JobId) -> Mapping[NodeId, tuple[int, ...]]:
        """The CPUs of a running job by node, where they are known and the user may know them."""
        try:
            return self._door.queries.attempts.pinned_cpus(self._door.caller, job)
        except MusterError:
            return {}

    @cached_property
    def backlog(self) -> Backlog:
        """Where waiting jobs stand; asked for only by lists that show or sort by it."""
        return self._door.queries.plan.backlog(BACKLOG_PATIENCE_S)

    @cached_property
    def ranks(self) -> Mapping[JobId, int]:
        """The priorities of waiting jobs, as one number each."""
        return self._door.cache.ranks(self.backlog)

    def own_priority(self, job: Job) -> Priority:
        """What a job itself brings to its priority."""
        return self._door.queries.plan.own_priority(job)

    @property
    def kept(self) -> Mapping[NodeId, str]:
        """The nodes that a reservation keeps now: `reserved`, or `maint`."""
        if self._kept is None:
            self._kept = {
                node: "maint" if "MAINT" in each.flags or not _is_for_somebody(each) else "reserved"
                for each in self.reservations
                if isinstance(each, NodesReserved) and each.begins_at <= self.now < each.ends_at
                for node in each.nodes
            }
        return self._kept

    def usual_limit(self, pool: str) -> Duration | None:
        """The time limit there of jobs that ask for none."""
        found = self.pools.get(PoolName(pool))
        given = None if found is None else found.default_time
        return self.site.policy.default_time if given is None else given

    def gpu_type(self, model: GpuModel) -> str:
        """How Slurm users name this model."""
        if self._models is None:
            self._models = machines_of(self.nodes).models
        return type_of(model, self._models)


def has_usual_limit(door: Door) -> bool:
    """Do jobs without a time limit get one?"""
    if door.queries.site().policy.default_time is not None:
        return True
    return any(pool.default_time is not None for pool in door.queries.nodes.pools().values())


def _is_for_somebody(reservation: NodesReserved) -> bool:
    return bool(reservation.for_queue or reservation.for_users)
