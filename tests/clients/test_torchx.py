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


def test_torchx_runs_several_replicas_that_know_each_other(desk: Desk) -> None:
    component = f"{SCRIPTS / 'torchx_app.py'}:relay"

    app = desk.uses("torchx", "run", "-s", "slurm", "-cfg", CONFIGURED, component).out.split()[-1]
    job = app.rpartition("/")[2]
    desk.slurm.waits_until(lambda: _states(desk, job) == {"COMPLETED"})
    status = desk.uses("torchx", "status", app)
    log = desk.uses("torchx", "log", "--streams", "stdout", f"{app}/catcher").out

    assert "State: SUCCEEDED" in status.out + status.err
    assert "task 0 of 3 threw the ball to task 1" in log
    assert "task 0 of 3 threw the ball to task 2" in log


def test_torchx_learns_that_one_of_several_replicas_failed(desk: Desk) -> None:
    component = f"{SCRIPTS / 'torchx_app.py'}:relay"
    failing = ("--throw", "exit 7")

    app = desk.uses(
        "torchx", "run", "-s", "slurm", "-cfg", CONFIGURED, component, *failing
    ).out.split()[-1]
    job = app.rpartition("/")[2]
    desk.slurm.waits_until(lambda: _states(desk, job) == {"FAILED"})
    status = desk.tries("torchx", "status", app)

    assert "State: FAILED" in status.out + status.err


def _states(desk: Desk, job: str) -> set[str]:
    return set(desk.slurm.out(f"squeue -h -t all -j {job} -o %T").split())
