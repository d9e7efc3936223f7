"""One simulation from beginning to end: a site, its machines, what comes and what breaks."""

from collections.abc import Callable, Mapping, Sequence

from muster.backends.simulated.attempt import BehaviourOf
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.world.transaction import Change
from muster.lifecycle.predict import Accuracy
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.errors import MusterError, RefusedError
from muster.model.queue import Queue
from muster.model.site import Site
from muster.model.value import ClassName, ClusterName, Instant, NodeId, QueuePath, Value, replace
from muster.simulator.fragments import usual_asks
from muster.simulator.measuring import Measures
from muster.simulator.nodes import with_pools
from muster.simulator.outages import Outage, inject
from muster.simulator.report import Report, report_of
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch


class NothingToSimulateError(MusterError):
    """There are no jobs, or there is nowhere to run them."""


class Scenario(Value):
    """What is simulated. arrivals in the order of their coming; until: stop there."""

    site: Site
    nodes: tuple[Node, ...]
    arrivals: Sequence[Arrival]
    lasts: BehaviourOf
    outages: tuple[Outage, ...] = ()
    until: Instant | None = None
    name: str = ""


class Progress(Value, gc=False):
    """How far it is."""

    now: Instant
    arrived: int
    ended: int
    jobs: int


Watch = Callable[[Progress], None]
"""Called often with the progress so far; must be quick."""


def rehearse(scenario: Scenario, watch: Watch | None = None) -> Report:
    """Run it, and report."""
    if not scenario.arrivals or not scenario.nodes:
        missing = "jobs in the trace" if not scenario.arrivals else "nodes to run them on"
        raise NothingToSimulateError(f"there are no {missing}: there is nothing to simulate")
    begin = scenario.arrivals[0].at
    site = with_pools(scenario.site, scenario.nodes)
    backends = _backends(scenario, begin)
    inject(scenario.outages, backends, {node.id: node for node in scenario.nodes})
    measures = Measures(site, usual_asks(each.spec for each in scenario.arrivals), begin)
    simulation = Simulation(site, backends, now=begin)
    _catch_up(measures, simulation)
    simulation.watch(measures.hear)
    if watch is not None:
        simulation.watch(_Telling(measures, watch, len(scenario.arrivals)).hear)
    refusals: list[RefusedError] = []
    simulation.run(
        scenario.arrivals, scenario.until, lambda _arrival, error: refusals.append(error)
    )
    measures.close(_end(measures, scenario))
    return replace(
        report_of(measures, name=scenario.name, refused=len(refusals)),
        prediction=_accuracy(simulation),
    )


def fitted(site: Site, arrivals: Sequence[Arrival]) -> tuple[Site, list[Arrival]]:
    """The site with a queue for every queue of the trace, if it has none but its default one.

    Where the site has queues of its own, jobs from elsewhere go to its default queue; classes that
    it does not know become `normal`, or the first that it knows.
    """
    named = {arrival.spec.queue for arrival in arrivals}
    if set(site.queues) <= {site.default_queue}:
        extra = {path: Queue(path=path) for path in _with_those_above(named - site.queues.keys())}
        site = replace(site, queues={**site.queues, **extra})
    normal = ClassName("normal")
    usual_class = normal if normal in site.classes or not site.classes else min(site.classes)
    return site, [_at_home(arrival, site, usual_class) for arrival in arrivals]


class _Telling:
    """Reports the progress of the simulation now and then."""

    EVERY = 200

    def __init__(self, measures: Measures, watch: Watch, jobs: int) -> None:
        self._measures = measures
        self._watch = watch
        self._jobs = jobs
        self._count = 0

    def hear(self, _batch: Batch, _changes: tuple[Change, ...]) -> None:
        self._count += 1
        if self._count % self.EVERY == 0:
            measures = self._measures
            self._watch(
                Progress(
                    now=measures.now,
                    arrived=measures.submitted,
                    ended=len(measures.courses),
                    jobs=self._jobs,
                )
            )


def _backends(scenario: Scenario, begin: Instant) -> dict[ClusterName, SimulatedBackend]:
    by_cluster: dict[ClusterName, list[Node]] = {}
    for node in scenario.nodes:
        by_cluster.setdefault(node.cluster, []).append(node)
    return {
        name: SimulatedBackend(
            nodes,
            Cluster(name=name, backend=BackendKind.SIMULATED, order=order),
            scenario.lasts,
            now=begin,
        )
        for order, (name, nodes) in enumerate(sorted(by_cluster.items()))
    }


def _catch_up(measures: Measures, simulation: Simulation) -> None:
    """What was committed before anybody could listen: the nodes were seen."""
    nodes: Mapping[NodeId, Node] = simulation.record.nodes
    for node in nodes.values():
        measures.see(node)


def _accuracy(simulation: Simulation) -> Accuracy | None:
    found = simulation.record.predictions.accuracy
    return found if found.count else None


def _end(measures: Measures, scenario: Scenario) -> Instant:
    """The report ends with the last thing that happened to a job: repairs after it do not count."""
    if scenario.until is not None:
        return max(measures.now, scenario.until)
    return max((each.ended_at for each in measures.courses), default=measures.now)


def _at_home(arrival: Arrival, site: Site, usual_class: ClassName) -> Arrival:
    spec = arrival.spec
    queue = spec.queue if spec.queue in site.queues else site.default_queue
    job_class = spec.job_class if spec.job_class in site.classes else usual_class
    if (queue, job_class) == (spec.queue, spec.job_class):
        return arrival
    return replace(arrival, spec=replace(spec, queue=queue, job_class=job_class))


def _with_those_above(paths: set[QueuePath]) -> list[QueuePath]:
    found: set[QueuePath] = set()
    for path in paths:
        parts = path.split("/")
        found.update(QueuePath("/".join(parts[:count])) for count in range(1, len(parts) + 1))
    return sorted(found)
