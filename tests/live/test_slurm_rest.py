"""A real Slurm behind Muster through slurmrestd and a token: without any of its commands."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import NODES, slurm_lab
from live.house import ended, folder, until
from live.test_slurm_cluster import GPUS_EACH, QUICK_TO_NOTICE, Site
from muster.api.jobs import JobDocument, UpdateDocument
from muster.api.requests import SubmitDocument
from muster.app.clusters import add, show
from muster.doors.cli.daemon.port import AddClusterOptions, ClustersOptions
from muster.model.value import replace
from muster.settings import BadSettingsError, SlurmCluster, made_home, read_settings

pytestmark = pytest.mark.slow

LOOK = Look(settings={"MinJobAge": 300, **QUICK_TO_NOTICE}, has_tokens=True)


class RestSite(Site):
    def cluster(self, lab: Lab, *, delegates: bool) -> SlurmCluster:
        token = self.place / "token"
        token.write_text(lab.token(), encoding="ascii")
        url = f"unix:{lab.layout.rest_socket}"
        return SlurmCluster(name="lab", rest=url, token_file=str(token), delegate=delegates)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with slurm_lab(LOOK) as found:
        yield found


@pytest.fixture
def here(lab: Lab) -> Iterator[RestSite]:
    with folder() as place:
        place.chmod(0o777)
        found = RestSite(place, lab)
        found.process.start()
        try:
            until(lambda: gpus(found), lambda count: count == NODES * GPUS_EACH)
            yield found
        finally:
            with found.client as client:
                jobs = [job.id for job in client.all_jobs()]
                if jobs:
                    client.cancel(jobs)
                    ended(client, jobs)
            found.process.stop()


def gpus(here: Site) -> int:
    with here.client as client:
        return sum(node.gpus for node in client.nodes())


def over(here: Site, job: int) -> JobDocument:
    with here.client as client:
        return ended(client, [job])[0]


def test_a_job_runs_there_with_the_gpus_that_it_was_given(here: RestSite, lab: Lab) -> None:
    job = here.submits(here.says("one"), gpus=2, time=600)

    assert over(here, job).state == "completed"
    assert len(here.ran("one")[0].split()[1].split(",")) == 2
    told = lab.ask("scontrol", "-o", "show", "job", last_job(lab))
    # Only Muster lets one run again.
    assert "Requeue=0" in told
    assert "ReqNodeList=node" in told


def test_a_gang_has_its_ranks_where_muster_put_them(here: RestSite) -> None:
    said = f'echo "$RANK $SLURMD_NODENAME $MUSTER_NODE" >> {here.place / "gang"}'
    job = here.submits(said, tasks=3, gpus=2)

    assert over(here, job).state == "completed"
    ranks = sorted(line.split() for line in here.ran("gang"))
    assert [rank for rank, *_ in ranks] == ["0", "1", "2"]
    assert all(where == wanted for _, where, wanted in ranks)


def test_a_script_has_its_arguments_and_its_code_comes_back(here: RestSite) -> None:
    told = f"umask > {here.place}/args; printf '%s\\n' \"$@\" >> {here.place}/args"
    document = SubmitDocument(
        script=f"#!/bin/sh\n{told}\nexit 7\n",
        command=("one", "two three"),
        umask=0o027,
        workdir="/",
        stdout="/dev/null",
        pools=("gpu",),
        gpus=1,
    )
    with here.client as client:
        job = client.submit_document(document).id

    found = over(here, job)
    assert (found.state, found.exit_code) == ("failed", 7)
    assert here.ran("args") == ["0027", "one", "two three"]


def test_when_slurmrestd_is_killed_nothing_is_lost_and_nothing_runs_twice(
    here: RestSite, lab: Lab
) -> None:
    running, _ = here.runs(here.says("long", here.until_told()))
    lab.kill(*lab.rest_words)
    Path(lab.layout.rest_socket).unlink(missing_ok=True)
    until(here.process.log, lambda said: "slurmrestd at" in said)
    waiting = here.submits(here.says("later"))
    lab.start_rest()
    here.tells()

    for job, name in ((running, "long"), (waiting, "later")):
        found = over(here, job)
        assert (found.state, found.attempt, len(here.ran(name))) == ("completed", 1, 1)


def test_a_muster_that_was_killed_takes_its_jobs_over(here: RestSite) -> None:
    job, _ = here.runs(here.says("kept", here.until_told()))
    here.process.kill()
    here.process.start()
    here.tells()

    found = over(here, job)
    assert (found.state, found.attempt, len(here.ran("kept"))) == ("completed", 1, 1)


def test_cancelling_ends_it_there(here: RestSite, lab: Lab) -> None:
    job, _ = here.runs("sleep 600")
    with here.client as client:
        client.cancel([job])

    assert over(here, job).state == "cancelled"
    until(lambda: lab.ask("squeue", "-h", "-t", "R"), lambda left: not left)


def test_a_longer_limit_is_slurms_as_well(here: RestSite, lab: Lab) -> None:
    def limits() -> list[str]:
        return lab.ask("squeue", "-h", "-t", "RUNNING", "-O", "TimeLimit:20").split()

    job, _ = here.runs(here.until_told(), time=60)
    assert limits() == ["7:00"]

    with here.client as client:
        client.update(job, UpdateDocument(time=600))
    until(limits, lambda found: found == ["15:00"])
    here.tells()

    assert over(here, job).state == "completed"


def test_it_is_added_with_its_token_and_says_what_is_wrong(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, token = made_home(tmp_path / "home"), tmp_path / "token"
    token.write_text("nonsense", encoding="ascii")
    token.chmod(0o600)
    options = AddClusterOptions(
        name="far", rest=f"unix:{lab.layout.rest_socket}", token_file=token, home=home
    )
    with pytest.raises(BadSettingsError, match="see --rest and its token"):
        add(options)

    token.write_text(lab.token(), encoding="ascii")
    add(options)
    show(ClustersOptions(home=home))

    assert "4 nodes, 16 GPUs" in (said := capsys.readouterr().out)
    assert "answers, places by slurmrestd" in said
    (kept,) = read_settings(home).clusters
    assert isinstance(kept, SlurmCluster)
    assert kept.token_file == str(token)
    for wrong in (replace(options, rest=None), replace(options, rest="slurm:6820")):
        with pytest.raises(BadSettingsError, match="--rest"):
            add(replace(wrong, name="other"))


def last_job(lab: Lab) -> str:
    with contextlib.suppress(RuntimeError):
        return max(lab.ask("squeue", "-a", "-h", "-t", "all", "-o", "%i").split(), key=int)
    return ""
