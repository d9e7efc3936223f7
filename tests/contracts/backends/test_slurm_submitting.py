"""One attempt that Slurm cannot be given at all costs that attempt, and nobody else's."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.engine import Doing
from contracts.backends.slurm_engine import SlurmEngine
from muster.backends.base import Run
from muster.backends.notes import Note, Notes
from muster.backends.slurm.listing import Key
from muster.model.job import Exited, LaunchFailed
from muster.model.value import replace

LONGER_THAN_AN_ARGUMENT = "x" * 200_000


@pytest.fixture
def slurm(lab: Lab) -> Iterator[SlurmEngine]:
    home = Path(tempfile.mkdtemp(prefix="muster-contract-"))
    home.chmod(0o755)
    engine = SlurmEngine(home, lab)
    yield engine
    engine.ends()
    shutil.rmtree(home)


def named(run: Run, name: str) -> Run:
    return replace(run, job=replace(run.job, spec=replace(run.job.spec, name=name)))


def was_noted(slurm: SlurmEngine, run: Run) -> None:
    """A controller was killed after it noted the attempt, and before it submitted it."""
    note = Note(
        job=run.job.id,
        attempt=run.allocation.attempt,
        user=run.job.spec.user,
        nodes=tuple(each.node for each in run.allocation.placements),
        began_at=slurm.now(),
    )
    slurm.leaves()
    Notes(slurm.home / "notes").keep(note)
    slurm.reopens(run)


def test_a_variable_that_no_process_can_have_fails_its_job_alone(slurm: SlurmEngine) -> None:
    run = slurm.begins(Doing(code=0), None)
    long = replace(run.launch, env={"LONG": LONGER_THAN_AN_ARGUMENT})

    slurm.does(replace(run, launch=long))

    assert isinstance(slurm.end_of(run).why, LaunchFailed)
    slurm.passes()


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_one_sent_again_that_cannot_be_submitted_fails_alone(slurm: SlurmEngine, name: str) -> None:
    run = named(slurm.begins(Doing(code=0), None), name)
    was_noted(slurm, run)

    slurm.does(run)

    assert isinstance(slurm.end_of(run).why, LaunchFailed)
    slurm.passes()


def test_a_mark_that_another_user_forged_stands_for_no_attempt(
    slurm: SlurmEngine, lab: Lab
) -> None:
    run = slurm.begins(Doing(code=0), None)
    mark = Key(site=slurm.home.name, job=run.job.id, attempt=run.allocation.attempt).mark
    options = ("--parsable", "--uid=nobody", "--chdir=/", "-o", "/dev/null", f"--comment={mark}")
    forged = lab.ask("sbatch", *options, "--wrap", "sleep 600").strip()
    try:
        slurm.does(run)

        assert slurm.end_of(run).why == Exited(code=0)
        assert slurm.times_run(run) == 1
        assert lab.ask("squeue", "-h", "-j", forged, "-o", "%T").strip() == "RUNNING"
    finally:
        lab.ask("scancel", forged)
