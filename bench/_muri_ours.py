"""Muri's traces through the real cycle: planner, checks, journal and a simulated cluster."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from bench._muri_sharing import ask, pace_of
from bench._muri_site import LAB, MIN_RUN, nodes, site, spec_of
from bench._muri_trace import NODES, TraceJob
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.world.transaction import Change
from muster.model.event import JobEnded, JobStarted
from muster.model.job import Exited, JobSpec
from muster.model.policy import Aim
from muster.model.value import Duration, Instant, JobId
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch


@dataclass(slots=True)
class Outcome:
    """When each job ended, in milliseconds, and how often jobs were begun again."""

    ended: dict[JobId, Instant] = field(default_factory=dict[JobId, Instant])
    restarts: int = 0

    def hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        """What was committed."""
        for event in batch.events:
            match event:
                case JobEnded(job=job, at=at, why=Exited()):
                    self.ended[job] = at
                case JobStarted(attempt=attempt):
                    self.restarts += attempt > 1
                case _:
                    continue


def ours(
    jobs: list[TraceJob],
    *,
    shares: bool = False,
    min_run: Duration = MIN_RUN,
    aim: Aim = Aim.COMPLETION,
) -> tuple[dict[int, float], int]:
    """When each job ended, by its number in the trace, and how often jobs were begun again."""
    by_id = {JobId(number): job for number, job in enumerate(jobs, start=1)}
    backend = SimulatedBackend(nodes(NODES), LAB, lambda job, _: _fate(by_id[job.id]))
    if shares:
        backend.share_by(pace_of(by_id))
    simulation = Simulation(site(min_run, aim), {LAB.name: backend})
    outcome = Outcome()
    simulation.watch(outcome.hear)
    simulation.run(_arrivals(jobs, _shared if shares else _whole))
    ended = {by_id[job].number: at / 1000 for job, at in outcome.ended.items()}
    return ended, outcome.restarts


def _arrivals(jobs: Iterable[TraceJob], spec: Callable[[TraceJob], JobSpec]) -> Iterator[Arrival]:
    for job in jobs:
        yield Arrival(at=Instant(round(job.submit_s * 1000)), spec=spec(job))


def _whole(job: TraceJob) -> JobSpec:
    return spec_of(job.gpus, name=job.model)


def _shared(job: TraceJob) -> JobSpec:
    return spec_of(job.gpus, name=job.model, each=partial(ask, job))


def _fate(traced: TraceJob) -> Behaviour:
    return Behaviour(
        work=Duration(max(1, round(traced.work_s * 1000))),
        start_delay=Duration(traced.start_s * 1000),
        saves_in=Duration(0),
    )
