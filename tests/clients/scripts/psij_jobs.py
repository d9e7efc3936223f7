"""A user of PSI/J: one job that ends well, one that fails, one that is cancelled."""

import sys
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.slurm import SlurmExecutorConfig

PATIENCE = timedelta(seconds=240)
EAGER = SlurmExecutorConfig(queue_polling_interval=1, initial_queue_polling_delay=1)


def main() -> None:
    executor = JobExecutor.get_instance("slurm", config=EAGER)
    good = submitted(executor, "echo $SLURM_JOB_NUM_NODES nodes, $CUDA_VISIBLE_DEVICES; hostname")
    bad = submitted(executor, "exit 3")
    long = submitted(executor, "sleep 600")
    for job in (good, bad):
        print(line_of(job, job.wait(PATIENCE)))
    long.wait(PATIENCE, target_states=[JobState.ACTIVE])
    print("listed", long.native_id in executor.list())
    long.cancel()
    print(line_of(long, long.wait(PATIENCE)))


def submitted(executor: JobExecutor, line: str) -> Job:
    spec = JobSpec(
        executable="/bin/sh",
        arguments=["-c", line],
        stdout_path=Path("psij.out") if line.startswith("echo") else None,
        launcher=sys.argv[1],
        resources=ResourceSpecV1(process_count=1, gpu_cores_per_process=1),
        attributes=JobAttributes(duration=timedelta(minutes=3), queue_name="local"),
    )
    job = Job(spec)
    executor.submit(job)
    return job


def line_of(job: Job, status: object) -> str:
    return f"{job.native_id} {status.state.name} {status.exit_code}"


if __name__ == "__main__":
    main()
