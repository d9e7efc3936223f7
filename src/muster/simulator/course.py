"""One course that things may take: a simulation that begins with the state of this moment.

Where very many jobs wait, only the first of each kind are in line; the others are held, and let in
as these start. A plan then costs what is in line, and nobody farther behind could start anyway.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest

from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.planner.client import PlannerClient
from muster.controller.world.transaction import Change, Transaction
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.errors import RefusedError
from muster.model.event import JobReleased, JobStarted
from muster.model.facts import Mover
from muster.model.job import HeldBy, Job, JobSpec, JobState
from muster.model.placement import Allocation
from muster.model.reason import NoRoom, WaitReason
from muster.model.site import Site
from muster.model.snapshot import Snapshot
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    Value,
    replace,
)
from muster.simulator.run import SIMULATOR, Arrival, Beginning, Coming, Simulation
from muster.simulator.settled import SettledLevels, SettledPredictions
from muster.stores.base import Batch, LiveState

LONGEST_FORECAST = Duration(60 * 86_400_000)
"""Nobody is told a date that is farther off."""

IN_LINE = 400
"""So many jobs of a kind are in line at once."""

LET_IN = 100
"""So many are let in together."""

MOST_AFTER = 3
"""So many of those that must end first are named."""

MOST_PASSING = 3
"""So many of those that may pass a job are named: of all that do, the last to come."""

HOPELESS = frozenset({Mover.USER, Mover.ADMIN, Mover.HOLDER})
"""Who waits for these has no date: nothing that a forecast plays would let it start."""

LATER = HeldBy(user=SIMULATOR.user)

Lasting = Callable[[Job, Allocation], Behaviour]
Kind = tuple[object, ...]
Lines = Mapping[Kind, tuple[JobId, ...]]
"""Those behind the first of each kind, in their order."""


class CourseStart(Value, gc=False):
    """A start in one course: when, who held its nodes before, how many newcomers went before.

    passing: who came later, wants the same nodes and started before; some of them.
    is_sketched: no course got there.
    """

    at: Instant
    after: tuple[JobId, ...]
    newcomers: int
    passing: tuple[JobId, ...] = ()
    is_sketched: bool = False


class Opening(Value):
    """What a course begins with, the same for all courses of one forecast.

    order: where many wait, those that only room is missing for, in the order of their turns.
    """

    snapshot: Snapshot
    site: Site
    lines: Lines
    order: tuple[JobId, ...] = ()


def opening(snapshot: Snapshot, site: Site, planner: PlannerClient) -> Opening:
    """Who is in line, and who is let in later.

    planner: puts them in order; one that knows an earlier state of this world does so sooner.
    """
    waiting = [job for job in snapshot.jobs.values() if job.state is JobState.PENDING]
    if len(waiting) <= IN_LINE:
        return Opening(snapshot=snapshot, site=site, lines={})
    waits = planner.plan(snapshot, site.policy).waits
    lines: dict[Kind, list[JobId]] = {}
    order: list[JobId] = []
    for job_id, prospect in planner.backlog().items():
        if prospect.position is not None and snapshot.jobs[job_id].state is JobState.PENDING:
            lines.setdefault(kind_of(snapshot.jobs[job_id].spec), []).append(job_id)
            if job_id in waits and _is_for_room(waits[job_id].why):
                order.append(job_id)
    later = {kind: tuple(line[IN_LINE:]) for kind, line in lines.items() if len(line) > IN_LINE}
    return Opening(snapshot=snapshot, site=site, lines=later, order=tuple(order))


def _is_for_room(why: WaitReason) -> bool:
    return isinstance(why, NoRoom) or why.facts.mover is Mover.LINE


def kind_of(spec: JobSpec) -> Kind:
    """Jobs of one kind want the same nodes; those of others do not stand in line with them."""
    models = [group.each.gpus.models if group.each.gpus else None for group in spec.groups]
    return spec.pools, spec.clusters, spec.reservation, spec.takes, tuple(models)


class Course:
    """One simulation, until all that are wanted have started.

    found: what began so far, in that order.
    """

    def __init__(
        self,
        simulation: Simulation,
        arrivals: Iterable[Arrival],
        wanted: Iterable[JobId],
        lines: Lines,
    ) -> None:
        self.found: dict[JobId, CourseStart] = {}
        self._missing = set(wanted)
        self._simulation = simulation
        self._coming = Coming(arrivals)
        self._until = Instant(simulation.now + LONGEST_FORECAST)
        self._newcomers_from = simulation.record.next_job
        self._newcomers = 0
        self._later = {kind: deque(line) for kind, line in lines.items()}
        self._room = dict.fromkeys(lines, 0)
        self._to_let_in: set[Kind] = set()
        # By node, who left it last.
        self._left: dict[NodeId, JobId] = {}
        # By kind, those who came last of all that started.
        self._started: dict[Kind, list[JobId]] = {}
        self._is_new = True
        simulation.watch(self._hear)

    @property
    def snapshot(self) -> Snapshot:
        """How things stand where it got to."""
        return self._simulation.record.snapshot(self._simulation.now)

    def play(self, is_time: Callable[[], bool]) -> bool:
        """Play until it is time to look; are all there that can be?"""
        if self._is_new:
            self._is_new = False
            self._simulation.turn()
            self._leave_out_hopeless()
        while self._missing and not is_time():
            self._simulation.run(
                self._coming,
                self._until,
                _ignored,
                lambda: not self._missing or bool(self._to_let_in) or is_time(),
            )
            if not self._to_let_in:
                break
            self._let_in()
        return not (self._missing and is_time())

    def _leave_out_hopeless(self) -> None:
        plan = self._simulation.plan
        if plan is None:
            return
        later = {job for line in self._later.values() for job in line}
        self._missing -= {
            job
            for job in self._missing - later
            if job in plan.waits and plan.waits[job].why.facts.mover in HOPELESS
        }

    def _let_in(self) -> None:
        """Those whose turn it is to wait in line."""
        jobs: list[JobId] = []
        for kind in sorted(self._to_let_in, key=repr):
            line = self._later[kind]
            jobs += [line.popleft() for _ in range(min(self._room[kind], len(line)))]
            self._room[kind] = 0
        self._to_let_in.clear()

        def release(transaction: Transaction) -> None:
            for job in jobs:
                transaction.apply(JobReleased(at=transaction.now, job=job, by=SIMULATOR.user))

        self._simulation.write(release)

    def _hear(self, batch: Batch, changes: tuple[Change, ...]) -> None:
        for change in changes:
            if change.held is not None and change.holds is None:
                for placed in change.held.placements:
                    self._left[placed.node] = change.held.job
        for event in batch.events:
            if isinstance(event, JobStarted):
                self._begin(event)
        for ended in batch.ended:
            self._missing.discard(ended.job.id)

    def _begin(self, event: JobStarted) -> None:
        job = event.job
        if job >= self._newcomers_from:
            self._newcomers += 1
            return
        held = self._simulation.record.allocations.get(job)
        kind = kind_of(self._simulation.record.jobs[job].spec)
        started = self._started.setdefault(kind, [])
        if held is not None and job in self._missing:
            nodes = dict.fromkeys(placed.node for placed in held.placements)
            known = (self._left.get(node) for node in nodes)
            after = dict.fromkeys(
                each for each in known if each is not None and each < self._newcomers_from
            )
            self.found[job] = CourseStart(
                at=event.at,
                after=tuple(after)[:MOST_AFTER],
                newcomers=self._newcomers,
                passing=tuple(sorted(each for each in started if each > job)),
            )
        self._missing.discard(job)
        self._started[kind] = nlargest(MOST_PASSING, {*started, job})
        if self._later:
            self._make_room(kind)

    def _make_room(self, kind: Kind) -> None:
        if self._later.get(kind):
            self._room[kind] += 1
            if self._room[kind] >= LET_IN:
                self._to_let_in.add(kind)


def simulation_of(
    start: Opening,
    lasting: Lasting,
    pause: Callable[[Instant], Duration],
    predictions: SettledPredictions,
) -> Simulation:
    """The simulation of one course."""
    simulation = Simulation(
        start.site,
        _backends(start.snapshot, lasting),
        now=start.snapshot.now,
        beginning=_beginning(start),
    )
    simulation.pause = pause
    simulation.record.predictions = predictions
    simulation.record.levels = SettledLevels(start.snapshot.levels)
    return simulation


def _ignored(_arrival: Arrival, _error: RefusedError) -> None:
    """What came before would be refused now: rules change."""


def _backends(snapshot: Snapshot, lasting: Lasting) -> Mapping[ClusterName, SimulatedBackend]:
    nodes: dict[ClusterName, list[Node]] = {}
    for node in snapshot.nodes.values():
        nodes.setdefault(node.cluster, []).append(node)
    backends = {
        name: SimulatedBackend(
            on,
            snapshot.clusters.get(name) or Cluster(name=name, backend=BackendKind.SIMULATED),
            lasting,
            now=snapshot.now,
        )
        for name, on in sorted(nodes.items())
    }
    for job_id, allocation in sorted(snapshot.allocations.items()):
        if allocation.cluster in backends:
            backends[allocation.cluster].carry_on(snapshot.jobs[job_id], allocation)
    return backends


def _beginning(start: Opening) -> Beginning:
    snapshot = start.snapshot
    later = {job for line in start.lines.values() for job in line}
    state = LiveState(
        version=snapshot.version,
        next_job=JobId(max(snapshot.jobs, default=0) + 1),
        jobs=tuple(_undated(job, is_later=job.id in later) for job in snapshot.jobs.values()),
        allocations=tuple(snapshot.allocations.values()),
        clusters=tuple(snapshot.clusters.values()),
        nodes=tuple(snapshot.nodes.values()),
        used=snapshot.used_lately,
        usual=snapshot.usual,
    )
    return Beginning(state=state, finished=snapshot.finished)


def _undated(job: Job, *, is_later: bool) -> Job:
    """The job as it begins a course: held if its turn comes later, and without its deadline.

    Who is too late for its deadline is given up; when it would start is what people ask.
    """
    if is_later:
        job = replace(job, state=JobState.HELD, why=LATER)
    if job.spec.deadline is None:
        return job
    return replace(job, spec=replace(job.spec, deadline=None))
