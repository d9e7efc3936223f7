"""Memory as Slurm's clients know it: a floor, and steps that are killed while their job goes on."""

import os

import pytest

from doors.slurm.house import House

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root has cgroups to limit memory with"),
]

TOO_MUCH = "python3 -c 'x = bytearray(200 << 20)'"


def test_a_step_that_is_killed_for_memory_is_told_and_its_job_goes_on(shared_slurm: House) -> None:
    script = f'#!/bin/sh\nsrun {TOO_MUCH}\necho "code $?"\nsrun echo after\n'
    (shared_slurm.work / "oom.sh").write_text(script, encoding="utf-8")

    ran = shared_slurm.shell("sbatch -W --parsable --mem=60 -o oom.out oom.sh")
    job = ran.out.strip()
    written = (shared_slurm.work / "oom.out").read_text(encoding="utf-8")

    assert ran.code == 0, ran.err
    assert (
        f"error: Detected 1 oom_kill event in StepId={job}.0. "
        "Some of the step tasks have been OOM Killed." in written
    )
    assert ": task 0: Out Of Memory" in written
    assert "code 253" in written
    assert written.endswith("after\n")
    rows = shared_slurm.out(f"sacct -nP -j {job} -o JobID,State,ExitCode").split()
    assert rows == [
        f"{job}|COMPLETED|0:0",
        f"{job}.batch|COMPLETED|0:0",
        f"{job}.0|OUT_OF_MEMORY|0:125",
        f"{job}.1|COMPLETED|0:0",
    ]


def test_a_job_that_is_killed_for_memory_ends_as_in_slurm(shared_slurm: House) -> None:
    ran = shared_slurm.shell(f'sbatch -W --parsable --mem=60 -o /dev/null --wrap "exec {TOO_MUCH}"')
    job = ran.out.strip()

    assert ran.code == 253
    rows = shared_slurm.out(f"sacct -nXP -j {job} -o State,ExitCode").split()
    assert rows == ["OUT_OF_MEMORY|0:125"]


@pytest.mark.parametrize("options", ["-o said.out -e said.err", "-o said.err"])
def test_a_batch_job_that_is_killed_for_memory_reads_so_in_its_own_errors(
    shared_slurm: House, options: str
) -> None:
    ran = shared_slurm.shell(
        f'sbatch -W --parsable --mem=60 {options} --wrap "echo before >&2; exec {TOO_MUCH}"'
    )
    written = (shared_slurm.work / "said.err").read_text(encoding="utf-8")

    assert written == (
        f"before\nslurmstepd: error: Detected 1 oom_kill event in StepId={ran.out.strip()}.batch. "
        "Some of the step tasks have been OOM Killed.\n"
    )


def test_no_file_of_another_user_is_written_to_about_memory(shared_slurm: House) -> None:
    theirs = shared_slurm.work / "theirs.txt"
    theirs.write_text("", encoding="utf-8")
    swap = "rm swapped.err; ln -s theirs.txt swapped.err"

    shared_slurm.shell(f'sbatch -W --mem=60 -o swapped.err --wrap "{swap}; exec {TOO_MUCH}"')

    assert theirs.read_text(encoding="utf-8") == ""


def test_the_smallest_memory_is_enough_to_start_something(shared_slurm: House) -> None:
    ran = shared_slurm.shell("srun --mem=5 hostname")

    assert ran.code == 0, ran.err
    assert ran.out.strip()
