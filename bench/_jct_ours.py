"""The traces of `bench jct` through the real cycle, one virtual cluster after the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from time import process_time

from bench._jct_trace import GPUS_PER_NODE, Park, Row
from bench._muri_ours import Outcome as Heard
from bench._muri_site import LAB, nodes, site, spec_of
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.model.policy import Aim
from muster.model.value import Duration, Instant, JobId
from muster.simulator.run import Arrival, Simulation

ONE_GPU_S, ONE_NODE_S, MORE_S = 7, 30, 60
"""What going on after a stop costs, as in the simulator of Helios: one GPU, one node, more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When each job ended, by its number, how often jobs were begun again, and what it took."""

    ended: dict[int, int]
    restarts: int
    cpu_s: float


def all_of(parks: Sequence[Park], processes: int, run: Callable[[Park], Outcome]) -> Outcome:
    """Run the whole trace, the largest virtual clusters first, so many at once."""
    ended: dict[int, int] = {}
    restarts, took_s = 0, 0.0
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(run, sorted(parks, key=lambda park: -len(park.rows))):
            ended |= found.ended
            restarts += found.restarts
            took_s += found.cpu_s
    return Outcome(ended, restarts, took_s)


def by_service(park: Park, aim: Aim) -> Outcome:
    """Least service first, on one virtual cluster: an installation of its own."""
    began = process_time()
    by_id = {JobId(number): row for number, row in enumerate(park.rows, start=1)}
    backend = SimulatedBackend(nodes(park.nodes), LAB, lambda job, _: fate(by_id[job.id]))
    simulation = Simulation(site(aim=aim), {LAB.name: backend})
    heard = Heard()
    simulation.watch(heard.hear)
    simulation.run(_arrivals(park.rows))
    took_s = process_time() - began
    print(f"{park.name}: {len(park.rows):,} jobs in {took_s:.0f} s", flush=True)
    ended = {by_id[job].number: -(-at // 1000) for job, at in heard.ended.items()}
    return Outcome(ended, heard.restarts, took_s)


def _arrivals(rows: Iterable[Row]) -> Iterator[Arrival]:
    for row in rows:
        spec = spec_of(row.gpus, user=row.user or "all")
        yield Arrival(at=Instant(row.at_s * 1000), spec=spec)


def fate(row: Row) -> Behaviour:
    """It saves when it is asked to, and pays for each restart."""
    again_s = ONE_GPU_S if row.gpus == 1 else ONE_NODE_S if row.gpus <= GPUS_PER_NODE else MORE_S
    return Behaviour(
        work=Duration(row.lasts_s * 1000),
        restart_overhead=Duration(again_s * 1000),
        saves_in=Duration(0),
    )
