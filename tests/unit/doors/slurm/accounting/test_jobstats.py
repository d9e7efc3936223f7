import base64
import gzip
import json

from muster.doors.slurm.accounting.jobstats import NOTHING, PREFIX, SHORT, comment
from muster.model.efficiency import DeviceUse, JobReport, NodeUse
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    UserName,
    replace,
)

GIB = 2**30
REPORT = JobReport(
    job=JobId(17),
    attempt=1,
    user=UserName("ada"),
    queue=QueuePath("acme"),
    cluster=ClusterName("a"),
    since=Instant(0),
    until=Instant(600_000),
    is_over=True,
    devices=(
        DeviceUse(
            node=NodeId("n1"),
            device=DeviceId("GPU-1"),
            gpu_milli=1_000,
            held_ms=Duration(600_000),
            index=3,
            means={"busy": 934},
            memory_bytes=80 * GIB,
            memory_peak_bytes=12 * GIB,
        ),
    ),
    nodes=(
        NodeUse(
            node=NodeId("n1"),
            cpu_granted_milli=8_000,
            cpu_used_ms=Duration(1_200_000),
            memory_peak_bytes=3 * GIB,
            memory_granted_bytes=16 * GIB,
        ),
    ),
)


def test_the_comment_is_what_jobstats_decodes() -> None:
    text = comment(REPORT)

    assert text.startswith(PREFIX)
    found = json.loads(gzip.decompress(base64.b64decode(text[len(PREFIX) :])))
    assert found == {
        "gpus": 1,
        "total_time": 600.0,
        "nodes": {
            "n1": {
                "cpus": 8,
                "total_time": 1_200.0,
                "total_memory": 16 * GIB,
                "used_memory": 3 * GIB,
                "gpu_total_memory": {"3": 80 * GIB},
                "gpu_used_memory": {"3": 12 * GIB},
                "gpu_utilization": {"3": 93.4},
            }
        },
    }
    assert comment(REPORT) == text


def test_short_jobs_and_those_without_figures_say_so() -> None:
    assert comment(replace(REPORT, until=Instant(30_000))) == SHORT
    assert comment(replace(REPORT, devices=(), nodes=())) == NOTHING


def test_a_job_that_runs_has_no_comment_yet() -> None:
    assert comment(replace(REPORT, is_over=False)) == ""
    assert comment(None) == ""
