import subprocess

import pytest

from muster.backends.slurm import delegated
from muster.backends.slurm.listing import Key
from muster.backends.slurm.submission import Manner, submission
from muster.model.launch import Launch, Runs
from muster.model.value import Duration, PoolName, QueuePath, replace
from unit.backends.slurm.given import run

KEY = Key(site="here", job=7, attempt=1)
COMMAND = Launch(argv=("python", "it's.py"), workdir="/home/ann")
USUAL = Manner()


def test_a_job_of_one_task_is_its_command_on_its_node() -> None:
    asked = submission(run(COMMAND, ("n1", 2)), KEY, USUAL)

    assert asked.script == "#!/bin/sh\nexec python 'it'\"'\"'s.py'\n"
    wanted = {
        "--comment=muster:here:7.1",
        "--no-requeue",
        "--partition=gpu",
        "--nodelist=n1",
        "--nodes=1",
        "--ntasks=1",
        "--cpus-per-task=2",
        "--gpus-per-task=2",
    }
    assert wanted <= set(asked.options)
    assert asked.hosts == ()


def test_slurm_keeps_a_limit_behind_ours_and_within_its_partition() -> None:
    behind = submission(run(COMMAND, ("n1", 1)), KEY, USUAL)
    within = submission(
        run(COMMAND, ("n1", 1)), KEY, Manner(longest={"gpu": Duration(30 * 60_000)})
    )

    assert "--time=66" in behind.options
    assert "--time=30" in within.options


def test_a_job_without_a_limit_may_take_what_the_partition_allows() -> None:
    unlimited = run(COMMAND, ("n1", 1))
    job = replace(unlimited.job, spec=replace(unlimited.job.spec, time_limit=None))
    unlimited = replace(unlimited, job=job)

    assert "--time=0" in submission(unlimited, KEY, USUAL).options
    longest = Manner(longest={"gpu": Duration(3_600_000)})
    assert "--time=60" in submission(unlimited, KEY, longest).options


def test_tasks_of_a_gang_are_begun_where_they_were_placed() -> None:
    asked = submission(run(COMMAND, ("n3", 1), ("n1", 1), ("n3", 1)), KEY, USUAL)

    assert asked.hosts == ("n3", "n1", "n3")
    assert {"--ntasks=3", "--nodes=2", "--gpus-per-task=1"} <= set(asked.options)
    assert "--distribution=arbitrary" in asked.options
    assert "RANK=2" in asked.script


def test_a_script_on_equal_nodes_is_given_whole_to_slurm() -> None:
    script = Launch(
        argv=("--lr", "1"),
        script="#!/bin/bash\nsrun x\n",
        runs=Runs.FIRST_TASK,
        env={"SLURM_NTASKS": "4"},
    )

    asked = submission(run(script, ("n1", 2), ("n2", 2), cpu_milli=4_000), KEY, USUAL)

    assert (asked.script, asked.args) == ("#!/bin/bash\nsrun x\n", ("--lr", "1"))
    assert {"--ntasks-per-node=2", "--cpus-per-task=2", "--gres=gpu:2"} <= set(asked.options)


def test_a_script_says_nothing_to_slurm_beside_what_muster_decided() -> None:
    """Its options were read when it was submitted; others would be more than it was given."""
    header = "#!/bin/bash\n\n  \n#SBATCH --gres=gpu:8\n# a\u2028note\n#SBATCH --array=0-99\n"
    rest = "#PBS -l nodes=9\n#BSUB -n 9\ncat <<END\n#SBATCH stays\nEND\n"
    script = Launch(script=header + rest, runs=Runs.FIRST_TASK)

    asked = submission(run(script, ("n1", 1)), KEY, USUAL)

    plain = "#!/bin/bash\n\n  \n# SBATCH --gres=gpu:8\n# a\u2028note\n# SBATCH --array=0-99\n"
    assert asked.script == plain + rest.replace("#PBS", "# PBS").replace("#BSUB", "# BSUB")


def test_tasks_that_differ_are_components() -> None:
    asked = submission(run(COMMAND, ("n1", 1), ("n2", 2)), KEY, USUAL)

    at = asked.options.index(":")
    assert "--nodelist=n1" in asked.options[:at]
    assert "--nodelist=n2" in asked.options[at:]
    assert "--het-group=0-1" in asked.script


def test_a_queue_has_its_own_account_and_quality() -> None:
    usual = Manner(account="lab", qos="normal", accounts={QueuePath("cv"): "vision"})
    own = Manner(
        account="lab", accounts={QueuePath("nlp"): "science"}, qualities={QueuePath("nlp"): "high"}
    )
    below = run(COMMAND, ("n1", 1))
    spec = replace(below.job.spec, queue=QueuePath("nlp/speech"))
    below = replace(below, job=replace(below.job, spec=spec))

    assert {"--account=lab", "--qos=normal"} <= set(submission(below, KEY, usual).options)
    assert {"--account=science", "--qos=high"} <= set(submission(below, KEY, own).options)


def test_who_delegates_names_no_nodes() -> None:
    asked = submission(run(COMMAND, ("n1", 1)), KEY, Manner(delegates=True))

    assert not [each for each in asked.options if each.startswith("--nodelist")]


def test_slurm_says_which_gpus_a_job_sees_and_arrays_stay_ours() -> None:
    launch = replace(COMMAND, env={"A": "1", "SLURM_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "3"})

    asked = submission(run(launch, ("n1", 1)), KEY, USUAL)

    assert asked.env["A"] == "1"
    assert asked.env["MUSTER_JOB_ID"] == "7"
    assert asked.env["SLURM_ARRAY_TASK_ID"] == "3"
    assert {"SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"}.isdisjoint(asked.env)


def test_no_pattern_is_filled_in_twice() -> None:
    asked = submission(run(replace(COMMAND, stdout="100%%.out"), ("n1", 1)), KEY, USUAL)

    assert [each for each in asked.options if each.startswith("--output")] == ["--output=100%%.out"]


def test_slurm_is_told_its_own_names() -> None:
    sent = run(Launch(argv=("true",)), ("b-node1", 1), ("b-node2", 1))
    placements = tuple(replace(each, pool=PoolName("b-gpu")) for each in sent.allocation.placements)
    sent = replace(sent, allocation=replace(sent.allocation, placements=placements))

    asked = submission(sent, KEY, Manner(prefix="b-"))

    assert "--partition=gpu" in asked.options
    assert "--nodelist=node[1-2]" in asked.options
    assert asked.hosts == ("node1", "node2")
    assert asked.env["MASTER_ADDR"] == "node1"
    assert "b-" not in asked.script


def test_a_gang_whose_nodes_slurm_chooses_learns_them_where_it_runs() -> None:
    sent = run(COMMAND, ("n1", 1), ("n1", 1), ("n2", 1))

    asked = submission(sent, KEY, Manner(delegates=True))

    named = ("--nodes", "--nodelist", "--distribution")
    assert not [each for each in asked.options if each.startswith(named)]
    assert "--ntasks=3" in asked.options
    assert asked.hosts == ()
    assert not delegated.CHOSEN_THERE & set(asked.env)
    assert "export MASTER_ADDR=$SLURMD_NODENAME" in asked.script
    assert "n1" not in asked.script


@pytest.mark.parametrize(
    ("node", "told", "size"), [("0", "2(x3),1", "2"), ("2", "2(x3),1", "2"), ("3", "2(x3),1", "1")]
)
def test_how_many_tasks_are_beside_one_is_read_from_what_slurm_says(
    node: str, told: str, size: str
) -> None:
    said = subprocess.run(  # noqa: S603 -- our own text
        ["/bin/sh", "-c", f"{delegated.IN_TASK}\necho $LOCAL_WORLD_SIZE"],
        env={"PATH": "/bin:/usr/bin", "SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": told},
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.strip() == size
