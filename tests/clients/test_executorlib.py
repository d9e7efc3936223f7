from clients.desk import SCRIPTS, Desk


def test_executorlib_makes_a_job_of_each_function_with_pysqa(desk: Desk) -> None:
    assert desk.runs("executorlib_cluster.py")["results"] == "3 7"


def test_executorlib_runs_functions_as_steps_of_an_allocation(desk: Desk) -> None:
    script = str(SCRIPTS / "executorlib_steps.py")

    ran = desk.uses("salloc", "-n2", "-t", "5", desk.python, script)

    answer = dict(line.split(" ", 1) for line in ran.out.splitlines())
    assert answer["squares"] == "0 1 4"
    assert answer["ran"] == answer["job"]
    assert answer["steps"] == "0 1 2"
    desk.slurm.waits_for(answer["job"], "COMPLETED")
