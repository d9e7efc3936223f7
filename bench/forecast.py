"""How long it takes to forecast the start of every waiting job, in processor time of one core.

The site is the one that `muster up` begins with. Of some thousands of jobs it is known how long
they took; then so many are submitted that all GPUs are taken and the others wait. First in line:
when those have a date who start first, by a forecaster that knows nothing of this world yet, and
again after one more job came, as it is in an installation that runs; the second is judged. All:
when there is a date for everybody who gets one. It is expected that jobs come as those did of which
that is known: one a minute.
"""

import argparse
from collections.abc import Iterator
from random import Random
from time import process_time

from bench._default_ours import CLUSTER, nodes_of
from bench._jct_trace import GPUS_PER_NODE
from bench._muri_site import spec_of
from bench.report import Cell, Row, report
from muster.backends.simulated.attempt import Behaviour
from muster.backends.simulated.backend import SimulatedBackend
from muster.controller.dates.protocol import Lessons
from muster.doors.config.default import DEFAULT_SITE
from muster.model.history import Ended
from muster.model.job import JobSpec
from muster.model.value import HOUR, MINUTE, SECOND, Duration, Instant, replace
from muster.simulator.forecast import Forecaster
from muster.simulator.run import Arrival, Simulation

WAITING = (1_000, 20_000)
NODES = 500
TAUGHT = 2_000
USERS = 50
SIZES = (1, 1, 1, 1, 2, 2, 4, 8, 8, 16, 32)
LIMITS = (Duration(HOUR), Duration(4 * HOUR), Duration(12 * HOUR), Duration(24 * HOUR))
FIRST_S, ALL_S = 1.0, 20.0
"""The bars: seconds until the first in line have a date, and until everybody has."""


def main() -> None:
    options = _options()
    table = [_measured(waiting, options.nodes) for waiting in options.waiting]
    figures: dict[str, Cell] = {}
    for row in table:
        figures[f"first_of_{row['waiting']}_cpu_s"] = row["first in line, s"]
        figures[f"again_of_{row['waiting']}_cpu_s"] = row["again, s"]
        figures[f"all_of_{row['waiting']}_cpu_s"] = row["all, s"]
    report("forecast", figures, table)


def _measured(waiting: int, nodes: int) -> Row:
    simulation, ended = _crowded(waiting, nodes)
    forecaster = Forecaster(process_time)
    forecaster.learn(Lessons(ended=ended))
    snapshot = simulation.record.snapshot(simulation.now)
    began = process_time()
    first_s = all_s = 0.0
    dated = 0
    for told in forecaster.dates(snapshot, simulation.record.site):
        all_s = process_time() - began
        first_s = first_s or all_s
        dated = max(dated, len(told))
    waits = len(simulation.record.waiting)
    again_s = _again(simulation, forecaster)
    is_met = again_s <= FIRST_S and all_s <= ALL_S
    return {
        "waiting": waits,
        "running": len(snapshot.allocations),
        "nodes": nodes,
        "first in line, s": round(first_s, 2),
        "again, s": round(again_s, 2),
        "all, s": round(all_s, 2),
        "dated": dated,
        "verdict": "met" if is_met and dated == waits else "MISSED",
    }


def _again(simulation: Simulation, forecaster: Forecaster) -> float:
    """Until those first in line have a date again, after one more job came."""
    now = Instant(simulation.now + SECOND)
    simulation.run([Arrival(at=now, spec=_spec(Random(2)))], until=now)
    snapshot = simulation.record.snapshot(simulation.now)
    began = process_time()
    next(forecaster.dates(snapshot, simulation.record.site))
    return process_time() - began


def _crowded(waiting: int, nodes: int) -> tuple[Simulation, tuple[Ended, ...]]:
    """A cluster on which so many wait, and the jobs that ended on it before."""
    chance = Random(1)
    ended: list[Ended] = []
    backend = SimulatedBackend(nodes_of(nodes), CLUSTER, lambda job, _: _lasts(int(job.id)))
    simulation = Simulation(DEFAULT_SITE, {CLUSTER.name: backend})
    simulation.watch(lambda batch, _: ended.extend(batch.ended))
    simulation.run(_arrivals(Instant(0), TAUGHT, chance))
    now = Instant(simulation.now + SECOND)
    gpus = 0
    many: list[JobSpec] = []
    while gpus < nodes * GPUS_PER_NODE:
        many.append(_spec(chance))
        gpus += sum(
            group.count * group.each.gpus.count for group in many[-1].groups if group.each.gpus
        )
    specs = [*many, *(_spec(chance) for _ in range(waiting))]
    simulation.run((Arrival(at=now, spec=spec) for spec in specs), until=now)
    return simulation, tuple(ended)


def _arrivals(at: Instant, count: int, chance: Random) -> Iterator[Arrival]:
    """One a minute: for a day and a half."""
    for number in range(count):
        yield Arrival(at=Instant(at + number * MINUTE), spec=_spec(chance))


def _spec(chance: Random) -> JobSpec:
    return replace(
        spec_of(chance.choice(SIZES), user=f"user{chance.randrange(USERS)}"),
        queue=DEFAULT_SITE.default_queue,
        time_limit=chance.choice(LIMITS),
    )


def _lasts(number: int) -> Behaviour:
    """From a minute to most of a day, most of them short."""
    part = Random(number).random()
    return Behaviour(work=Duration(round(MINUTE * 1_000**part)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", nargs="*", type=int, default=list(WAITING))
    parser.add_argument("--nodes", type=int, default=NODES)
    return parser.parse_args()


if __name__ == "__main__":
    main()
