import msgspec
import pytest

from muster.model.site import Site
from muster.model.value import PoolName, replace
from muster.simulator.rehearsal import NothingToSimulateError, Progress, rehearse
from muster.simulator.report import Report, spread
from muster.simulator.traces.traced import Outcome
from unit.simulator.given import scenario, traced, with_queues


def test_jobs_that_wait_for_each_other_have_the_times_that_one_can_count() -> None:
    jobs = [traced(0, 100, 4), traced(0, 100, 4), traced(50, 100, 4)]

    report = rehearse(scenario(jobs))

    assert report.completed == report.jobs == 3
    assert report.makespan_s == 300
    assert report.jct_s.mean == pytest.approx((100 + 200 + 250) / 3)
    assert report.wait_s.mean == pytest.approx((0 + 100 + 150) / 3)
    assert report.gpu_utilisation == pytest.approx(1)
    assert report.gpu_hours == pytest.approx(1_200 / 3_600)
    assert report.fragmented == 0


def test_half_of_the_gpus_are_half_the_utilisation() -> None:
    report = rehearse(scenario([traced(0, 100, 2)]))

    assert report.gpu_utilisation == pytest.approx(0.5)
    assert set(report.gpu_used.means) == {2}


def test_free_gpus_that_no_usual_task_can_take_are_fragments() -> None:
    """Two nodes of four: three are taken on each, and all tasks want three."""
    report = rehearse(scenario([traced(0, 100, 3), traced(0, 100, 3)], nodes=2))

    assert report.fragmented == pytest.approx(2 / 8)


def test_a_refused_job_is_counted_and_the_rest_goes_on() -> None:
    report = rehearse(scenario([traced(0, 10, 5), traced(0, 10, 4)]))

    assert (report.refused, report.completed) == (1, 1)


def test_how_jobs_ended_is_counted() -> None:
    jobs = [traced(0, 10), traced(0, 10, outcome=Outcome.FAILED)]

    report = rehearse(scenario(jobs))

    assert (report.completed, report.failed) == (1, 1)


def test_what_pools_cost_is_added_up() -> None:
    given = scenario([traced(0, 3_600, 2)])
    pools = {
        name: replace(pool, gpu_hour_micros=1_500_000) for name, pool in given.site.pools.items()
    }

    report = rehearse(replace(given, site=replace(given.site, pools=pools)))

    assert PoolName("local") in pools
    assert report.cost == pytest.approx(3)


def test_queues_are_measured_against_their_right() -> None:
    site: Site = with_queues(a=3, b=1)
    jobs = [traced(0, 100, queue=name) for name in "ab" for _ in range(40)]

    report = rehearse(scenario(jobs, site=site))

    a, b = (next(each for each in report.queues if each.path == name) for name in "ab")
    assert a.gpu_hours == pytest.approx(4_000 / 3_600)
    # While both want everything, a may have three of four GPUs; afterwards b has them all.
    assert max(a.entitled.means) == pytest.approx(3, rel=0.01)
    assert a.wait_s.mean < b.wait_s.mean
    assert 0.5 < report.fairness.min_by_max <= 1
    assert report.fairness.rho.count == 80


def test_a_trace_with_unknown_queues_gets_them_where_the_site_has_none_of_its_own() -> None:
    own = rehearse(scenario([traced(0, 10, queue="vc/x")]))
    other = rehearse(scenario([traced(0, 10, queue="vc/x")], site=with_queues(a=1)))

    assert [each.path for each in own.queues] == ["vc", "vc/x"]
    assert [each.path for each in other.queues] == ["default"]


def test_the_same_scenario_gives_the_same_report() -> None:
    jobs = [traced(7 * place, 50 + 13 * place % 90, 1 + place % 4) for place in range(60)]

    assert rehearse(scenario(jobs, nodes=2)) == rehearse(scenario(jobs, nodes=2))


def test_progress_is_reported() -> None:
    reported: list[Progress] = []

    rehearse(scenario([traced(place, 5) for place in range(300)]), reported.append)

    assert reported
    assert reported[-1].jobs == 300
    assert reported == sorted(reported, key=lambda each: each.ended)


def test_nothing_to_simulate_is_refused() -> None:
    with pytest.raises(NothingToSimulateError, match="jobs"):
        rehearse(scenario([]))


def test_percentiles_are_elements_of_the_list() -> None:
    found = spread(range(1, 201))

    assert (found.p50, found.p95, found.p99, found.most) == (101, 191, 199, 200)


def test_a_report_can_be_written_and_read() -> None:
    report = rehearse(scenario([traced(0, 10)]))

    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
