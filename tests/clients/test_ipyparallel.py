from clients.desk import Desk


def test_ipyparallel_engines_are_tasks_of_one_job(desk: Desk) -> None:
    answer = desk.runs("ipyparallel_engines.py")

    assert answer["squares"] == "0 1 4 9 16 25"
    assert answer["tasks"] == "0 1"
    desk.slurm.waits_for(answer["job"], "CANCELLED")
