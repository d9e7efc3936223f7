"""A user of dask-jobqueue: workers are jobs, work runs on them, and they go away again."""

import os

from dask.distributed import Client
from dask_jobqueue import SLURMCluster


def where(number: int) -> tuple[int, str]:
    """What was asked for, and the job that did it."""
    return number * number, os.environ["SLURM_JOB_ID"]


def main() -> None:
    with (
        SLURMCluster(
            cores=1,
            memory="1GB",
            walltime="00:10:00",
            queue="local",
            job_extra_directives=["--gres=gpu:1"],
            log_directory="logs",
            interface="lo",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=240)
        found = client.gather(client.map(where, range(8)))
        print("squares", *(square for square, _ in found))
        print("jobs", *sorted(worker.job_id for worker in cluster.workers.values()))
        print("ran in", *sorted({job for _, job in found}))


if __name__ == "__main__":
    main()
