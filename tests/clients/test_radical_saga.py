from clients.desk import Desk


def test_radical_saga_runs_one_job_and_cancels_another(desk: Desk) -> None:
    told = desk.runs("radical_saga_jobs.py")

    state, code, short = told["short"].split()
    before, after, long = told["long"].split()
    assert (state, code) == ("Done", "0")
    assert (before, after) == ("Running", "Canceled")
    assert desk.text("short.out") == "from saga\n"
    assert desk.state(short) == "COMPLETED"
    desk.slurm.waits_for(long, "CANCELLED")
