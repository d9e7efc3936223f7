"""Short jobs first, learned from the past, through the whole controller."""

from muster.backends.simulated.backend import SimulatedBackend
from muster.model.cluster import Cluster
from muster.model.policy import OrderWeights, Policy
from muster.model.site import Site
from muster.model.value import Duration, Instant, JobId, replace
from muster.simulator.nodes import with_pools
from muster.simulator.rehearsal import Scenario, rehearse
from muster.simulator.run import Simulation
from muster.simulator.traces.traced import TracedJob
from unit.simulator.given import scenario, traced


def in_order_of_arrival(site: Site) -> Site:
    return replace(site, policy=Policy(order=OrderWeights(short=0)))


def day_of_work() -> list[TracedJob]:
    """First some of each kind, so that it can be learned; then many at once."""
    lessons = [
        job
        for at in range(0, 5_000, 1_000)
        for job in (traced(at, 10, 1, name="quick"), traced(at, 900, 1, name="slow"))
    ]
    rush = [traced(6_000, 900, 2, name="slow") for _ in range(10)]
    rush += [traced(6_001, 10, 2, name="quick") for _ in range(10)]
    return lessons + rush


def begun(given: Scenario) -> Simulation:
    node = given.nodes[0]
    backend = SimulatedBackend(given.nodes, Cluster(name=node.cluster), given.lasts)
    return Simulation(with_pools(given.site, given.nodes), {node.cluster: backend})


def test_quick_jobs_pass_slow_ones_that_came_before() -> None:
    given = scenario(day_of_work(), gpus=2)

    usual = rehearse(given)
    by_arrival = rehearse(replace(given, site=in_order_of_arrival(given.site)))

    assert usual.jct_s.mean < 0.75 * by_arrival.jct_s.mean
    assert usual.makespan_s == by_arrival.makespan_s
    assert usual.prediction is not None
    assert usual.prediction.count == 30


def test_waiting_jobs_learn_when_more_is_known_of_their_like() -> None:
    jobs = [traced(0, 60, 2, name="old"), *(traced(100, 500, 2, name="new") for _ in range(4))]
    given = scenario(jobs, gpus=2)
    simulation = begun(given)

    simulation.run(given.arrivals, until=Instant(550_000))
    before = simulation.record.jobs[JobId(5)].expected
    simulation.run((), until=Instant(1_150_000))
    after = simulation.record.jobs[JobId(5)].expected

    assert before is not None
    assert after is not None
    assert before > 700_000
    assert after < 600_000


def test_a_large_job_gets_room_though_nobody_has_a_limit() -> None:
    small = [traced(at, 100, 1, name="small") for at in range(0, 5_000, 25)]
    given = scenario([*small, traced(1_000, 100, 4, name="large", user="bob")])
    without_promises = replace(given.site, policy=Policy(backfill_depth=0, patience=Duration(0)))

    usual = rehearse(given)
    unprotected = rehearse(replace(given, site=without_promises))

    assert usual.wait_s.most < 1_000
    assert unprotected.wait_s.most > 3_000
