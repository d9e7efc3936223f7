from muster.backends.slurm.listing import Key
from muster.backends.slurm.submission import Containers, Manner, submission
from muster.model.launch import Launch, Runs
from muster.model.value import Duration, replace
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


def test_tasks_that_differ_are_components() -> None:
    asked = submission(run(COMMAND, ("n1", 1), ("n2", 2)), KEY, USUAL)

    at = asked.options.index(":")
    assert "--nodelist=n1" in asked.options[:at]
    assert "--nodelist=n2" in asked.options[at:]
    assert "--het-group=0-1" in asked.script


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


def test_an_image_is_run_by_what_the_cluster_has() -> None:
    launch = replace(COMMAND, image="nvcr.io/nvidia/pytorch:24.01-py3")

    pyxis = submission(run(launch, ("n1", 1)), KEY, Manner(containers=Containers.PYXIS))
    apptainer = submission(run(launch, ("n1", 1)), KEY, Manner(containers=Containers.APPTAINER))

    assert "--container-image=nvcr.io/nvidia/pytorch:24.01-py3" in pyxis.options
    assert "exec apptainer exec --nv docker://nvcr.io/nvidia/pytorch:24.01-py3" in apptainer.script


def test_no_pattern_is_filled_in_twice() -> None:
    asked = submission(run(replace(COMMAND, stdout="100%%.out"), ("n1", 1)), KEY, USUAL)

    assert [each for each in asked.options if each.startswith("--output")] == ["--output=100%%.out"]
