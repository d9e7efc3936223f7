"""The policies that ours is measured against, and how traces are sized and judged."""

import gzip
from pathlib import Path

import pytest

from bench._jct_measured import measured
from bench._jct_ours import by_service
from bench._jct_queue import (
    conservative,
    easy,
    exact_limit,
    fifo,
    limit_of,
    multifactor,
    no_limit,
    passing,
    sjf,
    skipping,
)
from bench._jct_trace import Park, Row, folder, itp
from muster.model.policy import Aim

HOUR_S = 3_600


def park(*rows: tuple[int, int, int], nodes: int = 1) -> Park:
    """Jobs as (at, lasts, gpus), in seconds."""
    made = (Row(number, *row, park="p") for number, row in enumerate(rows))
    return Park("p", nodes, tuple(made))


def test_nobody_passes_the_first_that_does_not_fit() -> None:
    jobs = park((0, 100, 4), (1, 50, 8), (2, 10, 1))

    assert fifo(jobs) == {0: 0, 1: 100, 2: 150}


def test_the_oracle_lets_the_shortest_go_first() -> None:
    jobs = park((0, 100, 8), (1, 500, 8), (2, 10, 8))

    assert sjf(jobs) == {0: 0, 2: 100, 1: 110}


def test_jobs_of_several_nodes_take_whole_ones() -> None:
    jobs = park((0, 100, 1), (0, 50, 16), (0, 10, 8), nodes=3)

    assert fifo(jobs) == {0: 0, 1: 0, 2: 50}


def test_users_ask_for_more_time_than_they_need() -> None:
    assert limit_of(Row(0, 0, 10, 1, "p")) == HOUR_S
    assert limit_of(Row(0, 0, HOUR_S, 1, "p")) == 4 * HOUR_S


def test_backfill_does_not_delay_the_first_in_line() -> None:
    long = 10 * HOUR_S
    jobs = park((0, long, 4), (1, 100, 8), (2, 60, 4), (3, 30 * HOUR_S, 4))

    started = multifactor(jobs)

    assert started[2] == 2
    assert started[1] == long
    assert started[3] > long


def test_easy_lets_a_job_pass_that_ends_before_the_reservation() -> None:
    jobs = park((0, 100, 4), (1, 50, 8), (2, 98, 4), (3, 99, 4))

    assert easy(jobs, exact_limit) == {0: 0, 1: 100, 2: 2, 3: 150}


def test_easy_lets_a_long_job_pass_on_what_the_reservation_leaves_over() -> None:
    jobs = park((0, 100, 12), (1, 50, 12), (2, 900, 4), (3, 900, 4), nodes=2)

    assert easy(jobs, exact_limit) == {0: 0, 1: 100, 2: 2, 3: 150}


def test_easy_reserves_the_nodes_that_are_fullest_now() -> None:
    jobs = park((0, 1, 8), (0, 100, 8), (0, 100, 8), (2, 50, 16), (3, 900, 8), nodes=3)

    assert easy(jobs, exact_limit) == {0: 0, 1: 0, 2: 0, 3: 100, 4: 3}


def test_easy_delays_the_second_in_line_and_conservative_backfill_does_not() -> None:
    jobs = park((0, 100, 12), (1, 100, 8), (2, 10, 16), (3, 300, 4), nodes=2)

    assert easy(jobs, exact_limit) == {0: 0, 1: 100, 2: 303, 3: 3}
    assert conservative(jobs, exact_limit) == {0: 0, 1: 100, 2: 200, 3: 210}


def test_without_limits_no_job_has_a_date_and_everything_that_fits_passes() -> None:
    jobs = park((0, 100, 4), (1, 50, 8), (2, 900, 4), (3, 10, 2))
    arrived = skipping(jobs, lambda row: row.at_s)

    assert easy(jobs, no_limit) == conservative(jobs, no_limit) == arrived


def test_a_slurm_site_takes_a_job_without_a_limit_to_need_a_year() -> None:
    jobs = park((0, 100, 8), (1, 50, 16), (2, 10, 8), nodes=2)

    assert multifactor(jobs, no_limit) == {0: 0, 1: 100, 2: 150}


def test_passing_lets_a_job_start_beside_a_gang_that_does_not_fit() -> None:
    jobs = park((0, 100, 8), (1, 10, 16), (2, 50, 8), nodes=2)

    assert passing(jobs)[2] == 2
    assert sjf(jobs)[2] == 110


def test_least_service_learns_nothing_and_lets_short_jobs_through() -> None:
    jobs = park((0, 40 * HOUR_S, 8), (10 * HOUR_S, 60, 8))

    outcome = by_service(jobs, Aim.COMPLETION)

    assert outcome.restarts == 1
    assert outcome.ended == {1: 10 * HOUR_S + 60, 0: 40 * HOUR_S + 60 + 30}


def test_slowdowns_are_compared_between_virtual_clusters() -> None:
    rows = (Row(0, 0, 600, 1, "a"), Row(1, 0, 600, 1, "b"))

    even = measured(rows, {0: 1_200, 1: 1_200})
    uneven = measured(rows, {0: 600, 1: 6_000})

    assert even.fairness == pytest.approx(1.0)
    assert uneven.fairness < even.fairness
    assert (even.jct_s, even.queue_s, even.slowdown) == (1_200, 600, 2.0)


def test_a_cluster_of_unknown_size_fits_its_load_and_its_largest_job(tmp_path: Path) -> None:
    lines = ["cluster,submission_time_s,duration_s,num_gpu", "1,100,50,64", "1,1100,8000,8"]
    where = tmp_path / "itp_microsoft2021"
    where.mkdir()
    text = "\n".join(lines).encode()
    (where / "itp_raw_10clusters.csv.gz").write_bytes(gzip.compress(text))

    (found,) = itp(tmp_path)

    # 67,200 GPU-seconds in 1,000 s at a load of 80 %: 84 GPUs.
    assert found.nodes == 11
    assert [row.at_s for row in found.rows] == [0, 1_000]


def test_without_traces_it_says_who_publishes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_TRACES", raising=False)
    monkeypatch.delenv("TRACES", raising=False)

    with pytest.raises(match="HeliosData"):
        folder()
