"""A user of submitit: results and errors come back, a job is cancelled, two tasks meet."""

import os
import signal
import time
from pathlib import Path

import submitit


def added(first: int, second: int) -> int:
    return first + second


def fails() -> None:
    raise ValueError("as it should")


def sleeps(mark: str) -> None:
    # submitit's own answer to SIGTERM is to go on until SIGKILL.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Path(mark).touch()
    time.sleep(600)


def whoami() -> tuple[int, int, str]:
    found = submitit.JobEnvironment()
    return found.global_rank, found.num_tasks, os.environ["SLURM_JOB_ID"]


def main() -> None:
    executor = submitit.AutoExecutor(folder="logs/%j", cluster="slurm")
    executor.update_parameters(
        timeout_min=5, mem_gb=1, cpus_per_task=1, gpus_per_node=1, slurm_partition="local"
    )
    good = executor.submit(added, 2, second=3)
    bad = executor.submit(fails)
    long = executor.submit(sleeps, "started")
    executor.update_parameters(tasks_per_node=2, name="pair")
    pair = executor.submit(whoami)
    print("good", good.job_id, good.result())
    print("bad", bad.job_id, "ValueError: as it should" in str(bad.exception()))
    print("pair", pair.job_id, pair.results())
    while not Path("started").exists():
        time.sleep(0.1)
    long.cancel()
    print("long", long.job_id)


if __name__ == "__main__":
    main()
