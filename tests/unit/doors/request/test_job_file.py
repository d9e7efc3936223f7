from pathlib import Path

import msgspec
import pytest

from muster.api.requests import GroupDocument, JobFile
from muster.doors.request.job_file import BadJobFileError, job_file_from, read_job_file
from muster.doors.request.page import page, schema

ROOT = Path(__file__).parents[4]
REFERENCE = ROOT / "docs" / "reference"

TRAIN = """\
name: train
command: python train.py --lr "0.1 x"
gpus: 4
memory: 64G
pools: gpu, more
env: {A: 1, HF_TOKEN: }
begin: 2026-12-01T08:00
umask: 027
"""


def test_a_job_is_described_by_its_keys() -> None:
    assert job_file_from(TRAIN, "train.yaml").job == JobFile(
        name="train",
        command=("python", "train.py", "--lr", "0.1 x"),
        gpus=4,
        memory="64G",
        pools=("gpu", "more"),
        env={"A": "1", "HF_TOKEN": None},
        begin="2026-12-01T08:00",
        umask=0o027,
    )


def test_a_job_may_have_several_groups() -> None:
    text = "command: [serve]\ngroups:\n- {name: head, cpus: 0.5}\n- {name: gpu, tasks: 4}\n"

    assert job_file_from(text, "x.yaml").job == JobFile(
        command=("serve",),
        groups=(GroupDocument(name="head", cpus=0.5), GroupDocument(name="gpu", tasks=4)),
    )


def test_all_mistakes_are_reported_with_their_lines() -> None:
    text = (
        "gpuz: 1\ngpu_model: T4\noutput: o\nmemory: 64Q\ntime: soon\nspot: maybe\nexclusive: yes\n"
        "groups:\n- {cpus: two}\ncommand: echo 'open\n"
    )

    with pytest.raises(BadJobFileError) as raised:
        job_file_from(text, "job.yaml")

    starts = [line.partition(" ")[0] for line in str(raised.value).splitlines()]
    assert starts == [f"job.yaml:{line}:" for line in (1, 2, 3, 4, 5, 6, 7, 9, 10)]
    assert "job.yaml:1: gpuz: unknown key; did you mean `gpus`?" in str(raised.value)
    assert "job.yaml:2: gpu_model: unknown key; did you mean `gpu_models`?" in str(raised.value)
    assert "job.yaml:3: output: unknown key; did you mean `stdout`?" in str(raised.value)
    assert "mind the quotes" in str(raised.value)


def test_an_empty_file_says_what_to_write() -> None:
    with pytest.raises(BadJobFileError, match=r"job.yaml:1: the file is empty; write `command:`"):
        job_file_from("", "job.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadJobFileError, match="cannot be read"):
        read_job_file(tmp_path / "none.yaml")


def test_what_the_server_finds_wrong_has_a_line_too() -> None:
    file = job_file_from("command: [x]\ngpus: 1\ngroups:\n- cpus: 1\n- cpus: 2\n", "j.yaml")

    assert file.place("gpus") == "j.yaml:2"
    assert file.place("groups[1].cpus") == "j.yaml:5"
    assert file.place("groups[1].memory") == "j.yaml:5"
    assert file.place("queue") == "j.yaml"


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "jobs").glob("*.yaml")))
def test_the_examples_can_be_read(path: Path) -> None:
    assert read_job_file(path).command


def test_the_reference_page_and_the_schema_are_what_the_code_says() -> None:
    assert (REFERENCE / "requests.md").read_text(encoding="utf-8") == page(), "make reference"
    assert (REFERENCE / "job-file.schema.json").read_text(encoding="utf-8") == schema()
    assert msgspec.json.decode(schema())["$defs"]["JobFile"]["properties"]["gpus"]["description"]
