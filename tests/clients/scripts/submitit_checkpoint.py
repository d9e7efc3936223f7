"""A user of submitit whose job runs out of time: it keeps what it has and goes on, as one job."""

import os
import time

import submitit
from submitit.helpers import DelayedSubmission


class Counting:
    """Counts for ever at first; started again it says how far it had been."""

    def __init__(self) -> None:
        self.reached = 0

    def __call__(self, begun: int = 0) -> tuple[bool, str]:
        while not begun:
            self.reached += 1
            time.sleep(0.01)
        return begun > 10, os.environ["SLURM_RESTART_COUNT"]

    def checkpoint(self, begun: int = 0) -> DelayedSubmission:
        return DelayedSubmission(self, begun=begun + self.reached)


def main() -> None:
    executor = submitit.AutoExecutor(folder="logs", cluster="slurm")
    # The signal comes eight seconds after the start, because the minute is over in 52.
    executor.update_parameters(
        timeout_min=1, slurm_signal_delay_s=52, slurm_partition="local", gpus_per_node=1
    )
    job = executor.submit(Counting())
    went_on, restarts = job.result()
    print("job", job.job_id)
    print("continued", went_on, "restarts", restarts)


if __name__ == "__main__":
    main()
