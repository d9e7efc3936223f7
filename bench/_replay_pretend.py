"""The same slice in pretend time: what the planner alone does with it, and what others would do."""

from collections.abc import Callable, Mapping

from bench._default_ours import CLUSTER, nodes_of
from bench._jct_queue import Limits, Started, conservative, easy, multifactor
from bench._jct_trace import Park, Row
from bench._muri_site import spec_of
from bench._replay_measured import Ran, Seen
from bench._replay_slice import MINUTE_S, ReplayedJob, Slice
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.world.transaction import Change
from muster.doors.config.default import DEFAULT_SITE
from muster.model.event import JobEnded, JobStarted
from muster.model.job import JobSpec
from muster.model.value import Duration, Instant, JobId, replace
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch

Policy = Callable[[Park, Limits], Started]

OTHERS: Mapping[str, Policy] = {
    "EASY": easy,
    "conservative": conservative,
    "Slurm-like": multifactor,
}


def ours(part: Slice) -> Seen:
    """By the default policy, if every start and every end took no time."""
    jobs = {JobId(number): job for number, job in enumerate(part.jobs, start=1)}
    backend = SimulatedBackend(
        nodes_of(part.nodes), CLUSTER, lambda job, _: Behaviour(work=_lasts(jobs[job.id]))
    )
    simulation = Simulation(DEFAULT_SITE, {CLUSTER.name: backend})
    heard = _Heard(jobs)
    simulation.watch(heard.hear)
    simulation.run(Arrival(at=Instant(_ms(job.at_s)), spec=_spec(job)) for job in part.jobs)
    return Seen(ran=heard.ran, told_s={})


def by(policy: Policy, part: Slice) -> Seen:
    """By one of the policies that `bench default` compares with."""
    limits = {job.number: _ms(MINUTE_S * job.limit_minutes) for job in part.jobs}
    rows = tuple(
        # In milliseconds, because jobs of a compressed trace are shorter than seconds.
        Row(job.number, _ms(job.at_s), _lasts(job), job.gpus, "", job.user)
        for job in part.jobs
    )
    started = policy(Park("", part.nodes, rows), lambda row: limits[row.number])
    ran = {
        row.number: Ran(
            started_s=started[row.number] / 1_000,
            ended_s=(started[row.number] + row.lasts_s) / 1_000,
        )
        for row in rows
    }
    return Seen(ran=ran, told_s={})


class _Heard:
    def __init__(self, jobs: Mapping[JobId, ReplayedJob]) -> None:
        self.ran: dict[int, Ran] = {}
        self._jobs = jobs
        self._started: dict[JobId, Instant] = {}

    def hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            if isinstance(event, JobStarted):
                self._started[event.job] = event.at
            elif isinstance(event, JobEnded):
                self.ran[self._jobs[event.job].number] = Ran(
                    started_s=self._started[event.job] / 1_000, ended_s=event.at / 1_000
                )


def _spec(job: ReplayedJob) -> JobSpec:
    return replace(
        spec_of(job.gpus, user=job.user),
        queue=DEFAULT_SITE.default_queue,
        time_limit=Duration(_ms(MINUTE_S * job.limit_minutes)),
    )


def _lasts(job: ReplayedJob) -> Duration:
    return Duration(max(1, _ms(job.lasts_s)))


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)
