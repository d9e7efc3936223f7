from clients.desk import Desk


def test_simple_slurm_submits_from_stdin_watches_cancels_and_runs_steps(desk: Desk) -> None:
    answer = desk.runs("simple_slurm_jobs.py")

    long, array, after = answer["jobs"].split()
    assert answer["seen"] == "long"
    assert answer["step"] == "of two"
    desk.slurm.waits_for(after, "COMPLETED")
    desk.slurm.waits_for(long, "CANCELLED")
    assert [desk.state(f"{array}_{part}") for part in range(3)] == ["COMPLETED"] * 3
    parts = "".join(f"part {part}\nwith 2 cores\n" for part in range(3))
    assert desk.text("after.out") == parts
