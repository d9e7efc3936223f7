"""Options of srun and salloc that change what runs beside tasks, where, and on which CPUs."""

import getpass
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from doors.slurm.house import House, house
from doors.slurm.test_steps import begun

TWO = 2


def program(slurm: House, name: str, text: str) -> Path:
    """A script that a user wrote."""
    path = slurm.work / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_task_prolog_changes_what_the_task_finds_and_what_it_shows(slurm: House) -> None:
    prolog = program(
        slurm,
        "prolog.sh",
        "echo export GREETING=good day\necho unset EDITOR\necho print here is $SLURM_PROCID\n"
        "echo lost\necho lost too >&2",
    )

    out = slurm.out(
        f"srun -n2 -l --task-prolog={prolog} sh -c 'echo [$GREETING] [$EDITOR]'", EDITOR="vi"
    )

    assert sorted(out.splitlines()) == [
        "0: [good day] []",
        "0: here is 0",
        "1: [good day] []",
        "1: here is 1",
    ]


def test_the_task_has_its_own_number_behind_a_prolog(slurm: House) -> None:
    prolog = program(slurm, "quiet.sh", "true")

    out = slurm.out("srun sh -c 'echo $$ $SLURM_TASK_PID'", SLURM_TASK_PROLOG=str(prolog))

    assert len(set(out.split())) == 1


def test_a_task_epilog_runs_whatever_became_of_the_task(slurm: House) -> None:
    epilog = program(slurm, "epilog.sh", "echo unseen; echo $SLURM_SCRIPT_CONTEXT >&2")

    failed = slurm.shell(f"srun --task-epilog={epilog} sh -c 'exit 4'")
    ended = slurm.shell(f"srun --task-epilog={epilog} sh -c 'kill -TERM $$'")

    assert (failed.code, failed.out) == (4, "")
    assert failed.err.startswith("epilog_task\n")
    assert (ended.code, ended.out) == (143, "")
    assert "task 0: Terminated" in ended.err


def test_a_task_that_is_ordered_to_end_has_its_epilog_after_it(slurm: House) -> None:
    epilog = program(slurm, "late.sh", "echo after >&2")
    step = begun(slurm, f"exec srun -X --task-epilog={epilog} sh -c 'echo up; exec sleep 600'")
    assert step.stdout is not None
    assert step.stdout.readline() == "up\n"

    step.send_signal(2)
    _, err = step.communicate(timeout=30)

    assert "after\n" in err
    assert step.returncode == 130


def test_a_task_does_not_run_where_its_prolog_failed(slurm: House) -> None:
    prolog = program(slurm, "fails.sh", "exit 3")

    ran = slurm.shell(f"srun --task-prolog={prolog} echo ran")
    lost = slurm.shell("srun --task-prolog=/nosuch echo ran")
    near = slurm.shell("srun --task-prolog=fails.sh echo ran")

    assert (ran.code, ran.out) == (3, "")
    assert "error: --task-prolog failed status=3\n" in ran.err
    assert (lost.code, lost.out) == (1, "")
    assert "can not be executed (/nosuch) No such file or directory\n" in lost.err
    assert "is not fully qualified pathname (fails.sh)\n" in near.err


def test_a_command_that_is_not_there_is_named_behind_a_prolog_too(slurm: House) -> None:
    prolog = program(slurm, "quiet.sh", "true")

    ran = slurm.shell(f"srun --task-prolog={prolog} nosuch")

    assert ran.code == 2
    assert re.search(r"slurmstepd-\w+: error: execve\(\): nosuch: No such file", ran.err)


def test_srun_runs_programs_before_and_after_its_step(slurm: House) -> None:
    beside = program(slurm, "beside.sh", "echo $SLURM_SCRIPT_CONTEXT $SLURM_STEP_ID; exit 5")

    ran = slurm.shell(f"srun --prolog={beside} --epilog={beside} echo ran")
    lost = slurm.shell("srun --prolog=/nosuch echo ran")

    assert (ran.code, ran.out) == (0, "prolog_srun 0\nran\nepilog_srun 0\n")
    assert "srun: error: srun epilog failed status=5\n" in ran.err
    assert (lost.code, lost.out) == (0, "ran\n")
    assert lost.err == "srun: Access denied for /nosuch: No such file or directory\n"


def test_srun_and_salloc_run_in_a_reservation(slurm: House) -> None:
    whom = "users=root" if os.getuid() == 0 else f"users={getpass.getuser()}"
    # Nodes on which a job of another test is still ending cannot be reserved.
    slurm.tidies_up()
    slurm.out(
        f"scontrol create reservationname=ours starttime=now duration=60 nodes=pretend2 {whom}"
    )
    says = "sh -c 'echo $SLURMD_NODENAME $SLURM_JOB_RESERVATION'"

    alone = slurm.out(f"srun --reservation=ours {says}")
    held = slurm.out(f"salloc -Q --reservation=ours srun {says}")
    named = slurm.out(f"srun {says}", SLURM_RESERVATION="ours")
    srun, salloc = slurm.shell("srun --reservation=no true"), slurm.shell("salloc --reservation=no")
    slurm.out("scontrol delete reservationname=ours")

    assert {alone, held, named} == {"pretend2 ours\n"}
    invalid = "Requested reservation is invalid"
    assert srun.err == f"srun: error: Unable to allocate resources: {invalid}\n"
    assert salloc.err == f"salloc: error: Job submit/allocate failed: {invalid}\n"


def test_an_mpi_that_is_not_there_is_reported_as_slurm_tells_it(slurm: House) -> None:
    ran = slurm.shell("srun --mpi=pmix true")

    missing = "Couldn't find the specified plugin name for mpi/pmix looking at all files"
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"srun: error: {missing}")
    assert slurm.out("srun --mpi=list") == "MPI plugin types are...\n\tnone\n\tpmi2\n"


# Bound to CPUs.


@pytest.fixture(scope="module")
def real() -> Iterator[House]:
    """This machine itself, whose CPUs have numbers."""
    if len(os.sched_getaffinity(0)) < TWO:
        pytest.skip("tasks can only be kept apart where there are two CPUs")
    with house(nodes=0) as found:
        yield found


def test_tasks_are_bound_to_cpus_of_their_job(real: House) -> None:
    says = "python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'"

    apart = real.out(f"srun -n2 --cpu-bind=threads {says}").split()
    free = real.out(f"srun -n2 --cpu-bind=none {says}").splitlines()
    mapped = real.out(f"srun -n2 --cpu-bind=map_cpu:{apart[0]} {says}").split()

    assert len(set(apart)) == TWO
    assert [line.split() for line in free] == [sorted(apart)] * 2
    assert mapped == [apart[0]] * 2


def test_tasks_say_how_they_are_bound_when_asked_so(real: House) -> None:
    ran = real.shell("srun -n2 --cpu-bind=v,threads sh -c 'echo $SLURM_CPU_BIND'")

    assert set(ran.out.splitlines()) == {ran.out.splitlines()[0]}
    assert ran.out.startswith("verbose,mask_cpu:0x")
    lines = sorted(ran.err.splitlines())
    where = r"cpu-bind-threads=MASK - \S+, task  {0}  {0} \[\d+\]: mask 0x[0-9A-F]+ set"
    assert [bool(re.fullmatch(where.format(at), line)) for at, line in enumerate(lines)] == [1, 1]


def test_cpus_of_others_are_not_bound_to(real: House) -> None:
    ran = real.shell("srun -n1 --cpu-bind=map_cpu:4000 echo ran")

    assert (ran.code, ran.out) == (0, "ran\n")
    assert ran.err.endswith("are not the step's, disabling affinity\n")


def test_steps_beside_each_other_have_cpus_of_their_own(real: House) -> None:
    one = "srun -n1 --exact sh -c 'grep Cpus_allowed_list /proc/self/status > cpus.{0};"
    waits = " until [ -s cpus.{1} ]; do sleep 0.02; done'"
    (real.work / "pair.sh").write_text(
        (one + waits).format(0, 1) + " &\n" + (one + waits).format(1, 0) + "\nwait\n"
    )

    real.out("salloc -Q -n2 sh pair.sh")

    assert len({(real.work / f"cpus.{at}").read_text() for at in (0, 1)}) == TWO


def test_pretend_nodes_have_no_cpus_to_bind_to(slurm: House) -> None:
    ran = slurm.shell("srun --cpu-bind=cores echo ran")

    lacking = "srun: cluster configuration lacks support for cpu binding\n"
    assert (ran.code, ran.out, ran.err) == (0, "ran\n", lacking)


def test_the_cpus_of_a_job_are_shown_by_their_numbers(real: House) -> None:
    shows = "scontrol show job -d $SLURM_JOB_ID | grep -o 'CPU_IDs=[0-9,-]*' | cut -d= -f2"
    pinned = "srun grep Cpus_allowed_list /proc/self/status | cut -f2"
    (real.work / "shows.sh").write_text(f"{shows}\n{pinned}\n")

    first, second = real.out("salloc -Q -n1 salloc -Q -n1 sh shows.sh").split()

    assert first == second
