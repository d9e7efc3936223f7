"""What a real Slurm says that jobs use: asked once for all of them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.engine import Doing
from contracts.backends.real import clock
from contracts.backends.slurm_engine import KEEPS_LONG, NAME, SlurmEngine, slurm_lab
from muster.backends.base import Run
from muster.backends.slurm.listing import Key
from muster.backends.slurm.measuring import Measuring, Running
from muster.model.event import JobStarted
from muster.model.value import Duration, replace

GATHERS = {"JobAcctGatherType": "jobacct_gather/linux", "JobAcctGatherFrequency": "task=1"}


@pytest.fixture(scope="module", params=["linux", "none"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    gathers = GATHERS if request.param == "linux" else {}
    with slurm_lab(replace(KEEPS_LONG, settings={**KEEPS_LONG.settings, **gathers})) as found:
        yield found


@pytest.fixture
def slurm(lab: Lab) -> Iterator[SlurmEngine]:
    home = Path(tempfile.mkdtemp(prefix="muster-contract-"))
    home.chmod(0o755)
    engine = SlurmEngine(home, lab)
    yield engine
    engine.ends()
    shutil.rmtree(home)


def test_jobs_that_run_are_measured_where_the_cluster_gathers_that(
    slurm: SlurmEngine, lab: Lab
) -> None:
    runs = [slurm.begins(Doing(lasts=Duration(60_000)), None) for _ in range(2)]
    for run in runs:
        slurm.backend.do(run)
    slurm.until(lambda: sum(isinstance(each, JobStarted) for each in slurm.heard) == len(runs))
    measuring = Measuring(NAME, slurm.commands, clock)
    attempts = [
        Running(handle=handle_of(slurm, lab, run), allocation=run.allocation) for run in runs
    ]
    gathers = "jobacct_gather/linux" in lab.ask("scontrol", "show", "config")

    def has_all() -> bool:
        measuring.ask_once(attempts)
        found = measuring.samples(clock()).jobs
        return not gathers or len(found) == len(runs)

    slurm.until(has_all)

    found = measuring.samples(clock()).jobs
    assert [each.job for each in found] == ([run.job.id for run in runs] if gathers else [])
    assert all((each.memory_peak_bytes or 0) > 0 for each in found)


def handle_of(slurm: SlurmEngine, lab: Lab, run: Run) -> str:
    """What Slurm calls an attempt."""
    wanted = Key(site=slurm.home.name, job=run.job.id, attempt=run.allocation.attempt).mark
    rows = lab.ask("squeue", "-h", "-t", "all", "-O", "JobID:20,Comment:80").splitlines()
    return next(row.split()[0] for row in rows if row.rstrip().endswith(wanted))
