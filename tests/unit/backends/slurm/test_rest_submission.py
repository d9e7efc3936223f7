"""What slurmrestd is sent in the place of a call of sbatch."""

import subprocess
from pathlib import Path

import pytest

from muster.backends.slurm.rest_submission import (
    Asked,
    UnknownOptionError,
    document,
    limit,
    script,
)
from muster.backends.slurm.submission import Submission
from muster.model.value import NodeId

COMMON = (
    "--parsable",
    "--no-requeue",
    "--job-name=a b",
    "--comment=muster:here:7.1",
    "--partition=gpu",
    "--output=/w/out",
    "--open-mode=append",
    "--time=10",
)
SCRIPT = "#!/bin/sh\nsleep 1\n"


def told(*options: str, args: tuple[str, ...] = (), umask: int | None = None) -> Submission:
    return Submission(
        options=options, script=SCRIPT, args=args, env={}, workdir="/w", umask=umask, hosts=()
    )


def asked(*options: str, hosts: tuple[str, ...] = ()) -> Asked:
    found = Submission(
        options=options,
        script=SCRIPT,
        args=(),
        env={},
        workdir="/w",
        umask=None,
        hosts=tuple(map(NodeId, hosts)),
    )
    return Asked(told=found, env={"A": "1"}, folder="/w")


def test_a_job_on_one_node_as_22_05_takes_it() -> None:
    placed = ("--nodes=1", "--nodelist=node2", "--ntasks-per-node=1", "--cpus-per-task=2")
    amounts = ("--mem=500M", "--gres=gpu:a100:2")

    assert document(asked(*COMMON, *placed, *amounts), "v0.0.38") == {
        "script": SCRIPT,
        "job": {
            "current_working_directory": "/w",
            "environment": {"A": "1"},
            "no_requeue": True,
            "name": "a b",
            "comment": "muster:here:7.1",
            "partition": "gpu",
            "standard_output": "/w/out",
            "open_mode": "append",
            "time_limit": 10,
            "nodes": 1,
            "nodelist": "node2",
            "tasks_per_node": 1,
            "cpus_per_task": 2,
            "memory_per_node": 500,
            "gres": "gpu:a100:2",
        },
    }


def test_the_same_as_later_versions_take_it() -> None:
    placed = ("--nodes=1", "--nodelist=node2", "--mem=500M", "--gres=gpu:a100:2,shard:1")

    body = document(asked(*COMMON, *placed), "v0.0.41")

    assert "script" not in body
    job = body["job"]
    assert (job["script"], job["environment"], job["requeue"]) == (SCRIPT, ["A=1"], False)
    assert (job["nodes"], job["required_nodes"]) == ("1", ["node2"])
    assert job["memory_per_node"] == {"set": True, "number": 500}
    assert job["tres_per_node"] == "gres/gpu:a100:2,gres/shard:1"
    assert "no_requeue" not in job


def test_tasks_by_name_are_a_list_with_each_node_as_often_as_it_has_tasks() -> None:
    options = ("--nodes=2", "--nodelist=node[1-2]", "--ntasks=3", "--distribution=arbitrary")

    body = document(
        asked(*options, "--gpus-per-task=a100:1", hosts=("node1", "node1", "node2")), "v0.0.38"
    )

    assert body["job"]["nodelist"] == "node1,node1,node2"
    assert (body["job"]["distribution"], body["job"]["tasks"]) == ("arbitrary", 3)
    assert body["job"]["gpus_per_task"] == "a100:1"


def test_components_are_jobs_that_all_have_what_was_said_once() -> None:
    first = ("--nodes=1", "--nodelist=node1", "--mem=10M", "--gres=gpu:2")
    second = ("--nodes=1", "--nodelist=node2", "--gres=gpu:1")

    one, two = document(asked(*COMMON, *first, ":", *second), "v0.0.38")["jobs"]

    assert (one["nodelist"], one["gres"], one["memory_per_node"]) == ("node1", "gpu:2", 10)
    assert (two["nodelist"], two["gres"]) == ("node2", "gpu:1")
    assert "memory_per_node" not in two
    assert one["comment"] == two["comment"] == "muster:here:7.1"
    assert one["no_requeue"] is two["no_requeue"] is True


def test_no_limit_is_said_in_words() -> None:
    assert document(asked("--time=0"), "v0.0.38")["job"]["time_limit"] == "UNLIMITED"
    assert limit(None, "v0.0.40") == {"time_limit": {"set": False, "infinite": True}}
    assert limit(7, "v0.0.38") == {"time_limit": 7}


def test_what_it_has_no_word_for_is_refused_and_not_forgotten() -> None:
    with pytest.raises(UnknownOptionError, match="--container-image"):
        document(asked("--container-image=train"), "v0.0.38")


def test_a_script_without_arguments_is_sent_as_it_is() -> None:
    assert script(told()) == SCRIPT


@pytest.mark.parametrize(
    ("head", "tells"),
    [
        ("#!/bin/sh", 'umask; printf "%s\\n" "$@"; exit 3'),
        ("#!/bin/bash -e", 'umask; printf "%s\\n" "$@"; exit 3'),
        (
            "#!/usr/bin/env python3",
            "import os, sys\nprint(f'{os.umask(0):04o}', *sys.argv[1:], sep='\\n')\nsys.exit(3)",
        ),
    ],
)
def test_arguments_and_umask_reach_the_script(tmp_path: Path, head: str, tells: str) -> None:
    batch = Submission(
        options=(),
        script=f"{head}\n{tells}\nMUSTER0 = 1\n",
        args=("one", "two 'words'", "$x"),
        env={},
        workdir=None,
        umask=0o027,
    )
    path = tmp_path / "script"
    path.write_text(script(batch), encoding="utf-8")
    path.chmod(0o700)

    done = subprocess.run([path], capture_output=True, text=True, check=False)  # noqa: S603

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.split("\n") == ["0027", "one", "two 'words'", "$x", ""]
