import pytest

from muster.doors.config.default import DEFAULT_SITE
from muster.model.cluster import Pool
from muster.model.rack import Rack
from muster.model.value import (
    DAY,
    HOUR,
    ClusterName,
    Duration,
    Instant,
    NodeId,
    PoolName,
    replace,
)
from muster.simulator.nodes import made
from muster.simulator.outages import (
    BadOutagesError,
    Failures,
    Interruptions,
    Outage,
    OutagePeriod,
    drawn,
    interruptions,
    outages_from,
)
from muster.simulator.rehearsal import Scenario, rehearse
from muster.simulator.run import Arrival
from muster.simulator.workload import Workload, checkpointing
from unit.simulator.given import scenario, traced

YEAR = OutagePeriod(begins_at=Instant(0), ends_at=Instant(365 * DAY))
NODES = tuple(made((Rack(nodes=40),), DEFAULT_SITE))


def test_a_table_and_json_say_the_same() -> None:
    table = outages_from("node,from,to\nn1,60,2m\nn2,1d,\n", Instant(5_000))
    json = outages_from(
        '[{"node": "n1", "from": 60, "to": "2m"}, {"node": "n2", "from": "1d"}]', Instant(5_000)
    )

    assert table == json
    assert table[0] == Outage(
        node=NodeId("n1"), begins_at=Instant(65_000), ends_at=Instant(125_000)
    )
    assert table[1].ends_at is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a,b\n1,2\n", "node,from,to"),
        ("node,from,to\nn1,,\n", "needs a `node` and a `from`"),
        ("node,from,to\nn1,5,5\n", "later than `from`"),
        ("node,from,to\nn1,soon,\n", "write seconds"),
        ("[1]", "write"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, hint: str) -> None:
    with pytest.raises(BadOutagesError, match=hint):
        outages_from(text, Instant(0))


def test_the_model_keeps_its_means_and_its_seed() -> None:
    model = Failures(mtbf=Duration(10 * DAY), repair=Duration(6 * HOUR))

    drawn_once = drawn(NODES, model, YEAR, 1)
    apart = 40 * 365 / len(drawn_once)
    down = [each.ends_at - each.begins_at for each in drawn_once if each.ends_at is not None]

    assert drawn(NODES, model, YEAR, 1) == drawn_once
    assert drawn(NODES, model, YEAR, 2) != drawn_once
    assert apart == pytest.approx(10.25, rel=0.1)
    assert sum(down) / len(down) == pytest.approx(6 * HOUR, rel=0.1)


def test_only_spot_nodes_are_taken_away() -> None:
    pool = NODES[0].pool
    spot_only = Interruptions(every=Duration(DAY))
    spot = {pool: Pool(name=pool, cluster=ClusterName("local"), spot=True)}
    steady = {pool: Pool(name=pool, cluster=ClusterName("local"))}

    assert interruptions(NODES, steady, spot_only, YEAR, 1) == []
    assert all(each.taken for each in interruptions(NODES, spot, spot_only, YEAR, 1))


def test_a_job_on_a_failed_node_starts_again_and_its_work_is_lost() -> None:
    outage = Outage(node=NodeId("n1"), begins_at=Instant(600_000), ends_at=Instant(900_000))

    report = rehearse(scenario([traced(0, 1_000, 4)], outages=(outage,)))

    assert report.completed == 1
    assert report.node_failures == report.restarts == 1
    assert report.lost_gpu_hours == pytest.approx(4 * 600 / 3_600)
    assert report.jct_s.mean == pytest.approx(900 + 1_000, abs=20)
    assert min(report.gpu_there.means) < 4


def test_an_outage_of_an_unknown_node_is_refused() -> None:
    outage = Outage(node=NodeId("n9"), begins_at=Instant(0))

    with pytest.raises(BadOutagesError, match="nodes are called n1"):
        rehearse(scenario([traced(0, 1)], outages=(outage,)))


def test_the_pool_of_a_rack_must_exist() -> None:
    nodes = made((Rack(nodes=2, gpus="1xT4-16GB", pool="local"),), DEFAULT_SITE)

    assert [node.pool for node in nodes] == [PoolName("local")] * 2


def test_a_node_that_will_be_taken_drains_and_its_jobs_save_their_work() -> None:
    taken = Outage(
        node=NodeId("n1"), begins_at=Instant(600_000), ends_at=Instant(900_000), taken=True
    )
    given = scenario([traced(0, 1_000, 2), traced(500, 10, 2)], outages=(taken,))
    saving = checkpointing(
        Workload(arrivals=tuple(given.arrivals), lasts=given.lasts), Duration(HOUR)
    )

    report = rehearse(replace(given, lasts=saving.lasts))
    late = rehearse(
        replace(given, lasts=saving.lasts, arrivals=(given.arrivals[0], _later(given, 490)))
    )

    # Announced at 480 s, it has saved by 510 s what it had done by 480 s; the rest is done again.
    assert report.lost_gpu_hours == pytest.approx(2 * (600 - 510) / 3_600)
    assert report.makespan_s == pytest.approx(900 + 1_000 - 480, abs=15)
    assert late.wait_s.most > 400


def _later(given: Scenario, at_s: int) -> Arrival:
    return replace(given.arrivals[1], at=Instant(1_000 * at_s))
