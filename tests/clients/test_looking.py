"""Clients that only look: at jobs that were, and at what the cluster has."""

import json
import sqlite3
from contextlib import closing

import pytest

from clients.desk import USER, Desk
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
)
from muster.stores.measured.base import Settled
from muster.stores.measured.sqlite import SqliteMeasured


def test_reportseff_tells_how_well_a_job_used_what_it_had(desk: Desk) -> None:
    # Spins for two seconds of CPU time, however many others want the cores.
    spin = "(ulimit -t 2; while :; do :; done) || true"
    busy = desk.slurm.submits(f"--wait -J busy -t 1 -o /dev/null --wrap '{spin}'")
    idle = desk.slurm.submits("--wait -J idle -t 1 -c 4 -o /dev/null --wrap 'sleep 1'")

    answer = desk.uses("reportseff", "--no-color", "--format=JobName,State,CPUEff", busy, idle)

    _, first, second = [line.split() for line in answer.out.splitlines()]
    assert first[:2] == ["busy", "COMPLETED"]
    assert 0 < float(first[2].rstrip("%")) <= 100
    assert second == ["idle", "COMPLETED", "---"]


def test_reportseff_reads_what_gpus_did(desk: Desk) -> None:
    """From AdminComment, where Jobstats keeps it: of a job whose report is in the store."""
    job = desk.slurm.submits("--wait -J trained -t 1 -c 4 -o /dev/null --wrap true")
    keeps(desk, job, busy_milli=900)

    answer = desk.uses("reportseff", "--no-color", "--format=JobName,CPUEff,GPUEff,GPUMem", job)

    assert answer.out.splitlines()[1].split() == ["trained", "50.0%", "90.0%", "25.0%"]


@pytest.mark.slow
def test_job_defense_shield_finds_who_leaves_gpus_idle(jobstats: Desk) -> None:
    """By those who make Jobstats, with its decoder: of a job that was measured from start to end.

    Jobstats says nothing of jobs that ran for less than a minute.
    """
    job = jobstats.slurm.submits("-t 2 --gres=gpu:1 -o /dev/null --wrap 'sleep 65'")
    measured = f"sacct -n -X -P -j {job} -o AdminComment | grep -q JS1:H"
    jobstats.uses("timeout", "240", "sh", "-c", f"until {measured}; do sleep 3; done")
    config = jobstats.folder / "shield.yaml"
    config.write_text(SHIELD.format(folder=jobstats.folder))

    answer = jobstats.uses("job_defense_shield", f"--config-file={config}", "--zero-util-gpu-hours")

    rows = [line.split() for line in answer.out.splitlines()]
    # Its number, who, hours, how many jobs, which, and how many mails were sent.
    assert [row[1:2] + row[3:5] for row in rows if USER in row] == [[USER, "1", job]]


SHIELD = """
violation-logs-path: {folder}
email-files-path: {folder}
email-domain-name: "@example.org"
sender: hpc@example.org
reply-to: hpc@example.org
report-emails: [hpc@example.org]
zero-util-gpu-hours-1:
  cluster: local
  partitions: ["*"]
  min_run_time: 0
  gpu_hours_threshold_user: 0
  gpu_hours_threshold_admin: 0
  email_file: idle.txt
"""


def keeps(desk: Desk, job: str, busy_milli: int) -> None:
    """A report of ten minutes, as one is kept of a job that ran for so long."""
    report = JobReport(
        job=JobId(int(job)),
        attempt=1,
        user=UserName(USER),
        queue=QueuePath("default"),
        cluster=ClusterName("local"),
        since=Instant(0),
        until=Instant(600_000),
        is_over=True,
        devices=(
            DeviceUse(
                node=NodeId("n1"),
                device=DeviceId("GPU-1"),
                gpu_milli=1_000,
                held_ms=Duration(600_000),
                index=0,
                means={"busy": busy_milli},
                memory_bytes=80 * 2**30,
                memory_peak_bytes=20 * 2**30,
            ),
        ),
        nodes=(
            NodeUse(
                node=NodeId("n1"),
                cpu_granted_milli=4_000,
                cpu_used_ms=Duration(1_200_000),
                memory_peak_bytes=2**30,
                memory_granted_bytes=4 * 2**30,
            ),
        ),
    )
    store = SqliteMeasured(desk.slurm.root / "home" / "telemetry.db")
    store.keep(Settled(reports=(report,)))
    store.close()


def test_slurm2sql_makes_a_database_of_the_accounting(desk: Desk) -> None:
    job = desk.slurm.submits("--wait -J kept -t 5 --gres=gpu:2 -c 3 -o /dev/null --wrap true")

    desk.uses("slurm2sql", "kept.db", "--", "-S", "now-1hour")

    columns = "JobName, State, NCPUS, Partition, ExitCode, Timelimit"
    with closing(sqlite3.connect(desk.folder / "kept.db")) as kept:
        row = kept.execute(f"select {columns} from slurm where JobID = ?", (job,)).fetchone()  # noqa: S608  a constant
        gpus = kept.execute("select NGpus from eff where JobID = ?", (job,)).fetchone()
        steps = kept.execute("select JobID from slurm where JobIDnostep = ?", (job,)).fetchall()
    assert row == ("kept", "COMPLETED", 3, "local", 0, 300)
    assert gpus == (2,)
    assert steps == [(job,), (f"{job}.batch",)]


def test_clusterscope_knows_the_cluster(desk: Desk) -> None:
    version = desk.uses("cscope", "info").out
    gpus = desk.uses("cscope", "gpus").out
    fits = desk.uses(*"cscope job-gen task slurm --partition local --gpus-per-task 1".split()).out

    assert version == "Cluster Name: local\nSlurm Version: 22.05.8\n"
    assert gpus.splitlines()[1] == "a100, 4, nvidia, local"
    # A quarter of a node for one of its four GPUs.
    assert json.loads(fits)["cpus_per_task"] == 8
    assert json.loads(fits)["mem_gb"] == 64
