from clients.desk import EXAMPLES, Desk


def test_submitit_brings_back_results_and_errors_and_cancels(desk: Desk) -> None:
    answer = desk.runs("submitit_jobs.py")

    (good, result), (bad, is_failed) = answer["good"].split(), answer["bad"].split()
    pair, _, ranks = answer["pair"].partition(" ")
    assert (result, is_failed) == ("5", "True")
    assert ranks == f"[(0, 2, '{pair}'), (1, 2, '{pair}')]"
    for job, state in {good: "COMPLETED", bad: "FAILED", pair: "COMPLETED"}.items():
        desk.slurm.waits_for(job, state)
    names = desk.slurm.out(f"sacct -X -n -P -o jobname -j {good},{bad},{pair}").split()
    assert names == ["submitit", "submitit", "pair"]
    desk.slurm.waits_for(answer["long"], "CANCELLED")


def test_submitit_checkpoints_and_goes_on_when_time_runs_out(desk: Desk) -> None:
    answer = desk.runs("submitit_checkpoint.py")

    job = answer["job"]
    assert answer["continued"] == "True restarts 1"
    desk.slurm.waits_for(job, "COMPLETED")
    assert desk.slurm.out(f"squeue -h -t all -j {job} -O RestartCnt:4").strip() == "1"
    log = desk.text(f"logs/{job}_0_log.out")
    assert log.count("Starting with JobEnvironment") == 2


def test_submitit_sweeps_with_an_array_of_gpu_jobs(desk: Desk) -> None:
    answer = desk.uses(desk.python, str(EXAMPLES / "submitit_sweep.py")).out

    assert answer.splitlines()[-1] == "best rate 0.1"
    states = desk.slurm.out("sacct -X -n -P --name sweep -o state,reqtres").split()
    assert len(states) == 3
    assert all("gres/gpu=1" in state for state in states)
