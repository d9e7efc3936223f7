"""Scripts with `#SBATCH` lines, submitted as documents: as sbatch takes them, in plain words."""

from contextlib import closing

import msgspec
import pytest

from muster import ApiError, Client
from muster.api.jobs import JobDocument
from muster.api.requests import SubmitDocument
from muster.client.wire import HttpRequest, Wire
from muster.doors.slurm.call import FORM, Call, Script
from muster.model.value import replace

SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=pair --gres=gpu:1 --time=10 -c 2 --mem=1G
#SBATCH --array=0-1%1 --hold --comment="a b" --signal=B:USR1@30
#MUSTER --label team=nlp --near app=db
echo hello
"""
ENV = {"HOME": "/", "PATH": "/bin:/usr/bin", "TZ": "UTC"}


def submitted(client: Client, *words: str, script: str = SCRIPT) -> JobDocument:
    document = SubmitDocument(script=script, sbatch=words, env=ENV, workdir="/", umask=0o022)
    return client.job(client.submit_document(document).id)


def by_sbatch(client: Client, *words: str, script: str = SCRIPT) -> JobDocument:
    call = Call(
        form=FORM,
        argv=("--parsable", *words),
        cwd="/",
        env=ENV,
        script=Script(text=script, name=words[-1]),
    )
    request = HttpRequest(method="POST", path="/v1/slurm/sbatch", body=msgspec.json.encode(call))
    with closing(Wire(client.address, {"host": "localhost"})) as wire:
        _, answer = wire.ask(request)
    return client.job(int(answer.split()[-1]))


def the_request(job: JobDocument) -> JobDocument:
    """Without what differs from job to job, and the command line that was used."""
    launch = None if job.launch is None else replace(job.launch, submit_line=None)
    return replace(job, id=0, array=0, submitted_at="", launch=launch, expected_start=None)


def test_a_script_comes_to_the_same_job_as_with_sbatch(client: Client) -> None:
    ours = submitted(client, "train.sh")
    slurms = by_sbatch(client, "train.sh")

    assert the_request(ours) == the_request(slurms)
    assert (ours.name, ours.gpus, ours.cpus, ours.time_limit) == ("pair", 1, 2, 600)
    assert ours.labels["team"] == "nlp"


def test_our_options_win_over_the_lines(client: Client) -> None:
    job = submitted(client, "--muster=gpus=2", "--muster=time=1h", "--muster=name=mine", "x.sh")

    assert (job.gpus, job.time_limit, job.name) == (2, 3_600, "mine")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("#SBATCH --tine=5", "unrecognized option '--tine'"),
        ("#SBATCH --time=soon", "Invalid --time specification"),
        ("#SBATCH -p nowhere", "invalid partition specified: nowhere"),
        ("#MUSTER --gpuz 2", "x.sh:2: No such option '--gpuz'"),
        ("#MUSTER --near db", "near: `db` cannot be read; write `label=value@rack`"),
    ],
)
def test_mistakes_are_named_in_plain_words(client: Client, line: str, text: str) -> None:
    with pytest.raises(ApiError) as no:
        submitted(client, "x.sh", script=f"#!/bin/sh\n{line}\n#SBATCH -c 1\ntrue\n")

    assert text in str(no.value)
    assert "sbatch: error" not in str(no.value)


def test_what_has_no_effect_is_a_caution(client: Client) -> None:
    document = SubmitDocument(
        script="#!/bin/sh\n#SBATCH --hint=nomultithread -H\n", sbatch=("x.sh",), workdir="/"
    )

    assert client.submit_document(document).cautions == ("--hint is ignored by Muster",)


def test_a_whole_array_or_one_part_may_be_waited_for(client: Client) -> None:
    array = client.submit(["true"], array="0-2", held=True)
    last, whole, each = (
        client.submit(["true"], after=(text,), array=indices)
        for text, indices in (
            (f"afterok:{array.id}_2", None),
            (f"afterany:{array.id}_*", None),
            (f"aftercorr:{array.id}", "0-2"),
        )
    )

    assert last.state == whole.state == each.state == "pending"
    assert f"{array.id}_2" in last.explain().text
    array.cancel()
    assert whole.wait().state == "completed"
