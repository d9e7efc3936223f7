"""Scripts of PBS and LSF: what their lines mean here."""

from typing import Any

import pytest

from muster.doors.foreign.meaning import ForeignError, Meaning
from muster.doors.foreign.scripts import meaning_of


def meant(*lines: str) -> Meaning:
    found = meaning_of("\n".join(["#!/bin/sh", *lines, "true", "#PBS -N late"]), "script", "/w")
    assert found is not None
    return found


def options(*lines: str) -> dict[str, Any]:
    return meant(*lines).options


def test_a_script_without_such_lines_means_nothing_here() -> None:
    assert meaning_of("#!/bin/sh\necho '#PBS -N x'\n", "script", "/w") is None


def test_a_pbs_script_asks_for_chunks_time_and_names() -> None:
    found = options(
        "#PBS -N train -q gpu@server -A lab",
        "#PBS -l select=2:ncpus=4:ngpus=1:mem=16gb,walltime=01:30:00",
        "#PBS -l place=scatter:excl -j oe -r n -p -5",
    )

    assert found == {
        "name": "train",
        "queue": "gpu",
        "labels": {"project": "lab"},
        "tasks": 2,
        "cpus": 4,
        "gpus": 1,
        "memory": "16G",
        "time": "01:30:00",
        "max_per_node": 1,
        "exclusive": True,
        "requeue": False,
        "priority": -5,
        "stdout": "train.o%j",
        "every_task": False,
    }


def test_a_torque_script_asks_for_nodes_with_processors() -> None:
    found = options("#PBS -l nodes=2:ppn=8:gpus=2 -t 0-9%4 -l mem=4000mb", "#PBS -o out -e err")

    assert (found["tasks"], found["cpus"], found["gpus"], found["max_per_node"]) == (2, 8, 2, 1)
    assert (found["array"], found["memory"]) == ("0-9%4", "4000M")
    assert (found["stdout"], found["stderr"]) == ("out", "err")


def test_what_pbs_jobs_wait_for_is_said_in_our_words() -> None:
    found = meant(
        "#PBS -W depend=afterok:12.server:13,afterany:14",
        "#PBS -a 202612010830 -h -v A=1,B",
        "#PBS -m abe -M ann@example.org -V",
    )

    assert found.options["after"] == ("afterok:12", "afterok:13", "afterany:14")
    assert found.options["begin"] == "2026-12-01T08:30:00"
    assert (found.options["held"], found.options["env"]) == (True, {"A": "1", "B": None})
    assert found.options["mail_on"] == ("fail", "begin", "end")
    assert found.options["mail_to"] == "ann@example.org"
    assert found.cautions == []
    assert found.env == {"PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_WORKDIR": "/w"}


def test_an_lsf_script_asks_for_slots_on_one_host() -> None:
    found = options(
        '#BSUB -J "sweep[1-10]%4" -n 4 -q normal -P lab',
        '#BSUB -R "span[hosts=1] rusage[mem=8GB]" -W 1:30',
        '#BSUB -gpu "num=2:mode=exclusive_process:gmodel=A100-40GB"',
        "#BSUB -o out.%J.%I -e err.%J",
    )

    assert (found["name"], found["array"]) == ("sweep", "1-10%4")
    assert (found["tasks"], found["cpus"], found["gpus"], found["memory"]) == (1, 4, 2, "8G")
    assert (found["time"], found["gpu_models"]) == ("90m", ("A100-40GB",))
    assert (found["stdout"], found["stderr"], found["append"]) == ("out.%A.%a", "err.%j", True)


def test_an_lsf_script_that_spreads_its_slots_has_one_process_for_each_host() -> None:
    found = options('#BSUB -n 8 -R "span[ptile=4]" -gpu num=1')

    assert (found["tasks"], found["cpus"], found["gpus"]) == (2, 4, 1)
    assert (found["max_per_node"], found["every_task"]) == (1, False)


def test_what_lsf_jobs_wait_for_is_said_in_our_words() -> None:
    found = options('#BSUB -w "done(12) && ended(13)" -b 2026:12:1:8:30 -H -rn -x -env "all,A=1"')

    either = options('#BSUB -w "done(12) || ended(13)"')

    assert found["after"] == ("afterok:12", "afterany:13")
    assert either["after"] == ("afterok:12?afterany:13",)
    assert found["begin"] == "2026-12-01T08:30:00"
    assert (found["held"], found["requeue"], found["exclusive"]) == (True, False, True)
    assert found["env"] == {"A": "1"}


@pytest.mark.parametrize(
    ("line", "on", "to"),
    [
        ("#PBS -m be", ("begin", "end", "fail"), None),
        ("#PBS -m n", ("none",), None),
        ("#PBS -m aj -M ann,bob@example.org", ("fail", "array_tasks"), "ann,bob@example.org"),
        ("#PBS -M ann", ("fail",), "ann"),
        ("#BSUB -B -N", ("begin", "end", "fail"), None),
        ("#BSUB -Ne -u ann@example.org", ("fail",), "ann@example.org"),
        ('#BSUB -N -u "ann bob"', ("end", "fail"), "ann,bob"),
    ],
)
def test_mail_is_sent_on_the_occasions_that_other_systems_name(
    line: str, on: tuple[str, ...], to: str | None
) -> None:
    found = meant(line)

    assert (found.options["mail_on"], found.options.get("mail_to")) == (on, to)
    assert found.cautions == []


def test_lsf_would_mail_what_a_job_writes_which_is_not_done_here() -> None:
    found = meant("#BSUB -u ann@example.org")

    assert "mail_on" not in found.options
    assert found.cautions == ["-u has no effect without -B or -N: what a job writes is not mailed"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("#PBS -m x", "2: #PBS: -m x: x must be one of a, b, e, f, j, n, p"),
        ("#PBS -Z", "2: #PBS: there is no option -Z"),
        ("#PBS -N", "2: #PBS: -N needs a value"),
        ("#PBS -I", "-I is not supported: to sit at a job use muster run"),
        ("#PBS -l floppies=2", "-l floppies is not a resource that is given out here"),
        ("#PBS -l select=1:ncpus=2+1:ncpus=4", "several kinds of chunks"),
        ("#PBS -W depend=on:3", "-W depend=on:3 is not supported"),
        ("#PBS -l walltime=soon", "-l walltime=soon is no time"),
        ("#PBS -N 'x", "No closing quotation"),
        ("#BSUB -n many", "-n many is no number of slots"),
        ('#BSUB -w "done(1) || done(2) && done(3)"', "|| between all"),
        ('#BSUB -w "done(name)"', "write done(12)"),
        ("#BSUB -Is", "muster run"),
        ('#BSUB -R "mem>100"', "is not supported; span[...] and rusage[...] are"),
        ("#BSUB -n 5 -R span[ptile=2]", "does not go into hosts of 2 slots"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_line(line: str, text: str) -> None:
    with pytest.raises(ForeignError) as refused:
        meant(line)

    assert text in str(refused.value)


def test_lines_of_two_systems_in_one_script_are_refused() -> None:
    with pytest.raises(ForeignError, match="keep those of one system"):
        meant("#PBS -N a", "#BSUB -J b")
