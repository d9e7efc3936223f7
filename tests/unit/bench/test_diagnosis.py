"""Troubles of synthetic jobs, of which the rules know nothing, are named as often as they must."""

import pytest

from bench.diagnosis import halves, outcome, share, sure_but_wrong, that_show


@pytest.mark.slow
def test_troubles_of_jobs_are_named() -> None:
    _, judged = halves(seed=7, each=8)

    profiled = [outcome(job, profiled=True) for job in judged]
    unprofiled = [outcome(job, profiled=False) for job in judged]

    assert share(profiled, "is_right") >= 95
    assert share(profiled, "is_near") >= 99
    assert sure_but_wrong(profiled) < 1
    assert share(that_show(unprofiled), "is_right") >= 90
    assert sure_but_wrong(unprofiled) < 1
