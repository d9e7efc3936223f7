"""Muri's traces through the real cycle: planner, checks, journal and a simulated cluster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench._muri_site import LAB, nodes, site, spec_of
from bench._muri_sorter import Sorter, SortingBackend
from bench._muri_trace import NODES, TraceJob
from muster.backends.fate import Fate
from muster.controller.stage import Change
from muster.model.event import JobEnded
from muster.model.job import Exited
from muster.model.value import (
    Duration,
    Instant,
    JobId,
)
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch


def _fate(traced: TraceJob) -> Fate:
    return Fate(
        work=Duration(max(1, round(traced.work_s * 1000))),
        start_delay=Duration(traced.start_s * 1000),
        saves_in=Duration(0),
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """When each job ended, by its number in the trace, and how often jobs were begun again."""

    ended: dict[int, float]
    restarts: int


def ours(jobs: list[TraceJob]) -> Outcome:
    """Run the trace."""
    by_id = {JobId(number): job for number, job in enumerate(jobs, start=1)}
    backend = SortingBackend(nodes(NODES), LAB, lambda job, _: _fate(by_id[job.id]))
    simulation = Simulation(site(min_run=Duration(0)), {LAB.name: backend})
    ended: dict[int, float] = {}

    def note(batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            if isinstance(event, JobEnded) and isinstance(event.why, Exited):
                ended[by_id[event.job].number] = event.at / 1000

    simulation.watch(backend.sorter.hear)
    simulation.watch(note)
    simulation.run(_arrivals(jobs, backend.sorter))
    return Outcome(ended, backend.sorter.restarts)


def _arrivals(jobs: Iterable[TraceJob], sorter: Sorter) -> Iterator[Arrival]:
    for job in jobs:
        spec = spec_of(job.gpus, sorter.class_of_new(job.gpus), name=job.model)
        yield Arrival(at=Instant(round(job.submit_s * 1000)), spec=spec)
