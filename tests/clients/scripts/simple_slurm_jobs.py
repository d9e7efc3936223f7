"""A user of simple-slurm: a job is watched and cancelled, an array comes from stdin."""

import datetime

from simple_slurm import Slurm


def main() -> None:
    long = Slurm(job_name="long", output="/dev/null", gpus=1).sbatch("sleep 600")
    watching = Slurm()
    watching.squeue.update_squeue()
    print("seen", watching.squeue.jobs[long]["NAME"])
    watching.scancel.cancel_job(long)

    array = Slurm(
        array=range(3),
        cpus_per_task=2,
        job_name="parts",
        output=f"simple-{Slurm.JOB_ARRAY_ID}.out",
        time=datetime.timedelta(minutes=5),
        gres="gpu:1",
    )
    array.add_cmd("echo part $SLURM_ARRAY_TASK_ID")
    first = array.sbatch("echo with $SLURM_CPUS_PER_TASK cores")
    after = Slurm("-J", "after", "-o", "after.out", "-d", {"afterok": first})
    last = after.sbatch("cat simple-*.out")
    print("jobs", long, first, last)
    Slurm(ntasks=2, gpus_per_task=1, time=datetime.timedelta(minutes=1)).srun("echo step of two")


if __name__ == "__main__":
    main()
