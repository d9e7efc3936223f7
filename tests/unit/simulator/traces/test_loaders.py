"""Every format of trace, read from a small sample of our own making."""

import gzip
import zipfile
from pathlib import Path

import pytest

from muster.model.errors import MusterError
from muster.model.gpu import MpsShare
from muster.model.job import Cancelled, Exited
from muster.model.value import Duration, GpuModel, Instant, replace
from muster.simulator.traces import helios, itp, kubernetes, muri, openb, philly, sacct, swf
from muster.simulator.traces.arrivals import arrivals, behaviour, spread
from muster.simulator.traces.files import TraceAbsentError, folder, lines, rows
from muster.simulator.traces.moments import clock_span, kubernetes_mib, memory_mib
from muster.simulator.traces.traced import Outcome, TracedJob

SAMPLES = Path(__file__).parents[3] / "samples" / "traces"
JANUARY = 1_704_067_200_000
OCTOBER = 1_506_816_000_000


def test_openb_has_shares_whole_gpus_and_pods_without() -> None:
    share, whole, without = openb.jobs(rows(lines(SAMPLES / "openb_pods.csv")))

    assert (share.gpus, share.gpu_milli, share.duration) == (1, 250, Duration(90_000))
    assert (whole.gpus, whole.gpu_milli, whole.models) == (8, 1_000, ("V9", "V7"))
    assert (whole.outcome, whole.started_at) == (Outcome.FAILED, Instant(40_000))
    assert (without.gpus, without.duration) == (0, None)


def test_openb_has_nodes() -> None:
    first, second = openb.nodes(rows(lines(SAMPLES / "openb_nodes.csv")))

    assert (first.gpus, first.model, first.cpu_milli) == (8, "V7", 96_000)
    assert (second.gpus, second.model) == (0, "")


def test_philly_is_read_in_utc() -> None:
    first, second = philly.jobs(rows(lines(SAMPLES / "philly.csv")))

    assert first.submitted_at == OCTOBER + 10_000
    assert (first.gpus, first.queue, second.duration) == (8, "aaa111", Duration(5_000))


def test_the_whole_of_philly_joins_the_attempts_of_a_job() -> None:
    killed, never_ran = philly.original(lines(SAMPLES / "philly_original.json"))

    assert (killed.duration, killed.gpus) == (Duration(180_000), 3)
    assert (killed.outcome, killed.started_at) == (Outcome.CANCELLED, OCTOBER + 60_000)
    assert (never_ran.duration, never_ran.gpus) == (None, 0)


def test_helios_has_one_task_on_each_node() -> None:
    (job,) = helios.jobs(rows(lines(SAMPLES / "helios.csv")))

    assert (job.tasks, job.gpus, job.cpu_milli) == (2, 8, 32_000)
    assert (job.queue, job.duration) == ("vcA", Duration(60_000))


def test_a_slice_of_helios_counts_in_microseconds() -> None:
    (job,) = helios.jobs(rows(lines(SAMPLES / "helios_slice.csv")))

    assert (job.submitted_at, job.duration) == (Instant(2_500), Duration(30_000))
    assert (job.tasks, job.gpus, job.outcome) == (2, 8, Outcome.CANCELLED)


def test_itp_has_a_queue_for_each_cluster() -> None:
    (job,) = itp.jobs(rows(lines(SAMPLES / "itp.csv")))

    assert (job.submitted_at, job.duration) == (Instant(100_000), Duration(20_000))
    assert (job.gpus, job.queue) == (4, "cluster3")


def test_muri_counts_in_milliseconds_and_its_primed_form_begins_at_once() -> None:
    (job,) = muri.jobs(rows(lines(SAMPLES / "muri.csv")))

    assert (job.submitted_at, job.duration, job.gpus) == (Instant(9_000), Duration(70_000), 2)
    assert list(muri.all_at_once([job])) == [replace(job, submitted_at=Instant(0))]


def test_swf_knows_what_was_asked_and_what_is_missing() -> None:
    ran, cancelled = swf.jobs(lines(SAMPLES / "workload.swf"))

    assert (ran.tasks, ran.memory_mib, ran.limit) == (8, 1_024, Duration(200_000))
    assert (ran.started_at, ran.user, ran.queue) == (Instant(15_000), "3", "2")
    assert (cancelled.duration, cancelled.limit) == (None, None)
    assert cancelled.outcome is Outcome.CANCELLED


def test_sacct_spreads_a_job_over_its_nodes_and_leaves_steps_out() -> None:
    trained, tried = sacct.jobs(lines(SAMPLES / "sacct.txt"))

    assert (trained.tasks, trained.gpus, trained.models) == (2, 4, ("a100",))
    assert (trained.cpu_milli, trained.memory_mib) == (32_000, 262_144)
    assert (trained.submitted_at, trained.limit) == (JANUARY, Duration(7_200_000))
    assert (tried.duration, tried.limit, tried.memory_mib) == (None, None, 500)
    assert tried.outcome is Outcome.CANCELLED


def test_kubernetes_takes_the_last_state_and_a_workload_instead_of_its_pods() -> None:
    workload, pod = kubernetes.jobs(lines(SAMPLES / "kubernetes.jsonl"))

    assert (workload.name, workload.tasks, workload.gpus) == ("team/w1", 4, 2)
    assert (workload.cpu_milli, workload.memory_mib, workload.models) == (8_000, 65_536, ("H100",))
    assert (workload.queue, workload.duration) == ("q1", Duration(60_000))
    assert (pod.name, pod.gpus, pod.memory_mib) == ("other/alone", 1, 954)
    assert (pod.duration, pod.outcome) == (Duration(5_000), Outcome.FAILED)


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [("1-02:03:04", 93_784_000), ("02:03", 123_000), ("2-0", 172_800_000), ("UNLIMITED", None)],
)
def test_spans_are_read_as_slurm_writes_them(text: str, span_ms: int | None) -> None:
    assert clock_span(text) == span_ms


def test_memory_is_read_as_each_writes_it() -> None:
    assert [memory_mib(text) for text in ("64G", "512Mi", "1000", "2048K")] == [
        65_536,
        512,
        1_000,
        2,
    ]
    assert [kubernetes_mib(text) for text in ("1Gi", "1048576", "1G")] == [1_024, 1, 954]


def test_files_are_read_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with gzip.open(tmp_path / "packed.csv.gz", "wt", encoding="utf-8") as packed:
        packed.write("a,b\n1,2\n")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("inside.csv", "a,b\n1,2\n")

    for name in ("plain.csv", "packed.csv.gz", "archive.zip"):
        assert list(rows(lines(tmp_path / name))) == [{"a": "1", "b": "2"}]


def test_where_a_trace_is_absent_the_error_says_who_publishes_it(tmp_path: Path) -> None:
    with pytest.raises(TraceAbsentError, match="Alibaba"):
        list(lines(tmp_path / "openb" / "openb_pod_list_default.csv.gz"))


def test_without_a_folder_the_error_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_TRACES", raising=False)

    with pytest.raises(MusterError, match="MUSTER_TRACES=folder"):
        folder()


def test_a_trace_becomes_arrivals_in_order_without_jobs_that_never_ran() -> None:
    late = TracedJob(name="late", submitted_at=Instant(9), duration=Duration(5), gpus=1)
    share = TracedJob(
        name="share",
        submitted_at=Instant(1),
        duration=Duration(5),
        gpus=1,
        gpu_milli=250,
        models=(GpuModel("V7"), GpuModel("V7")),
    )
    never = TracedJob(name="never", submitted_at=Instant(0))

    first, second = arrivals([late, share, never])

    assert (first.at, second.at) == (Instant(1), Instant(9))
    gpus = first.spec.groups[0].each.gpus
    assert gpus is not None
    assert (gpus.slice, gpus.models) == (MpsShare(milli=250), ("V7",))


def test_a_fate_is_as_long_as_in_the_trace_and_ends_the_same_way() -> None:
    job = TracedJob(name="job", submitted_at=Instant(0), duration=Duration(5), user="ann")

    assert behaviour(job).work == Duration(5)
    assert behaviour(job).end == Exited(code=0)
    assert behaviour(replace(job, outcome=Outcome.FAILED)).end == Exited(code=1)
    assert isinstance(behaviour(replace(job, outcome=Outcome.CANCELLED)).end, Cancelled)


def test_a_job_larger_than_a_node_is_spread_over_equal_tasks() -> None:
    job = TracedJob(name="job", submitted_at=Instant(0), gpus=12, cpu_milli=12_000)

    wide = spread(job, 8)

    assert (wide.tasks, wide.gpus, wide.cpu_milli) == (2, 6, 6_000)
    assert spread(replace(job, gpus=8), 8).tasks == 1
