from clients.desk import USER, Desk


def test_qtoolkit_submits_looks_and_cancels(desk: Desk) -> None:
    told = desk.runs("qtoolkit_jobs.py")

    assert told["running"] == "qtoolkit 2 300 local"
    assert told["listed"] == f"RUNNING {USER}"
    assert told["told"] == "SUCCESSFUL"
    assert told["gone"] == "CANCELLED"
    assert desk.state(told["job"]) == "CANCELLED"
