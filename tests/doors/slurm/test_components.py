"""Jobs and steps of several components: srun A : B, --het-group, salloc A : B."""

import re
import signal
from collections.abc import Iterator

import pytest

from doors.slurm.house import House, house
from doors.slurm.test_steps import batch, begun

SAYS = "sh -c 'echo $0 $SLURM_PROCID $SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME'"
TWO = "-n2 -w pretend1 --mem=100\n#SBATCH hetjob\n#SBATCH -n3 -w pretend2 --mem=200"


@pytest.fixture(scope="module")
def slurm() -> Iterator[House]:
    with house(nodes=3) as found:
        yield found


def of_two(slurm: House, name: str, text: str) -> str:
    """What a job wrote whose components have two tasks and three."""
    return batch(slurm, name, TWO, text)


def sorted_lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_a_step_runs_in_the_first_component_unless_it_says_otherwise(slurm: House) -> None:
    out = of_two(slurm, "plain", f"srun {SAYS} first\nsrun --het-group=1 {SAYS} second")

    assert sorted_lines(out) == [
        "first 0 2 0 0 pretend1",
        "first 1 2 1 0 pretend1",
        "second 0 3 0 0 pretend2",
        "second 1 3 1 0 pretend2",
        "second 2 3 2 0 pretend2",
    ]


def test_a_step_in_several_components_is_one_with_its_tasks_numbered_through(slurm: House) -> None:
    both = "--het-group=0,1 sh -c 'echo $SLURM_STEP_ID $SLURM_STEP_NODELIST $SLURM_NNODES'"
    out = of_two(slurm, "both", f"srun -l --het-group=0-1 {SAYS} all\nsrun -n1 {both}")

    assert sorted_lines(out) == [
        "0: all 0 5 0 0 pretend1",
        "1 pretend[1-2] 2",
        "1 pretend[1-2] 2",
        "1: all 1 5 1 0 pretend1",
        "2: all 2 5 0 1 pretend2",
        "3: all 3 5 1 1 pretend2",
        "4: all 4 5 2 1 pretend2",
    ]


def test_components_run_programs_of_their_own_that_reach_each_other(slurm: House) -> None:
    """One asks and one answers, over a pipe that both know by the step's id."""
    setup = "mkfifo ask.$SLURM_JOB_ID answer.$SLURM_JOB_ID"
    asks = "sh -c 'echo 6 7 > ask.$SLURM_JOB_ID; read said < answer.$SLURM_JOB_ID; echo $said'"
    answers = (
        "sh -c 'read a b < ask.$SLURM_JOB_ID;"
        " echo task $SLURM_PROCID says $((a * b)) > answer.$SLURM_JOB_ID'"
    )

    out = of_two(slurm, "talk", f"{setup}\nsrun -n1 {asks} : -n1 {answers}")

    assert out == "task 1 says 42\n"


def test_the_job_knows_its_components(slurm: House) -> None:
    out = of_two(slurm, "known", "env | grep -E '_(HET|PACK)_(GROUP|SIZE)' | sort")

    found = dict(line.split("=", 1) for line in out.splitlines())
    assert found["SLURM_HET_SIZE"] == found["SLURM_PACK_SIZE"] == "2"
    assert [found[f"SLURM_NTASKS_HET_GROUP_{n}"] for n in (0, 1)] == ["2", "3"]
    assert [found[f"SLURM_MEM_PER_NODE_HET_GROUP_{n}"] for n in (0, 1)] == ["100", "200"]
    assert [found[f"SLURM_TASKS_PER_NODE_PACK_GROUP_{n}"] for n in (0, 1)] == ["2", "3"]
    assert found["SLURM_JOB_NODELIST_HET_GROUP_1"] == "pretend2"


def test_srun_alone_is_a_job_of_several_components(slurm: House) -> None:
    line = f"srun -J pair -w pretend1 -n1 {SAYS} A : -w pretend2 -n2 {SAYS} B"
    lines = sorted_lines(slurm.out(line))

    assert lines == ["A 0 3 0 0 pretend1", "B 1 3 0 1 pretend2", "B 2 3 1 1 pretend2"]
    shown = "sacct -n -P -o JobID,State,NTasks,AllocCPUS,NodeList --name pair"
    slurm.waits_until(lambda: slurm.out(shown).count("COMPLETED") == 4)
    assert [re.sub(r"^\d+", "N", line) for line in slurm.out(shown).splitlines()] == [
        "N+0|COMPLETED||1|pretend1",
        "N+0.0|COMPLETED|1|1|pretend1",
        "N+1|COMPLETED||2|pretend2",
        "N+1.0|COMPLETED|2|2|pretend2",
    ]


def test_the_command_of_the_last_is_that_of_all_who_name_none(slurm: House) -> None:
    assert slurm.out("srun -n1 : -n1 echo hi") == "hi\nhi\n"
    assert slurm.shell("srun -n1 true :").err == "srun: fatal: No command given to execute.\n"


def test_the_exit_code_is_the_highest_and_tasks_are_counted_again(slurm: House) -> None:
    ran = slurm.shell(
        "srun -w pretend1 -n1 sh -c 'exit 5' : -w pretend2 -n2 sh -c 'exit $SLURM_PROCID'"
    )

    assert ran.code == 5
    assert sorted_lines(ran.err) == [
        "srun: error: pretend1: task 0: Exited with exit code 5",
        "srun: error: pretend2: task 0: Exited with exit code 1",
        "srun: error: pretend2: task 1: Exited with exit code 2",
    ]


def test_a_component_that_fails_ends_the_others_when_asked_so(slurm: House) -> None:
    ran = slurm.shell("srun -K -w pretend1 -n1 sh -c 'exit 3' : -w pretend2 -n1 sleep 600")

    assert ran.code == 143
    assert "srun: error: pretend2: task 0: Terminated\n" in ran.err


def test_ctrl_c_reaches_all_components(slurm: House) -> None:
    waits = "bash -c 'trap \"echo heard $0; exit 9\" INT; echo up; while :; do sleep 0.02; done'"
    step = begun(slurm, f"exec srun -X -w pretend1 {waits} A : -w pretend2 {waits} B")
    assert step.stdout is not None
    assert [step.stdout.readline(), step.stdout.readline()] == ["up\n", "up\n"]

    step.send_signal(signal.SIGINT)
    out, _ = step.communicate(timeout=30)

    assert (step.returncode, sorted_lines(out)) == (9, ["heard A", "heard B"])


def test_salloc_holds_a_job_of_several_components(slurm: House) -> None:
    inside = f"srun -l --het-group=0,1 {SAYS} x; echo $SLURM_HET_SIZE; squeue -h -o %i"
    (slurm.work / "inside.sh").write_text(inside)

    out = slurm.out("salloc -Q -w pretend1 -n1 : -w pretend2 -n2 sh inside.sh")

    assert sorted(re.sub(r"^\d+\+", "N+", line) for line in out.splitlines()) == [
        "0: x 0 3 0 0 pretend1",
        "1: x 1 3 0 1 pretend2",
        "2",
        "2: x 2 3 1 1 pretend2",
        "N+0",
        "N+1",
    ]


def test_in_a_job_of_one_component_parts_of_a_step_are_beside_each_other(slurm: House) -> None:
    beside = f"srun -N1 -n1 {SAYS} A : -N1 -n1 {SAYS} B; echo; srun true : true"
    (slurm.work / "beside.sh").write_text(beside)

    ran = slurm.shell("salloc -Q -N2 -w pretend1,pretend2 sh beside.sh")

    assert sorted_lines(ran.out) == ["", "A 0 2 0 0 pretend1", "B 1 2 0 1 pretend2"]
    problem = "Allocation failure of 2 nodes: job size of 2, already allocated 2 nodes"
    assert ran.err == f"srun: error: {problem} to previous components.\n"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--het-group=2", "error: Requested het-group offset exceeds highest hetjob index (2 > 1)"),
        ("--het-group=x", "error: Invalid --het-group value: x"),
        ("--het-group=1 true :", "fatal: Duplicate het groups in single srun not supported"),
    ],
)
def test_components_that_cannot_be_meant_are_refused(slurm: House, options: str, text: str) -> None:
    ran = slurm.shell(f"salloc -Q -n1 : -n1 srun {options} true")

    assert (ran.code, ran.err.splitlines()[-1]) == (1, f"srun: {text}")
