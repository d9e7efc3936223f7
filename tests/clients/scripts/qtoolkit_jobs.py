"""A user of QToolKit, as jobflow-remote is: a job is submitted, looked at and cancelled."""

import time

from qtoolkit import QResources
from qtoolkit.core.data_objects import QJob
from qtoolkit.host.local import LocalHost
from qtoolkit.io.slurm import SlurmIO
from qtoolkit.manager import QueueManager

PATIENCE_S = 240


def main() -> None:
    manager = QueueManager(SlurmIO(), LocalHost())
    wanted = QResources(job_name="qtoolkit", time_limit=300, processes=2, queue_name="local")
    job = manager.submit("sleep 600", options=wanted).job_id
    running = seen(manager, job, "RUNNING")
    [listed] = manager.get_jobs_list(jobs=[job])
    print("job", job)
    print("running", running.name, running.info.cpus, running.info.time_limit, running.queue_name)
    print("listed", listed.state.value, listed.username)
    print("cancelling", manager.cancel(job).status.value)
    print("gone", seen(manager, job, "CANCELLED").sub_state.value)


def seen(manager: QueueManager, job: str, state: str) -> QJob:
    deadline = time.monotonic() + PATIENCE_S
    while (found := manager.get_job(job)).sub_state.value != state and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


if __name__ == "__main__":
    main()
