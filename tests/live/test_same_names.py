"""Two Slurm clusters whose nodes and partitions have the same names, behind one Muster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import slurm_lab
from live.house import Process, ended, folder, running, until
from muster.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def labs() -> Iterator[tuple[Lab, Lab]]:
    with slurm_lab(nodes=2) as first, slurm_lab(nodes=2) as second:
        yield first, second


@pytest.fixture
def place() -> Iterator[Path]:
    with folder() as made:
        made.chmod(0o777)
        yield made


def adds(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "muster", "cluster", "add", *words]
    environ = os.environ | {"MUSTER_HOME": str(home)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 our own


def test_they_are_told_apart_by_a_prefix(labs: tuple[Lab, Lab], place: Path) -> None:
    first, second = labs
    muster = Process(place / "home", Settings(mail_program="none", nodes=1, gpus="0"))
    assert adds(muster.home, "a", "--slurm", "--conf", first.layout.conf).returncode == 0
    beside = ("b", "--slurm", "--conf", second.layout.conf)

    refused = adds(muster.home, *beside)
    astray = adds(muster.home, *beside, "--prefix", "b-", "--account", "nobody")
    refused_too = adds(muster.home, *beside, "--prefix", "b-", "--qos", "urgent")
    of_a_queue = adds(muster.home, *beside, "--prefix", "b-", "--queue-account", "nlp=nobody")
    taken = adds(muster.home, *beside, "--prefix", "b-")

    assert (refused.returncode, taken.returncode) == (1, 0), taken.stderr
    assert (
        "both have nodes named node1, node2; add a Slurm cluster with --prefix b-" in refused.stderr
    )
    assert "cluster b has no account nobody; it has root" in astray.stderr
    assert of_a_queue.stderr == astray.stderr
    assert "cluster b has no QOS urgent; it has normal" in refused_too.stderr
    muster.start()
    try:
        _uses_both(muster, second, place)
    finally:
        muster.stop()


def _uses_both(muster: Process, second: Lab, place: Path) -> None:
    options = ("--parsable", "-w", "node1", "--gres=gpu:3", "-o", "/dev/null")
    foreign = second.ask("sbatch", *options, "--wrap", "sleep 600").strip()
    with muster.client() as client:

        def gpus() -> dict[str, int]:
            return {each.id: each.gpus for each in client.nodes() if each.gpus}

        until(gpus, lambda found: found == {"node1": 4, "node2": 4, "b-node1": 1, "b-node2": 4})
        text = f"echo $SLURM_CLUSTER_NAME $(hostname) $MASTER_ADDR; sleep 1; touch {place}/done"
        job = client.submit(
            ["sh", "-c", text], workdir=str(place), pools=("b-gpu",), gpus=4, stdout="%N.out"
        ).id
        assert running(client, job).nodes == ("b-node2",)
        (over,) = ended(client, [job])
        assert over.state == "completed"
        # What runs there knows the node by the name that it has there.
        assert (place / "node2.out").exists()
        assert b"".join(client.log(job)).split()[-1] == b"node2"
        assert second.ask("squeue", "-h", "-j", foreign, "-o", "%T").strip() == "RUNNING"
        client.submit(["true"], workdir="/", stdout="/dev/null", pools=("gpu",), gpus=4)
        until(lambda: not list(client.all_jobs()), bool)
    second.ask("scancel", foreign)
