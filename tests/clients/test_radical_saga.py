from clients.desk import Desk


def test_radical_saga_runs_one_job_and_cancels_another(desk: Desk) -> None:
    answer = desk.runs("radical_saga_jobs.py")

    state, code, short = answer["short"].split()
    before, after, long = answer["long"].split()
    assert (state, code) == ("Done", "0")
    assert (before, after) == ("Running", "Canceled")
    assert desk.text("short.out") == "from saga\n"
    assert desk.state(short) == "COMPLETED"
    desk.slurm.waits_for(long, "CANCELLED")
