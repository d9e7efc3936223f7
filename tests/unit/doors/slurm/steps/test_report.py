"""What srun ends with, whichever of its tasks ends first."""

import importlib.util
import sys
from types import ModuleType

import pytest

from muster.doors.slurm.client.compiling import THIN

EXITS_3, EXITS_200, KILLED, TERMINATED = 3 << 8, 200 << 8, 9, 15


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as srun loads it, from its folder."""
    monkeypatch.setattr(sys, "path", [str(THIN), *sys.path])
    spec = importlib.util.spec_from_file_location("muster_report", THIN / "muster_report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "muster_report", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((EXITS_3, EXITS_200), 200),
        ((EXITS_200, KILLED), 137),
        ((KILLED, EXITS_200), 137),
        ((TERMINATED, KILLED, EXITS_200), 143),
        ((0, 0), 0),
    ],
)
def test_a_task_that_was_killed_says_more_than_any_exit_code(
    reporting: ModuleType, statuses: tuple[int, ...], code: int
) -> None:
    ranks = list(range(len(statuses)))
    created = {"step": 0, "nodes": ["n1"], "parts": [ranks]}
    report = reporting.Report(7, created, {}, [len(ranks)])

    for rank, status in enumerate(statuses):
        report.exited({"task": rank, "status": status, "command": ""})

    assert report.code == code
