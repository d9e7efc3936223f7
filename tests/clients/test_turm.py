from clients.desk import Desk
from clients.terminal import terminal


def test_turm_shows_a_job_with_its_output_and_cancels_it(desk: Desk) -> None:
    out = desk.folder / "watched.out"
    job = desk.slurm.submits(f"-J watched --gres=gpu:2 -o {out} --wrap 'echo hello; sleep 600'")
    desk.slurm.waits_for(job, "RUNNING")

    with terminal(["turm", "--slurm-refresh", "1"], desk.folder, desk.environ) as screen:
        screen.shows("hello")
        screen.presses("c")
        screen.shows("Cancel")
        screen.presses("\r")
        desk.slurm.waits_for(job, "CANCELLED")
