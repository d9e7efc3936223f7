"""Parts of GPUs and switches of a real Slurm: seen, asked for in its words, and given."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.engine import Doing
from contracts.backends.slurm_engine import KEEPS_LONG, SlurmEngine, slurm_lab
from muster.backends.base import Run
from muster.backends.slurm.listing import Key
from muster.model.event import JobStarted
from muster.model.gpu import Mig, Slice, TimeShare
from muster.model.job import Exited
from muster.model.placement import DeviceShare
from muster.model.value import Duration, replace

INSTANCE = "gpu:a100_1g.5gb"
LOOK = replace(KEEPS_LONG, gres={INSTANCE: 2, "shard": 8}, has_switches=True)


@pytest.fixture(scope="module")
def parted() -> Iterator[Lab]:
    with slurm_lab(look=LOOK) as found:
        yield found


@pytest.fixture
def slurm(parted: Lab) -> Iterator[SlurmEngine]:
    home = Path(tempfile.mkdtemp(prefix="muster-contract-"))
    home.chmod(0o755)
    engine = SlurmEngine(home, parted)
    yield engine
    engine.ends()
    shutil.rmtree(home)


def on(slurm: SlurmEngine, run: Run, device: int, *slices: Slice | None) -> Run:
    """The same attempt with these parts of a device of its node."""
    (placement,) = run.allocation.placements
    node = slurm.nodes()[0]
    shares = tuple(DeviceShare(device=node.devices[device].id, slice=each) for each in slices)
    placed = replace(placement, devices=shares)
    return replace(run, allocation=replace(run.allocation, placements=(placed,)))


def has(slurm: SlurmEngine, lab: Lab, run: Run) -> str:
    """What Slurm gave an attempt, which may be over."""
    wanted = Key(site=slurm.home.name, job=run.job.id, attempt=run.allocation.attempt).mark
    rows = lab.ask("squeue", "-h", "-t", "all", "-O", "tres-alloc:200,Comment:80").splitlines()
    return next(row.split()[0] for row in rows if row.rstrip().endswith(wanted))


def test_instances_are_gpus_that_are_cut_and_shards_are_turns(slurm: SlurmEngine) -> None:
    devices = slurm.nodes()[0].devices

    assert [each.turns for each in devices[:4]] == [2, 2, 2, 2]
    assert [made.profile for made in devices[4].mig or ()] == ["1g.5gb", "1g.5gb"]


def test_switches_are_the_topology(slurm: SlurmEngine) -> None:
    slurm.until(lambda: slurm.backend.cluster.levels == ("block", "rack"))

    seen = slurm.commands.topology()
    assert sorted(seen.places.values()) == [("spine", f"leaf{at}") for at in range(1, 5)]


def test_an_instance_is_what_an_attempt_gets(slurm: SlurmEngine, parted: Lab) -> None:
    lasts = Doing(code=0, lasts=Duration(300))
    run = on(slurm, slurm.begins(lasts, None), 4, Mig(profile="1g.5gb"))

    slurm.does(run)
    slurm.sees(JobStarted, run)

    assert "gres/gpu=1" in has(slurm, parted, run)
    used = parted.ask("scontrol", "-d", "show", "node", "node1")
    assert "gpu:a100_1g.5gb:1(" in used
    assert slurm.end_of(run).why == Exited(code=0)


def test_a_turn_is_a_shard(slurm: SlurmEngine, parted: Lab) -> None:
    run = on(slurm, slurm.begins(Doing(code=0), None), 0, TimeShare(replicas=2))

    slurm.does(run)
    slurm.sees(JobStarted, run)

    assert "gres/shard=1" in has(slurm, parted, run)
    assert slurm.end_of(run).why == Exited(code=0)


def test_whole_gpus_are_not_taken_from_instances(slurm: SlurmEngine, parted: Lab) -> None:
    run = on(slurm, slurm.begins(Doing(code=0), None), 0, None)

    slurm.does(run)
    slurm.sees(JobStarted, run)

    assert "gres/gpu:a100=1" in has(slurm, parted, run)
    assert slurm.end_of(run).why == Exited(code=0)
