from clients.desk import SCRIPTS, Desk


def test_lightning_joins_the_tasks_of_a_job(lightning: Desk) -> None:
    script = SCRIPTS / "lightning_allreduce.py"

    wanted = ("--ntasks-per-node=2", "-J", "sum", "-t", "5")
    answer = lightning.uses("srun", *wanted, lightning.python, str(script)).out

    said = sorted(line for line in answer.splitlines() if line.startswith("rank"))
    assert said == ["rank 0 of 2 sum 3", "rank 1 of 2 sum 3"]


def test_lightning_checkpoints_requeues_itself_and_goes_on(lightning: Desk) -> None:
    script = SCRIPTS / "lightning_requeue.py"
    (lightning.folder / "train.sh").write_text(
        "#!/bin/bash\n"
        "#SBATCH -J train -t 10 --ntasks-per-node=1 --nodes=1 --gres=gpu:1\n"
        "#SBATCH --signal=SIGUSR1@90 --requeue --open-mode=append -o train.out\n"
        f"srun {lightning.python} {script}\n"
    )

    job = lightning.uses("sbatch", "--parsable", "train.sh").out.strip()
    lightning.slurm.waits_until((lightning.folder / "warm").exists)
    # Not to wait for the time limit: the same signal, sent by hand.
    lightning.slurm.out(f"scancel --signal=USR1 {job}")
    lightning.slurm.waits_for(job, "COMPLETED")

    first, second = [line.split() for line in lightning.text("lives.txt").splitlines()]
    assert first == ["0", "0"]
    assert second[0] == "1"
    assert int(second[1]) > 0
    assert "steps 400" in lightning.text("train.out")
    assert lightning.slurm.out(f"squeue -h -t all -j {job} -O RestartCnt:4").strip() == "1"
