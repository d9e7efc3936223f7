from clients.desk import SCRIPTS, Desk


def test_lightning_joins_the_tasks_of_a_job(lightning: Desk) -> None:
    script = SCRIPTS / "lightning_allreduce.py"

    wanted = ("--ntasks-per-node=2", "-J", "sum", "-t", "5")
    told = lightning.uses("srun", *wanted, lightning.python, str(script)).out

    said = sorted(line for line in told.splitlines() if line.startswith("rank"))
    assert said == ["rank 0 of 2 sum 3", "rank 1 of 2 sum 3"]


def test_lightning_checkpoints_requeues_itself_and_goes_on(lightning: Desk) -> None:
    script = SCRIPTS / "lightning_requeue.py"
    (lightning.folder / "train.sh").write_text(
        "#!/bin/bash\n"
        # The signal comes twelve seconds after the start, because the minute is over in 48.
        "#SBATCH -J train -t 1 --signal=SIGUSR1@48 --ntasks-per-node=1 --nodes=1 --gres=gpu:1\n"
        "#SBATCH --requeue --open-mode=append -o train.out\n"
        f"srun {lightning.python} {script}\n"
    )

    job = lightning.uses("sbatch", "--parsable", "--wait", "train.sh").out.strip()

    first, second = [line.split() for line in lightning.text("lives.txt").splitlines()]
    assert first == ["0", "0"]
    assert second[0] == "1"
    assert int(second[1]) > 0
    assert "steps 400" in lightning.text("train.out")
    assert lightning.slurm.out(f"squeue -h -t all -j {job} -O RestartCnt:4").strip() == "1"
