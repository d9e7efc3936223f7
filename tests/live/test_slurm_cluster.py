"""A real Slurm behind Muster: one queue, one set of rules, and jobs that really run there."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import slurm_lab
from live.house import Process, ended, folder, running, until
from muster import Client
from muster.api.jobs import JobDocument
from muster.settings import Settings, SlurmCluster

pytestmark = pytest.mark.slow

GPUS_EACH = 4
QUICK_TO_NOTICE = {"SlurmdTimeout": 10, "SlurmctldTimeout": 10, "MessageTimeout": 5}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with slurm_lab(look=Look(settings={"MinJobAge": 300, **QUICK_TO_NOTICE})) as found:
        yield found


class Site:
    """A Muster on a machine without GPUs, with one Slurm cluster beside it."""

    def __init__(self, place: Path, lab: Lab) -> None:
        self.place = place
        cluster = SlurmCluster(name="lab", conf=lab.layout.conf)
        self.process = Process(
            place / "home", Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        )

    @property
    def client(self) -> Client:
        return self.process.client()

    def submits(self, text: str, **asked: Any) -> int:
        """A line of shell; returns the job."""
        with self.client as client:
            fields: dict[str, Any] = {
                "workdir": "/",
                "stdout": "/dev/null",
                "pools": ("gpu",),
                "gpus": 1,
            } | asked
            return client.submit(["sh", "-c", text], **fields).id

    def runs(self, text: str, **asked: Any) -> tuple[int, str]:
        """The same, when it runs: the job and its node."""
        job = self.submits(text, **asked)
        with self.client as client:
            return job, running(client, job).nodes[0]

    def until_told(self) -> str:
        """A line of shell that ends when the test says so."""
        return f"until test -e {self.place}/go; do sleep 0.1; done"

    def tells(self) -> None:
        (self.place / "go").touch()

    def ran(self, name: str) -> list[str]:
        """What the runs of a job said, a line each."""
        path = self.place / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def says(self, name: str, then: str = "true") -> str:
        """A line of shell that says that it ran, and goes on."""
        return f'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >> {self.place / name}; {then}'


@contextmanager
def site(lab: Lab) -> Generator[Site]:
    with folder() as place:
        place.chmod(0o777)
        found = Site(place, lab)
        found.process.start()
        try:
            until(lambda: _gpus(found), lambda count: count == 2 * GPUS_EACH)
            yield found
        finally:
            with found.client as client:
                jobs = [job.id for job in client.all_jobs()]
                if jobs:
                    client.cancel(jobs)
                    ended(client, jobs)
            found.process.stop()


@pytest.fixture
def here(lab: Lab) -> Iterator[Site]:
    with site(lab) as found:
        yield found


def _gpus(here: Site) -> int:
    with here.client as client:
        return sum(node.gpus for node in client.nodes())


def _up(here: Site) -> int:
    with here.client as client:
        return sum(node.state == "up" and node.gpus > 0 for node in client.nodes())


def over(here: Site, job: int) -> JobDocument:
    with here.client as client:
        return ended(client, [job])[0]


def test_a_job_runs_on_the_cluster_with_the_gpus_that_it_was_given(here: Site) -> None:
    job = here.submits(here.says("one"), gpus=2)

    assert over(here, job).state == "completed"
    node, gpus = here.ran("one")[0].split()
    assert node.startswith("node")
    assert len(gpus.split(",")) == 2


def test_a_gang_has_its_ranks_where_muster_put_them(here: Site) -> None:
    said = f'echo "$RANK $SLURMD_NODENAME $MUSTER_NODE" >> {here.place / "gang"}'
    job = here.submits(said, tasks=3, gpus=2)

    assert over(here, job).state == "completed"
    ranks = sorted(line.split() for line in here.ran("gang"))
    assert [rank for rank, *_ in ranks] == ["0", "1", "2"]
    assert all(where == wanted for _, where, wanted in ranks)


def test_a_code_comes_back_as_it_was(here: Site) -> None:
    found = over(here, here.submits("exit 7"))

    assert (found.state, found.exit_code) == ("failed", 7)


def test_jobs_of_others_count_as_used_and_are_left_alone(here: Site, lab: Lab) -> None:
    options = ("--parsable", "-w", "node1", "--gres=gpu:3", "-o", "/dev/null")
    foreign = lab.ask("sbatch", *options, "--wrap", "sleep 600").strip()
    try:
        until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH - 3)

        job = here.submits(here.says("beside"), gpus=GPUS_EACH)

        assert over(here, job).state == "completed"
        assert here.ran("beside")[0].startswith("node2")
        assert lab.ask("squeue", "-h", "-j", foreign, "-o", "%T").strip() == "RUNNING"
    finally:
        lab.ask("scancel", foreign)
    until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH)


def test_a_muster_that_was_killed_takes_its_jobs_over_and_none_runs_twice(here: Site) -> None:
    job, _ = here.runs(here.says("long", here.until_told()))

    here.process.kill()
    here.process.start()
    here.tells()

    assert over(here, job).state == "completed"
    assert len(here.ran("long")) == 1


def test_a_slurmctld_that_was_killed_costs_no_job(here: Site, lab: Lab) -> None:
    job, _ = here.runs(here.says("kept", here.until_told()))
    # A slurmctld writes its state every few seconds; what came after is forgotten with it.
    state = Path(lab.layout.folder, "state", "job_state")
    written = state.stat().st_mtime_ns if state.exists() else 0
    until(lambda: state.exists() and state.stat().st_mtime_ns, lambda at: at > written)

    lab.kill("slurmctld", "-D", "-i")
    lab.launch("slurmctld", "-D")
    here.tells()

    assert over(here, job).state == "completed"
    assert len(here.ran("kept")) == 1


def test_a_job_whose_node_dies_runs_again_elsewhere(here: Site, lab: Lab) -> None:
    job, node = here.runs(here.says("moved", here.until_told()), gpus=GPUS_EACH)
    # A job runs, to Slurm, from when it has its node: its script may begin much later.
    until(lambda: here.ran("moved"), lambda lines: len(lines) == 1)

    lab.crash(node)
    try:
        until(lambda: here.ran("moved"), lambda lines: len(lines) == 2, patience_s=120)
        here.tells()
        found = over(here, job)
        # It was not sent to the dead node once more.
        assert (found.state, found.attempt) == ("completed", 2)
        assert [line.split()[0] == node for line in here.ran("moved")] == [True, False]
    finally:
        lab.launch("slurmd", "-D", "-N", node)
        until(lambda: _up(here), lambda count: count == 2)


def test_cancelling_ends_it_there(here: Site, lab: Lab) -> None:
    job, _ = here.runs("sleep 600")

    with here.client as client:
        client.cancel([job])

    assert over(here, job).state == "cancelled"
    assert lab.ask("squeue", "-h", "-t", "RUNNING") == ""
