"""The crash test in small: every kind of round at least once. `make chaos` plays hundreds."""

from pathlib import Path

import pytest

from chaos.__main__ import report
from chaos.blows import BLOWS
from chaos.evidence import told_by_all
from chaos.play import play


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_left_behind_when_everything_is_killed(tmp_path: Path) -> None:
    played = play(rounds=len(BLOWS), seed=11, folder=tmp_path / "chaos")

    lines = list(report(played))
    assert played.passed, "\n".join(lines)
    assert played.verdict.acknowledged > 0
    assert lines[-1].endswith("PASS")


def test_evidence_is_read_as_it_was_told(tmp_path: Path) -> None:
    (tmp_path / "told").mkdir()
    lines = ("start 1 0 100 5", "start 2 0 101 6", "OVERLAP 2 0 job-7-0", "end 2 0 0 9")
    (tmp_path / "told" / "7").write_text("\n".join(lines))

    told = told_by_all(tmp_path)[7]

    assert told.attempts == {1, 2}
    assert (told.ended_well(1), told.ended_well(2)) == (False, True)
    assert told.overlaps == ["OVERLAP 2 0 job-7-0"]
    assert told.pids == {100, 101}
