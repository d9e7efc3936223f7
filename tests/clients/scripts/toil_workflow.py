"""A user of Toil: three jobs with GPUs, and one that waits for them all."""

import os

from toil.common import Toil
from toil.job import Job, Promise

SMALL = {"memory": "100M", "disk": "10M", "cores": 1}


def square(_: Job, number: int) -> tuple[int, str]:
    return number * number, os.environ["SLURM_JOB_ID"]


def total(_: Job, parts: list[tuple[int, str]]) -> tuple[int, list[str]]:
    return sum(part for part, _ in parts), [job for _, job in parts]


def root(job: Job) -> Promise:
    parts = [job.addChildJobFn(square, number, accelerators="1", **SMALL) for number in range(3)]
    return job.addFollowOnJobFn(total, [part.rv() for part in parts], **SMALL).rv()


def main() -> None:
    options = Job.Runner.getDefaultOptions("./store")
    options.batchSystem = "slurm"
    options.slurmPartition = "local"
    options.batchLogsDir = "."
    options.statePollingWait = 1
    options.disableCaching = True
    options.clean = "always"
    with Toil(options) as toil:
        amount, jobs = toil.start(Job.wrapJobFn(root, **SMALL))
    print("total", amount)
    print("jobs", *jobs)


if __name__ == "__main__":
    main()
