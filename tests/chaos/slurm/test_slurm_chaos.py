"""Faults of a real Slurm in small: every kind of round once. `make chaos-slurm` plays hundreds."""

import os

import pytest

from bench.slurm.installing import missing
from chaos.slurm.__main__ import report
from chaos.slurm.blows import BLOWS
from chaos.slurm.play import play


@pytest.mark.slow
def test_no_job_is_lost_or_doubled_and_none_of_somebody_elses_is_touched() -> None:
    if lacking := missing():
        pytest.skip(f"there is no real Slurm here ({', '.join(lacking)} missing)")
    if os.geteuid() != 0:
        pytest.skip("only root can start a Slurm of its own")

    played = play(rounds=len(BLOWS), seed=11)

    lines = list(report(played))
    assert played.passed, "\n".join(lines)
    assert played.verdict.acknowledged > 0
    assert lines[-1].endswith("PASS")
