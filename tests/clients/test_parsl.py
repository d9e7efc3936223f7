import pytest

from clients.desk import Desk


@pytest.mark.parametrize("launcher", ["simple", "srun"])
def test_parsl_runs_functions_in_a_block_and_gives_it_back(desk: Desk, launcher: str) -> None:
    answer = desk.runs("parsl_blocks.py", launcher)

    job = answer["ran"].removeprefix("in ")
    assert answer["squares"] == "0 1 4 9"
    assert answer["failed"] == "with 7"
    desk.slurm.waits_for(job, "CANCELLED")
