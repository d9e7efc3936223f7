from clients.desk import Desk


def test_dask_jobqueue_workers_are_jobs_with_gpus_and_go_away_with_the_cluster(desk: Desk) -> None:
    answer = desk.runs("dask_jobqueue_workers.py")

    jobs = answer["jobs"].split()
    assert answer["squares"] == "0 1 4 9 16 25 36 49"
    assert set(answer["ran"].split()[1:]) <= set(jobs)
    assert len(jobs) == 2
    desk.slurm.waits_until(lambda: {desk.state(job) for job in jobs} == {"CANCELLED"})
    assert len(list(desk.folder.glob("logs/*.err"))) == 2
