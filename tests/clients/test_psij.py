import pytest

from clients.desk import SCRIPTS, Desk


@pytest.mark.parametrize("launcher", ["single", "srun"])
def test_psij_sees_how_jobs_end_and_cancels_one(desk: Desk, launcher: str) -> None:
    answer = desk.uses(desk.python, str(SCRIPTS / "psij_jobs.py"), launcher).out.splitlines()

    good, bad, listed, long = answer
    assert good.split()[1:] == ["COMPLETED", "0"]
    assert bad.split()[1:] == ["FAILED", "3"]
    assert listed == "listed True"
    assert long.split()[1:] == ["CANCELED", "None"]
    assert desk.text("psij.out").startswith("1 nodes, 0")
    desk.slurm.waits_for(long.split()[0], "CANCELLED")
