"""A real Slurm behind Muster: one queue, one set of rules, and jobs that really run there."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import NODES, slurm_lab
from live.house import Process, ended, folder, running, until
from muster import Client
from muster.api.jobs import JobDocument, UpdateDocument
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

    def __init__(self, place: Path, lab: Lab, *, delegates: bool = False) -> None:
        self.place = place
        cluster = self.cluster(lab, delegates=delegates)
        self.process = Process(
            place / "home", Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        )

    def cluster(self, lab: Lab, *, delegates: bool) -> SlurmCluster:
        return SlurmCluster(name="lab", conf=lab.layout.conf, delegate=delegates)

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
def site(lab: Lab, *, delegates: bool = False) -> Generator[Site]:
    with folder() as place:
        place.chmod(0o777)
        found = Site(place, lab, delegates=delegates)
        found.process.start()
        try:
            until(lambda: _gpus(found), lambda count: count == NODES * GPUS_EACH)
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


@pytest.fixture
def delegating(lab: Lab) -> Iterator[Site]:
    with site(lab, delegates=True) as found:
        yield found


def _gpus(here: Site) -> int:
    with here.client as client:
        return sum(node.gpus for node in client.nodes())


def _states(here: Site) -> dict[str, str]:
    with here.client as client:
        return {node.id: node.state for node in client.nodes() if node.cluster == "lab"}


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


def test_a_script_takes_nothing_that_muster_did_not_give_it(here: Site) -> None:
    header = "#!/bin/sh\n#SBATCH --gres=gpu:4\n#SBATCH --array=0-3\n"
    fields: dict[str, Any] = {"pools": ("gpu",), "workdir": "/", "stdout": "/dev/null"}
    with here.client as client:
        job = client.submit(f"{header}{here.says('wishes')}\n", gpus=1, **fields).id

    assert over(here, job).state == "completed"
    (line,) = here.ran("wishes")
    assert len(line.split()[1].split(",")) == 1


def test_a_code_comes_back_as_it_was(here: Site) -> None:
    found = over(here, here.submits("exit 7"))

    assert (found.state, found.exit_code) == ("failed", 7)


def test_jobs_of_others_count_as_used_and_are_left_alone(here: Site, lab: Lab) -> None:
    options = ("--parsable", "-w", "node1", "--gres=gpu:3", "-o", "/dev/null")
    foreign = lab.ask("sbatch", *options, "--wrap", "sleep 600").strip()
    try:
        until(lambda: _gpus(here), lambda count: count == NODES * GPUS_EACH - 3)

        job = here.submits(here.says("beside"), gpus=GPUS_EACH)

        assert over(here, job).state == "completed"
        assert not here.ran("beside")[0].startswith("node1")
        assert lab.ask("squeue", "-h", "-j", foreign, "-o", "%T").strip() == "RUNNING"
    finally:
        lab.ask("scancel", foreign)
    until(lambda: _gpus(here), lambda count: count == NODES * GPUS_EACH)


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
        until(lambda: here.ran("moved"), lambda lines: len(lines) == 2)
        here.tells()
        found = over(here, job)
        # It was not sent to the dead node once more.
        assert (found.state, found.attempt) == ("completed", 2)
        assert [line.split()[0] == node for line in here.ran("moved")] == [True, False]
    finally:
        lab.launch("slurmd", "-D", "-N", node)
        until(lambda: set(_states(here).values()), lambda states: states == {"up"})


def test_a_node_that_is_drained_keeps_its_job_and_takes_nothing_new(here: Site, lab: Lab) -> None:
    job, node = here.runs(here.says("stays", here.until_told()))
    lab.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=fan broken")
    try:
        until(lambda: _states(here)[node], lambda state: state == "draining")
        with here.client as client:
            assert "fan broken" in str(next(each for each in client.nodes() if each.id == node))

        beside = here.submits(here.says("beside"), tasks=NODES - 1, gpus=GPUS_EACH)
        wide = here.submits(here.says("wide"), tasks=NODES, gpus=GPUS_EACH - 1)

        assert over(here, beside).state == "completed"
        assert node not in {line.split()[0] for line in here.ran("beside")}
    finally:
        lab.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    assert over(here, wide).state == "completed"
    assert node in {line.split()[0] for line in here.ran("wide")}
    here.tells()
    assert over(here, job).state == "completed"
    assert len(here.ran("stays")) == 1
    until(lambda: set(_states(here).values()), lambda states: states == {"up"})


def test_cancelling_ends_it_there(here: Site, lab: Lab) -> None:
    job, _ = here.runs("sleep 600")

    with here.client as client:
        client.cancel([job])

    assert over(here, job).state == "cancelled"
    assert lab.ask("squeue", "-h", "-t", "RUNNING") == ""


def test_each_part_of_an_array_knows_which_it_is(here: Site) -> None:
    text = f'echo "$SLURM_ARRAY_TASK_ID" >> {here.place}/array'
    with here.client as client:
        sent = client.submit(
            ["sh", "-c", text], array="1-3", workdir="/", stdout="/dev/null", pools=("gpu",), gpus=1
        )
        assert {each.state for each in ended(client, list(sent.ids))} == {"completed"}

    assert sorted(here.ran("array")) == ["1", "2", "3"]


def test_a_longer_limit_is_slurms_as_well(here: Site, lab: Lab) -> None:
    def limits() -> list[str]:
        return lab.ask("squeue", "-h", "-t", "RUNNING", "-O", "TimeLimit:20").split()

    job, _ = here.runs(here.until_told(), time=60)
    assert limits() == ["7:00"]

    with here.client as client:
        client.update(job, UpdateDocument(time=600))
    until(limits, lambda found: found == ["15:00"])
    here.tells()

    assert over(here, job).state == "completed"


def test_slurms_own_words_submit_there_too(here: Site) -> None:
    commands = here.place / "slurm"
    environ = os.environ | {"MUSTER_HOME": str(here.place / "home")}
    install = [sys.executable, "-m", "muster", "slurm", "install", str(commands)]
    subprocess.run(install, env=environ, check=True, capture_output=True)  # noqa: S603 our own
    script = here.place / "gang.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH -p gpu -N 2 --gres=gpu:2 --ntasks-per-node=1\n"
        f"srun sh -c 'echo \"$SLURM_PROCID $SLURMD_NODENAME\" >> {here.place}/gang'\n"
    )

    said = subprocess.run(  # noqa: S603 our own
        [str(commands / "sbatch"), "--parsable", "-o", "/dev/null", str(script)],
        # As our users have it: a step there is Slurm's all the same.
        env=environ | {"PATH": f"{commands}:{environ['PATH']}"},
        cwd=here.place,
        check=True,
        capture_output=True,
        text=True,
    )

    assert over(here, int(said.stdout)).state == "completed"
    ranks = sorted(line.split() for line in here.ran("gang"))
    assert [rank for rank, _ in ranks] == ["0", "1"]
    assert len({node for _, node in ranks}) == 2


def test_a_job_finds_programs_where_its_user_does(here: Site) -> None:
    """Muster has its own PATH and language, and Slurm's commands print times for it."""
    env = {"PATH": "/opt/theirs/bin:/usr/bin:/bin", "LANG": "de_DE.UTF-8"}
    job = here.submits(
        f'echo "$PATH $LANG ${{SLURM_TIME_FORMAT-unset}}" > {here.place}/env', env=env
    )

    assert over(here, job).state == "completed"
    assert here.ran("env") == ["/opt/theirs/bin:/usr/bin:/bin de_DE.UTF-8 unset"]


def test_strange_words_stay_words(here: Site) -> None:
    quoted, control = 'it\'s "quoted" $(true) `x` %j', "two\nlines\tand\x07bell"
    env = {"STRANGE": quoted + control}
    job = here.submits(f'printf %s "$STRANGE" > {here.place}/strange', name=quoted, env=env)

    assert over(here, job).state == "completed"
    assert (here.place / "strange").read_text(encoding="utf-8") == quoted + control


def test_who_must_make_room_saves_and_goes_on_from_there(here: Site) -> None:
    saved = here.place / "saved" / "count"
    text = (
        f"at=$(cat {saved} 2>/dev/null || echo 0); echo $SLURM_PROCID $at >> {here.place}/low; "
        f"trap 'echo 41 > {saved}.new; mv {saved}.new {saved}; exit 0' USR1; "
        "test $at = 41 && exit 0; while :; do sleep 0.1; done"
    )
    saved.parent.mkdir(mode=0o777)
    asked = {"checkpoint": str(saved.parent), "checkpoint_signal": "USR1", "job_class": "low"}
    low = here.submits(text, gpus=GPUS_EACH, tasks=NODES, preempt_mode="checkpoint", **asked)
    until(lambda: here.ran("low"), lambda lines: len(lines) == NODES)
    # Before Muster has seen it run there is nothing to save: it would only be ended.
    with here.client as client:
        running(client, low)

    high = here.submits(here.says("high"), gpus=GPUS_EACH, job_class="high")

    assert over(here, high).state == "completed"
    found = over(here, low)
    assert (found.state, found.attempt) == ("completed", 2)
    assert sorted(here.ran("low")) == sorted(
        f"{rank} {at}" for rank in range(NODES) for at in (0, 41)
    )
    assert found.attempts[0].checkpointed_at is not None


def test_a_job_that_stands_keeps_its_room_and_goes_on(here: Site, lab: Lab) -> None:
    def states() -> str:
        return lab.ask("squeue", "-h", "-o", "%T").strip()

    job, _ = here.runs(here.says("stood", here.until_told()), gpus=GPUS_EACH)
    until(lambda: here.ran("stood"), lambda lines: len(lines) == 1)

    with here.client as client:
        client.suspend([job])
        until(states, lambda state: state == "SUSPENDED")
        until(lambda: client.job(job).state, lambda state: state == "suspended")
        client.resume([job])
    until(states, lambda state: state == "RUNNING")
    here.tells()

    assert over(here, job).state == "completed"
    assert len(here.ran("stood")) == 1


def test_a_job_that_is_sent_back_runs_again_as_another_attempt(here: Site) -> None:
    job, _ = here.runs(here.says("again", here.until_told()))
    until(lambda: here.ran("again"), lambda lines: len(lines) == 1)

    with here.client as client:
        client.requeue([job])
    until(lambda: here.ran("again"), lambda lines: len(lines) == 2)
    here.tells()

    assert (over(here, job).state, over(here, job).attempt) == ("completed", 2)


def test_a_signal_reaches_the_script_there(here: Site) -> None:
    text = f"trap 'echo told >> {here.place}/signal; exit 3' USR2; touch {here.place}/set; "
    job, _ = here.runs(f"{text}while :; do sleep 0.1; done")
    until((here.place / "set").exists, bool)

    with here.client as client:
        client.signal([job], "USR2")

    assert (over(here, job).exit_code, here.ran("signal")) == (3, ["told"])


def test_what_carries_our_mark_and_is_not_known_is_named_and_runs_on(here: Site, lab: Lab) -> None:
    site = (here.place / "home" / "clusters" / "site").read_text(encoding="ascii")
    options = ("--parsable", f"--comment=muster:{site}:999.1", "-o", "/dev/null")
    copied = lab.ask("sbatch", *options, "--wrap", "sleep 600").strip()
    try:
        here.process.kill()
        here.process.start()

        with here.client as client:
            until(lambda: client.status().problems, lambda said: f"runs {copied} " in str(said))
        assert over(here, here.submits("true")).state == "completed"
        assert lab.ask("squeue", "-h", "-j", copied, "-o", "%T").strip() == "RUNNING"
    finally:
        lab.ask("scancel", copied)


def test_a_database_that_is_gone_ends_nothing_there(here: Site) -> None:
    job, _ = here.runs(here.says("kept", here.until_told()))
    here.process.stop()
    for each in (here.place / "home").glob("muster.db*"):
        each.unlink()
    home = {"MUSTER_HOME": str(here.place / "home")}
    up = [sys.executable, "-m", "muster", "up"]

    refused = subprocess.run(up, env=os.environ | home, capture_output=True, text=True, check=False)  # noqa: S603 our own
    taken = subprocess.run([*up, "--recover"], env=os.environ | home, check=False)  # noqa: S603 our own

    assert (refused.returncode, taken.returncode) == (1, 0)
    assert f"({job})" in refused.stderr
    try:
        here.tells()
        assert over(here, job).state == "completed"
        assert len(here.ran("kept")) == 1
    finally:
        subprocess.run([*up[:-1], "down"], env=os.environ | home, check=True)  # noqa: S603 our own
        here.process.start()


def test_a_gang_whose_nodes_slurm_chooses_knows_who_it_is(delegating: Site) -> None:
    words = "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MUSTER_NODE"
    said = f'echo "{words} $SLURMD_NODENAME" >> {delegating.place / "gang"}'
    job = delegating.submits(said, tasks=3, gpus=2)

    assert over(delegating, job).state == "completed"
    lines = sorted(line.split() for line in delegating.ran("gang"))
    beside = Counter(node for *_, node in lines)
    master = lines[0][-1]
    assert [int(rank) for rank, *_ in lines] == [0, 1, 2]
    for _, world, local, size, address, muster_node, node in lines:
        assert (world, int(size), address, muster_node) == ("3", beside[node], master, node)
        assert int(local) < int(size)


def test_where_slurm_chooses_jobs_wait_there_for_who_was_faster(delegating: Site, lab: Lab) -> None:
    job, _ = delegating.runs(delegating.says("chosen", delegating.until_told()), gpus=GPUS_EACH)
    where = until(lambda: delegating.ran("chosen"), bool)[0].split()[0]
    others = [each for each in lab.layout.nodes if each != where]
    options = ("--parsable", "-N", str(len(others)), "-w", ",".join(others), "--gres=gpu:4")
    foreign = lab.ask("sbatch", *options, "-o", "/dev/null", "--wrap", "sleep 600").strip()
    second = delegating.submits("true", gpus=GPUS_EACH)
    lab.ask("scancel", foreign)
    delegating.tells()

    assert over(delegating, job).state == over(delegating, second).state == "completed"
