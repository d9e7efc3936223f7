"""The published protocol in small, and what ours does with the same jobs."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from bench._muri_anchor import srsf, srtf, tiresias
from bench._muri_ours import ours
from bench._muri_sharing import pace_of
from bench._muri_trace import SLOWER, TraceJob, folder, jobs_of
from bench.muri import figures_of
from muster.model.value import JobId

HEADINGS = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
    "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority"
)


def job(number: int, *, gpus: int = 64, at_s: float = 0.0, work_s: float = 100.0) -> TraceJob:
    return TraceJob(
        number=number,
        gpus=gpus,
        submit_s=at_s,
        iterations=work_s,
        iteration_s=1.0,
        model="bert",
        stages_s=(0.0, 0.0, 0.0),
        start_s=10,
    )


def test_the_shortest_goes_first_and_each_moment_costs_the_running_a_start() -> None:
    jobs = [job(0, work_s=1_000), job(1, at_s=100, work_s=50)]

    ended = srtf(jobs)

    # The long one had 90 s of progress when it was stopped, and 910 s to go after 150 s.
    assert ended == {1: 150.0, 0: 1_060.0}


def test_gpu_time_counts_where_service_is_meant() -> None:
    jobs = [job(0, gpus=64, work_s=100), job(1, gpus=8, work_s=200)]

    assert srtf(jobs)[0] < srtf(jobs)[1]
    assert srsf(jobs)[1] < srsf(jobs)[0]


def test_tiresias_lets_who_had_much_wait_for_who_comes() -> None:
    jobs = [job(0, work_s=1_000), job(1, at_s=500, work_s=20)]

    ended = tiresias(jobs)

    assert ended[1] == 520.0
    assert ended[0] > 1_020.0


def test_ours_lets_a_short_job_pass_a_long_one_without_knowing_durations() -> None:
    jobs = [job(0, work_s=100_000), job(1, at_s=50_000, work_s=60)]

    ended, restarts = ours(jobs)

    assert restarts == 1
    assert ended[1] == pytest.approx(50_070)
    # It saved what it did, and paid for two starts and the other's time.
    assert ended[0] == pytest.approx(100_000 + 10 + 70 + 10)


def of_model(number: int, stages_s: tuple[float, ...]) -> TraceJob:
    return replace(job(number, gpus=8, work_s=1_000), stages_s=stages_s)


def test_two_jobs_share_a_gpu_if_they_complement_each_other_and_not_if_they_are_alike() -> None:
    reader, thinker = (0.9, 0.1, 0.0), (0.1, 0.8, 0.1)
    unlike = [of_model(number, stages) for number, stages in enumerate([reader, thinker] * 8)]
    alike = [of_model(number, reader) for number in range(16)]

    shared, _ = ours(unlike, shares=True)
    apart, _ = ours(alike, shares=True)

    # A cycle of two takes as long as an iteration of one: they do not get in each other's way.
    assert max(shared.values()) == pytest.approx(1_010 + 1_000 * 0.015 / 1.015, rel=0.02)
    assert max(apart.values()) == pytest.approx(2_020)


def test_together_each_does_one_iteration_in_a_cycle() -> None:
    slow = replace(of_model(1, (0.9, 0.1, 0.0)), iteration_s=1.0 * SLOWER)
    quick = replace(of_model(2, (0.1, 0.3, 0.1)), iteration_s=0.5 * SLOWER)
    pace = pace_of({JobId(1): slow, JobId(2): quick})

    assert pace(JobId(2), frozenset({JobId(1)})) == 500
    assert pace(JobId(1), frozenset({JobId(2)})) == 1_000
    assert pace(JobId(1), frozenset()) == 1_000


def test_figures_are_the_mean_the_last_end_and_the_99th_of_100() -> None:
    jobs = [job(number) for number in range(100)]

    figures = figures_of(jobs, {number: float(number) for number in range(100)})

    assert (figures.jct_s, figures.makespan_s, figures.p99_s) == (49.5, 99.0, 99.0)


def test_a_trace_is_read_in_seconds_and_its_primed_form_comes_at_once(tmp_path: Path) -> None:
    lines = [HEADINGS, "7,8,60000,100,a2c,64,1,0,500,1,2,3,0", "8,1,0,10,bert,4,1,0,190,1,2,3,1"]
    (tmp_path / "trace1.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

    first, second = jobs_of("trace1", tmp_path)

    assert (first.gpus, second.gpus) == (1, 8)
    assert second.submit_s == 60.0
    assert second.work_s == pytest.approx(100 * 0.5 * 1.015)
    assert (first.start_s, second.start_s) == (10, 46)
    assert {each.submit_s for each in jobs_of("trace1_pr", tmp_path)} == {0.0}


def test_without_traces_it_says_who_publishes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_TRACES", raising=False)
    monkeypatch.delenv("TRACES", raising=False)

    with pytest.raises(match="Rivendile/Muri"):
        folder()
