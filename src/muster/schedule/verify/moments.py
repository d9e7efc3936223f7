"""Who holds what: now, and once claims have replaced their victims."""

from collections.abc import Container, Iterable, Iterator
from itertools import chain

from muster.model.cluster import Node, NodeState
from muster.model.gpu import Mig
from muster.model.job import HOLDING, Job, JobState, Preempted
from muster.model.placement import Allocation, Claim, Placement
from muster.model.plan import Clear
from muster.model.queue import PreemptMode
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot
from muster.model.value import JobId, NodeId, Value, replace
from muster.schedule.verify.additions import Addition, Kind, Task
from muster.schedule.verify.census import Census, Holder, Sitting
from muster.schedule.verify.register import Register


class Seats(Value, gc=False):
    """Who is on a node to which the plan adds something."""

    node: Node
    held: list[Sitting]
    claimed: list[Sitting]
    memory_only: list[Sitting]
    added: list[Task]


class Moment(Value):
    """Who holds what at one time, and what the plan adds by then.

    Now, victims are still there and their room cannot be had.
    Then, they are gone, and claims have come in their place; `asleep` are those of them
    that keep their memory.
    `seats` are the nodes to which the plan adds something, with everyone there.
    """

    words: str
    is_cleared: bool
    staying: Census
    leaving: list[Holder]
    claims: list[Holder]
    asleep: list[Holder]
    added: list[Addition]
    seats: dict[NodeId, Seats]

    def includes(self, kind: Kind) -> bool:
        """Does what comes in this way come by then?"""
        return self.is_cleared or kind is not Kind.CLEAR

    def passing(self) -> Iterator[Holder]:
        """All that hold or claim at this moment, beside those that stay at every one."""
        return chain(self.leaving, self.claims)

    @property
    def memory_only(self) -> list[Holder]:
        """Those who hold their memory, and nothing else."""
        suspended = [_asleep(job, placements) for job, placements in self.staying.suspended]
        return suspended + self.asleep


def moments_of(
    snapshot: Snapshot,
    additions: list[Addition],
    nodes: set[NodeId],
    clears: list[Clear],
    register: Register | None,
) -> tuple[Moment, ...]:
    """The moments that must be looked at: without claims, only now. Something is new on `nodes`."""
    claiming = _claiming(snapshot, register)
    victims = _victims(snapshot, claiming, clears)
    staying = Census(snapshot, victims, nodes, register)
    leaving = _leaving(snapshot, victims)
    now = _now(staying, leaving, additions)
    if not claiming and not clears:
        return (now,)
    asleep = [
        _asleep(job, placements)
        for job, placements in leaving
        if mode_of(snapshot, job) is PreemptMode.SUSPEND
    ]
    return now, _then(staying, _claims(claiming, additions), asleep, additions)


def _now(staying: Census, leaving: list[Holder], additions: list[Addition]) -> Moment:
    added = [addition for addition in additions if addition.kind is not Kind.CLEAR]
    seats = _seats(added, staying)
    for node_id, sitting in _on_nodes(leaving, seats).items():
        seats[node_id].held.extend(sitting)
    return Moment(
        words="",
        is_cleared=False,
        staying=staying,
        leaving=leaving,
        claims=[],
        asleep=[],
        added=added,
        seats=seats,
    )


def _then(
    staying: Census, claims: list[Holder], asleep: list[Holder], additions: list[Addition]
) -> Moment:
    seats = _seats(additions, staying)
    for node_id, sitting in _on_nodes(claims, seats).items():
        seats[node_id].claimed.extend(sitting)
    for node_id, sitting in _on_nodes(asleep, seats).items():
        seats[node_id].memory_only.extend(sitting)
    return Moment(
        words=" once claims have replaced their victims",
        is_cleared=True,
        staying=staying,
        leaving=[],
        claims=claims,
        asleep=asleep,
        added=additions,
        seats=seats,
    )


def _seats(added: list[Addition], staying: Census) -> dict[NodeId, Seats]:
    """The nodes to which something is added, and who stays there."""
    found: dict[NodeId, Seats] = {}
    for addition in added:
        for task in addition.tasks:
            node = task.node
            seats = found.get(node.id)
            if seats is None:
                seats = found[node.id] = _seats_on(node, staying)
            seats.added.append(task)
    return found


def _seats_on(node: Node, staying: Census) -> Seats:
    dozing = staying.dozing.get(node.id, ())
    return Seats(
        node=node,
        held=list(staying.standing.get(node.id, ())),
        claimed=[],
        memory_only=[(job, _memory_of(placed)) for job, placed in dozing],
        added=[],
    )


def mode_of(snapshot: Snapshot, job: Job) -> PreemptMode:
    """What becomes of the job when it is preempted; what cannot be suspended is requeued."""
    if job.state is JobState.STOPPING and isinstance(job.why, Preempted):
        return job.why.mode
    job_class = snapshot.classes.get(job.spec.job_class)
    usual = PreemptMode.REQUEUE if job_class is None else job_class.preempt_mode
    mode = job.spec.preempt_mode or usual
    allocation = snapshot.allocations.get(job.id)
    if mode is not PreemptMode.SUSPEND or allocation is None:
        return mode
    cluster = snapshot.clusters.get(allocation.cluster)
    is_able = cluster is None or cluster.abilities.suspend
    return mode if is_able and not _is_on_instances(allocation) else PreemptMode.REQUEUE


def _is_on_instances(allocation: Allocation) -> bool:
    """Has some task a MIG instance? It would be cut away under the stopped process."""
    shares = chain.from_iterable(placement.devices for placement in allocation.placements)
    return any(isinstance(share.slice, Mig) for share in shares)


def _claiming(snapshot: Snapshot, register: Register | None) -> list[Job]:
    """Jobs whose claim has not run out, on nodes that are all UP."""
    jobs = snapshot.jobs
    if register is None:
        claiming = [job for job in jobs.values() if job.claim is not None]
    else:
        claiming = [jobs[each] for each in sorted(register.claiming)]
    return [job for job in claiming if job.claim is not None and _stands(job.claim, snapshot)]


def _stands(claim: Claim, snapshot: Snapshot) -> bool:
    nodes = (snapshot.nodes.get(placement.node) for placement in claim.placements)
    is_up = all(node is not None and node.state is NodeState.UP for node in nodes)
    return is_up and claim.until > snapshot.now


def _claims(claiming: list[Job], additions: list[Addition]) -> list[Holder]:
    """What is claimed; a Start or another Clear takes the place of the job's claim."""
    replaced = {each.job.id for each in additions if each.kind in {Kind.START, Kind.CLEAR}}
    return [
        (job, job.claim.placements)
        for job in claiming
        if job.claim is not None and job.id not in replaced
    ]


def _victims(snapshot: Snapshot, claiming: list[Job], clears: list[Clear]) -> set[JobId]:
    """Those whom this plan stops, and those who are stopping for a claim."""
    jobs = snapshot.jobs
    named = {victim for job in claiming if job.claim is not None for victim in job.claim.victims}
    stopping = {
        victim for victim in named if victim in jobs and jobs[victim].state is JobState.STOPPING
    }
    return stopping | {victim for clear in clears for victim in clear.victims}


def _leaving(snapshot: Snapshot, victims: set[JobId]) -> list[Holder]:
    """The victims that hold something."""
    found: list[Holder] = []
    for victim in sorted(victims):
        job, allocation = snapshot.jobs.get(victim), snapshot.allocations.get(victim)
        if job is not None and allocation is not None and job.state in HOLDING:
            found.append((job, allocation.placements))
    return found


def _asleep(job: Job, placements: tuple[Placement, ...]) -> Holder:
    """What a suspended job holds: its memory, and no device."""
    return job, tuple(_memory_of(each) for each in placements)


def _memory_of(placement: Placement) -> Placement:
    amount = Resources(memory_mib=placement.amount.memory_mib)
    return replace(placement, amount=amount, devices=())


def _on_nodes(holders: Iterable[Holder], nodes: Container[NodeId]) -> dict[NodeId, list[Sitting]]:
    found: dict[NodeId, list[Sitting]] = {}
    for job, placements in holders:
        for placement in placements:
            if placement.node in nodes:
                found.setdefault(placement.node, []).append((job, placement))
    return found
