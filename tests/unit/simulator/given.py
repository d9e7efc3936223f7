"""Small scenarios for tests of the simulator."""

from collections.abc import Iterable

from muster.doors.config.default import DEFAULT_SITE
from muster.model.rack import Rack
from muster.model.site import Site
from muster.model.value import Duration, Instant, QueuePath, replace
from muster.simulator.nodes import made
from muster.simulator.outages import Outage
from muster.simulator.rehearsal import Scenario, fitted
from muster.simulator.traces.traced import TracedJob
from muster.simulator.workload import workload

A100 = "A100-80GB"


def traced(at_s: int, lasts_s: int, gpus: int = 1, **more: object) -> TracedJob:
    given: dict[str, object] = {"name": "job", "user": "ann", "cpu_milli": 1_000} | more
    job = TracedJob(name="job", submitted_at=Instant(1_000 * at_s), gpus=gpus)
    return replace(job, duration=Duration(1_000 * lasts_s), **given)


def scenario(
    jobs: Iterable[TracedJob],
    *,
    nodes: int = 1,
    gpus: int = 4,
    site: Site = DEFAULT_SITE,
    outages: tuple[Outage, ...] = (),
) -> Scenario:
    given = workload(jobs)
    site, arrivals = fitted(site, given.arrivals)
    racks = (Rack(nodes=nodes, gpus=f"{gpus}x{A100}"),)
    return Scenario(
        site=site,
        nodes=tuple(made(racks, site)),
        arrivals=arrivals,
        lasts=given.lasts,
        outages=outages,
    )


def with_queues(**weights: int) -> Site:
    queues = {
        QueuePath(name): replace(DEFAULT_SITE.queues[QueuePath("default")], path=name, weight=each)
        for name, each in weights.items()
    }
    return replace(DEFAULT_SITE, queues={**DEFAULT_SITE.queues, **queues})
