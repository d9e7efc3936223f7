"""A program named as apptainer is, on a real Slurm: it notes what it is told, and becomes that."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.engine import Doing
from contracts.backends.given import run_of
from contracts.backends.real import clock
from contracts.backends.slurm_engine import SlurmEngine
from muster.backends.base import Run
from muster.backends.slurm.images import Containers
from muster.backends.slurm.submission import Manner
from muster.model.job import Exited, TaskGroup
from muster.model.launch import Launch, Runs
from muster.model.value import replace

IMAGE = "nvcr.io#nvidia/pytorch:24.01-py3"
TOOL = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2 on $SLURMD_NODENAME" >> {}
shift 2
INSIDE=yes exec "$@"
"""
SAYS = 'echo "$INSIDE $SLURMD_NODENAME $*" >> {}'


@pytest.fixture
def slurm(lab: Lab) -> Iterator[SlurmEngine]:
    home = Path(tempfile.mkdtemp(prefix="muster-contract-"))
    home.chmod(0o755)
    engine = SlurmEngine(home, lab, Manner(containers=Containers.APPTAINER))
    tool = home / "apptainer"
    tool.write_text(TOOL.format(home / "images"))
    tool.chmod(0o755)
    yield engine
    engine.ends()
    shutil.rmtree(home)


def begun(slurm: SlurmEngine, launch: Launch, nodes: int) -> Run:
    job = slurm.begins(Doing(code=0), None).job
    job = replace(job, spec=replace(job.spec, groups=(TaskGroup(count=nodes),)))
    launch = replace(
        launch,
        image=IMAGE,
        workdir=str(slurm.home),
        env={"PATH": f"{slurm.home}:/usr/bin:/bin"},
    )
    run = run_of(job, clock(), slurm.nodes()[:nodes], launch)
    slurm.does(run)
    return run


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("begins", "nodes", "tasks"),
    [("script", 1, 1), ("script", 2, 1), ("argv", 1, 1), ("argv", 2, 2)],
)
def test_nothing_of_a_job_runs_outside_of_its_image(
    slurm: SlurmEngine, begins: str, nodes: int, tasks: int
) -> None:
    said = SAYS.format(slurm.home / "said")
    launch = Launch(argv=("/bin/sh", "-c", said, "sh", "it's so"), runs=Runs.EVERY_TASK)
    if begins == "script":
        launch = Launch(argv=("it's so",), script=f"#!/bin/sh\n{said}\n", runs=Runs.FIRST_TASK)

    run = begun(slurm, launch, nodes)

    end = slurm.end_of(run).why
    assert end == Exited(code=0), [each.read_text() for each in slurm.home.glob("*.out")]
    where = [f"node{at}" for at in range(1, tasks + 1)]
    image = "docker://nvcr.io/nvidia/pytorch:24.01-py3"
    assert Counter(lines(slurm.home / "images")) == Counter(f"{image} on {each}" for each in where)
    assert Counter(lines(slurm.home / "said")) == Counter(f"yes {each} it's so" for each in where)
