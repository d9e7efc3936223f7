import json
from pathlib import Path

import pytest

from bench.report import aligned, machine, report


def test_words_stand_left_and_numbers_right() -> None:
    table = [
        {"stage": "order", "jobs": 100_000, "ms": 12.5},
        {"stage": "place", "jobs": 7, "ms": 1200.0},
    ]

    assert aligned(table).splitlines() == [
        "stage     jobs         ms",
        "-----  -------  ---------",
        "order  100,000     12.500",
        "place        7  1,200.000",
    ]


def test_an_empty_table_says_so() -> None:
    assert aligned([]) == "(no rows)"


def test_what_was_measured_is_printed_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = report(
        "planner", {"plans_per_s": 42.0}, [{"nodes": 10, "ms": 1.0}], results=tmp_path / "results"
    )

    kept = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == "planner.json"
    assert kept["plans_per_s"] == 42.0
    assert kept["table"] == [{"nodes": 10, "ms": 1.0}]
    assert kept["machine"] == machine()
    assert kept["load_average"] >= 0
    assert "plans_per_s" in capsys.readouterr().out


def test_the_machine_is_described_without_being_named() -> None:
    assert set(machine()) == {"cpu", "cores", "memory_mib", "python", "platform"}
