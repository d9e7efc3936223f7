from clients.desk import SCRIPTS, Desk

CONFIGURED = "partition=local,time=00:05:00,job_dir=jobs"


def test_torchx_runs_an_app_sees_how_it_went_and_finds_its_log(desk: Desk) -> None:
    component = f"{SCRIPTS / 'torchx_app.py'}:greet"

    ran = desk.uses("torchx", "run", "-s", "slurm", "-cfg", CONFIGURED, component)
    app = ran.out.split()[-1]
    job = app.rpartition("/")[2]
    desk.slurm.waits_for(job, "COMPLETED")
    status = desk.uses("torchx", "status", app)
    listed = desk.uses("torchx", "list", "-s", "slurm").out
    log = desk.uses("torchx", "log", "--streams", "stdout", app).out

    assert "State: SUCCEEDED" in status.out + status.err
    assert f"{app}  SUCCEEDED" in listed
    assert f"hello from {job} replica 0" in log


def test_torchx_cancels_an_app(desk: Desk) -> None:
    component = f"{SCRIPTS / 'torchx_app.py'}:greet"
    long = ("--word", "wait; sleep 600; echo")

    app = desk.uses(
        "torchx", "run", "-s", "slurm", "-cfg", CONFIGURED, component, *long
    ).out.split()[-1]
    job = app.rpartition("/")[2]
    desk.slurm.waits_for(job, "RUNNING")
    desk.uses("torchx", "cancel", app)

    desk.slurm.waits_for(job, "CANCELLED")
