"""The site that `muster up` begins with, on the nodes and with the jobs of a trace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import yaml

from bench._jct_ours import fate
from bench._jct_queue import Limits
from bench._jct_trace import Park, Row
from bench._muri_site import nodes, spec_of
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.world.transaction import Change
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.config.parse import site_from
from muster.doors.config.show import site_text
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.event import JobEnded, JobStarted
from muster.model.job import Exited, JobSpec
from muster.model.launch import Checkpointing
from muster.model.queue import PreemptMode
from muster.model.site import Site
from muster.model.value import ClusterName, Duration, Instant, JobId, replace
from muster.simulator.run import Arrival, Simulation
from muster.stores.base import Batch

(POOL,) = DEFAULT_SITE.pools.values()
CLUSTER = Cluster(name=POOL.cluster, backend=BackendKind.SIMULATED)
CHECKPOINT = Checkpointing(path="checkpoint")


@dataclass(frozen=True, slots=True)
class Setting:
    """How the jobs of a trace are submitted, and under which rules.

    saves: jobs write a checkpoint when they are stopped, and say so when they are submitted.
    """

    limits: Limits
    saves: bool = False
    site: Site = DEFAULT_SITE


@dataclass(frozen=True, slots=True)
class Attempt:
    """GPUs that a job held, in seconds since the trace began."""

    begun_s: int
    ended_s: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of the jobs of a virtual cluster: their ends by number, and all attempts."""

    ended: dict[int, int]
    attempts: tuple[Attempt, ...]
    cpu_s: float = 0.0


def site_with(policy: Path | None) -> Site:
    """The first site of a new installation; with the `policy` section of another file, if any."""
    if policy is None:
        return DEFAULT_SITE
    # Every word stays as it is written: the file's own reader knows what it means.
    tree: dict[str, Any] = yaml.load(site_text(DEFAULT_SITE), Loader=yaml.BaseLoader)  # noqa: S506  makes texts only
    given: dict[str, Any] = yaml.load(policy.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506  the same
    return site_from(yaml.safe_dump(tree | {"policy": given["policy"]}, sort_keys=False))


def ours(park: Park, setting: Setting) -> Replayed:
    """Run one virtual cluster, an installation of its own, until every job is over."""
    began = process_time()
    simulation = Simulation(setting.site, backends(park, setting))
    heard = _Heard(rows_by_id(park))
    simulation.watch(heard.hear)
    simulation.run(arrivals(park.rows, setting))
    return Replayed(heard.ended, tuple(heard.attempts), process_time() - began)


def rows_by_id(park: Park) -> dict[JobId, Row]:
    """The jobs of the trace by the ids that they get in a simulation."""
    return {JobId(number): row for number, row in enumerate(park.rows, start=1)}


def backends(park: Park, setting: Setting) -> dict[ClusterName, SimulatedBackend]:
    """The nodes of the trace, on which each job runs as long as it did."""
    rows = rows_by_id(park)

    def behaviour(job: JobId) -> Behaviour:
        row = rows[job]
        return fate(row) if setting.saves else Behaviour(work=Duration(row.lasts_s * 1_000))

    backend = SimulatedBackend(nodes_of(park.nodes), CLUSTER, lambda job, _: behaviour(job.id))
    return {CLUSTER.name: backend}


def nodes_of(count: int) -> list[Node]:
    """As many as a trace had, of a cluster that the default site knows."""
    return [replace(node, cluster=CLUSTER.name, pool=POOL.name) for node in nodes(count)]


def arrivals(rows: Iterable[Row], setting: Setting) -> Iterator[Arrival]:
    """The jobs of the trace, as they are submitted."""
    for row in rows:
        yield Arrival(at=Instant(row.at_s * 1_000), spec=_spec(row, setting))


def _spec(row: Row, setting: Setting) -> JobSpec:
    limit_s = setting.limits(row)
    spec = replace(
        spec_of(row.gpus, user=row.user or "all"),
        queue=setting.site.default_queue,
        time_limit=None if limit_s is None else Duration(limit_s * 1_000),
    )
    if not setting.saves:
        return spec
    # An exact limit leaves no time to go on after a stop.
    restart = fate(row).restart_overhead
    limit = spec.time_limit
    return replace(
        spec,
        time_limit=None if limit is None else Duration(limit + restart),
        preempt_mode=PreemptMode.CHECKPOINT,
        restart_cost=restart,
        launch=replace(spec.launch, checkpoint=CHECKPOINT),
    )


@dataclass(slots=True)
class _Heard:
    """Attempts, from what was committed."""

    rows: dict[JobId, Row]
    ended: dict[int, int] = field(default_factory=dict[int, int])
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    begun: dict[JobId, int] = field(default_factory=dict[JobId, int])

    def hear(self, batch: Batch, _: tuple[Change, ...]) -> None:
        for event in batch.events:
            match event:
                case JobStarted(job=job, at=at):
                    self.begun[job] = _seconds(at)
                case JobEnded(job=job, at=at, why=why):
                    row = self.rows[job]
                    began = self.begun.pop(job, _seconds(at))
                    self.attempts.append(Attempt(began, _seconds(at), row.gpus))
                    if isinstance(why, Exited):
                        self.ended[row.number] = _seconds(at)
                case _:
                    continue


def _seconds(at: Instant) -> int:
    return -(-at // 1_000)
