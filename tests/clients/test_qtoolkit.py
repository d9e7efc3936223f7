from clients.desk import USER, Desk


def test_qtoolkit_submits_looks_and_cancels(desk: Desk) -> None:
    answer = desk.runs("qtoolkit_jobs.py")

    assert answer["running"] == "qtoolkit 2 300 local"
    assert answer["listed"] == f"RUNNING {USER}"
    assert answer["cancelling"] == "SUCCESSFUL"
    assert answer["gone"] == "CANCELLED"
    assert desk.state(answer["job"]) == "CANCELLED"
