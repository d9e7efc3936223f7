"""A slice of a trace in compressed time, and what is measured of its replay."""

from collections.abc import Mapping
from datetime import datetime
from math import inf

import pytest

from bench._jct_queue import HOUR_S
from bench._jct_trace import Park, Row
from bench._replay_measured import Ran, Seen, csv_lines, measured, ran_by, told_by
from bench._replay_pretend import OTHERS, by, ours
from bench._replay_slice import Compression, ReplayedJob, Slice, accounts, sbatch_words, slice_of
from bench.slurm_replay import rows

HALF_MINUTE = Compression(jobs=3, hour_s=30.0, load=1.0, longest_s=8 * HOUR_S)


def park(*jobs: tuple[int, int, int]) -> Park:
    """Jobs as (at, lasts, gpus), in seconds; as many before them, which the slice leaves alone."""
    before = [Row(number, 0, 1, 1, "p", "u") for number in range(len(jobs))]
    later = [Row(len(jobs) + number, *job, "p", "u") for number, job in enumerate(jobs)]
    return Park("p", 2, (*before, *later))


def replayed(number: int, at_s: float = 0.0, lasts_s: float = 10.0, gpus: int = 8) -> ReplayedJob:
    return ReplayedJob(
        number=number,
        user="u",
        at_s=at_s,
        lasts_s=lasts_s,
        limit_minutes=1,
        nodes=1,
        gpus_each=gpus,
    )


def seen(ran: Mapping[int, tuple[float, float]], told_s: Mapping[int, float]) -> Seen:
    found = {number: Ran(started_s=begin, ended_s=end) for number, (begin, end) in ran.items()}
    return Seen(ran=found, told_s=told_s)


def test_a_slice_begins_in_the_middle_and_leaves_out_what_would_outlast_it() -> None:
    trace = park((0, 60, 8), (10, 9 * HOUR_S, 8), (20, 60, 8), (30, 60, 8), (40, 60, 8))

    found = slice_of(trace, HALF_MINUTE)

    assert [job.number for job in found.jobs] == [5, 7, 8]
    assert found.left_out == 1


def test_arrivals_are_drawn_together_until_the_load_is_right() -> None:
    trace = park((100, HOUR_S, 16), (400, HOUR_S, 16), (1_100, HOUR_S, 16))

    found = slice_of(trace, HALF_MINUTE)

    assert [job.lasts_s for job in found.jobs] == [30, 30, 30]
    assert [job.at_s for job in found.jobs] == pytest.approx([0, 27, 90])
    assert found.span_s * found.gpus == pytest.approx(3 * 30 * 16)


def test_limits_are_those_of_users_in_whole_minutes() -> None:
    trace = park((0, 60, 1), (10, HOUR_S, 1), (20, 4 * HOUR_S, 1))

    found = slice_of(trace, HALF_MINUTE)

    assert [job.limit_minutes for job in found.jobs] == [1, 2, 6]


def test_a_gang_has_equal_parts_on_as_few_nodes_as_hold_it() -> None:
    found = slice_of(park((0, 60, 3), (10, 60, 16), (20, 60, 12)), HALF_MINUTE)

    assert [(job.nodes, job.gpus_each) for job in found.jobs] == [(1, 3), (2, 8), (2, 6)]


def test_both_systems_are_asked_in_the_same_words() -> None:
    words = sbatch_words(replayed(7, lasts_s=1.5), script="job.sh", output="out/7")

    assert words == (
        *("sbatch", "--parsable", "--nodes=1", "--ntasks-per-node=1", "--gres=gpu:8", "--time=1"),
        *("--job-name=job7", "--chdir=/", "--output=out/7", "job.sh", "1.500"),
    )


def test_users_share_accounts_where_there_are_too_few() -> None:
    assert accounts(["c", "a", "b"], ["bin", "lp"]) == {"a": "bin", "b": "lp", "c": "bin"}


def test_a_script_that_has_not_ended_has_not_run() -> None:
    assert ran_by("", 100.0) is None
    assert ran_by("101.5\n", 100.0) is None
    assert ran_by("101.5\n103.5\n", 100.0) == Ran(started_s=1.5, ended_s=3.5)


def test_only_dates_count_as_told() -> None:
    date = datetime.fromisoformat("2026-11-18T01:42:10").astimezone().timestamp()

    told = told_by("5|2026-11-18T01:42:10\n6|N/A\n7|Unknown\n", date - 60)

    assert told == {5: 60}


def test_figures_count_from_the_arrival() -> None:
    part = Slice(nodes=1, jobs=(replayed(1), replayed(2, at_s=5.0)), left_out=0)
    ran = {1: (0.0, 10.0), 2: (15.0, 25.0)}

    found = measured(part, seen(ran, {2: 20.0}), hour_s=30.0)

    assert (found.mean_jct_s, found.p99_jct_s) == (15, 20)
    assert (found.mean_wait_s, found.longest_wait_s) == (5, 10)
    assert found.mean_slowdown == 1.5
    assert found.utilisation == 1.0
    assert (found.waited, found.dated) == (1, 1.0)
    assert (found.date_error, found.date_error_s) == (0.5, 5.0)


def test_in_pretend_time_only_jobs_take_time() -> None:
    part = Slice(nodes=1, jobs=(replayed(1), replayed(2, at_s=5.0)), left_out=0)
    expected = {1: Ran(started_s=0, ended_s=10), 2: Ran(started_s=10, ended_s=20)}

    assert ours(part).ran == expected
    assert [by(policy, part).ran for policy in OTHERS.values()] == [expected] * 3


def test_no_date_is_worse_than_any() -> None:
    part = Slice(nodes=1, jobs=(replayed(1), replayed(2, at_s=5.0)), left_out=0)
    ran = {1: (0.0, 10.0), 2: (15.0, 25.0)}
    silent = measured(part, seen(ran, {}), hour_s=30.0)
    far_off = measured(part, seen(ran, {2: 90.0}), hour_s=30.0)

    verdicts = {row["metric"]: row["verdict"] for row in rows(silent, far_off)}

    assert silent.date_error == inf
    assert verdicts["error of the first date, part of the wait"] == "BEHIND"
    assert verdicts["first date told, part of jobs"] == "BEHIND"
    assert verdicts["mean JCT, s"] == "ahead"


def test_each_job_has_a_line_with_what_both_did() -> None:
    both = {"slurm": seen({1: (1.0, 11.0)}, {1: 2.0}), "muster": seen({1: (0.0, 10.0)}, {})}

    lines = csv_lines([replayed(1)], both)

    assert lines[0].endswith("muster_told,slurm_started,slurm_ended,slurm_told")
    assert lines[1] == "1,u,0.000,10.000,1,1,8,0.000,10.000,,1.000,11.000,2.000"
