"""The nodes as requests are read against them, and what else the door keeps between calls."""

from collections.abc import Hashable, Mapping, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

from muster.controller.messages import Caller
from muster.controller.queries.queries import Queries
from muster.model.cluster import Node
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.plan import WaitReason
from muster.model.policy import Policy
from muster.model.snapshot import Snapshot
from muster.model.value import GpuModel, JobId, NodeId, Value, replace
from muster.schedule.explain.turns import Crowds, Turns


class Machines(Value):
    """The nodes as a request needs to know them."""

    nodes: Mapping[NodeId, Node]
    models: tuple[GpuModel, ...]
    labels: tuple[Mapping[str, str], ...]
    most_cpus: int
    most_gpus: int
    most_memory_mib: int = 0


MOST_KEPT = 200_000
MOST_FORMS = 8
SPARE = 10_000
"""So many lines more than were listed may be kept, of jobs that may be gone."""

Lines = dict[JobId, tuple[Job, WaitReason | None, str]]
"""Of jobs that wait, with what each was written from."""


class Memory:
    """Keeps what is worked out from the nodes until they change, and what is written of jobs."""

    def __init__(self) -> None:
        self._machines: Machines | None = None
        # By the server that they are of: several in one process do not disturb each other.
        self._files: WeakKeyDictionary[Queries, dict[JobId, Launch]] = WeakKeyDictionary()
        self._lines: dict[Hashable, Lines] = {}
        self._crowds = Crowds()
        self._lock = Lock()

    def machines(self, nodes: Mapping[NodeId, Node]) -> Machines:
        known = self._machines
        if known is None or known.nodes is not nodes:
            known = self._machines = machines_of(nodes)
        return known

    def turns(self, snapshot: Snapshot, policy: Policy) -> Turns:
        """Whose turn it is; who has how many jobs is not counted anew each time."""
        with self._lock:
            self._crowds.follow(snapshot.jobs)
            return Turns(snapshot, policy, self._crowds)

    def lines(self, key: Hashable, count: int) -> Lines:
        """What is kept of a list of so many, which the caller goes on with."""
        with self._lock:
            kept = self._lines.pop(key, {})
            # Whoever was not asked for the longest time is the first to go.
            self._lines[key] = kept if len(kept) <= 2 * count + SPARE else {}
            if len(self._lines) > MOST_FORMS:
                del self._lines[next(iter(self._lines))]
            return self._lines[key]

    def files(
        self, queries: Queries, caller: Caller, jobs: Sequence[Job]
    ) -> Mapping[JobId, Launch]:
        """Of the jobs that the caller may see: what they run, without script and environment."""
        kept = self._files.setdefault(queries, {})
        if len(kept) > MOST_KEPT:
            kept.clear()
        missing = [job for job in jobs if job.id not in kept]
        for job, launch in (queries.launches(caller, missing) if missing else {}).items():
            kept[job] = replace(launch, script=None, env={})
        found = ((job, kept.get(job.id)) for job in jobs)
        return {
            job.id: launch
            for job, launch in found
            if launch is not None and queries.may_see(caller, job)
        }


def machines_of(nodes: Mapping[NodeId, Node]) -> Machines:
    labels = {tuple(sorted(node.labels.items())) for node in nodes.values()}
    return Machines(
        nodes=nodes,
        models=tuple(sorted({each.model for node in nodes.values() for each in node.devices})),
        labels=tuple(dict(each) for each in sorted(labels)),
        most_cpus=max((node.cpu_milli // 1_000 for node in nodes.values()), default=1),
        most_gpus=max((len(node.devices) for node in nodes.values()), default=0),
        most_memory_mib=max((node.memory_mib for node in nodes.values()), default=0),
    )
