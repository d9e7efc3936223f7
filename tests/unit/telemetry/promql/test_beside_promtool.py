"""Our evaluator beside Prometheus' own: the same alerts, texts and values at the same instants.

`tests/golden/promql` has 326 cases by `generated.py`, with what a real promtool (3.15) agreed to.
`make observers` builds one; where it is there, it is asked about these files again, and about new
cases. One thing differs and is left out: Go computes broken powers, such as `2 ^ 0.5`, to another
last digit.
"""

import os
import subprocess
from pathlib import Path

import pytest

from unit.telemetry.alerting.promtool import differences, documents, value_differences
from unit.telemetry.promql.generated import cases, write

ROOT = Path(__file__).parents[4]
GOLDEN = sorted((ROOT / "tests/golden/promql").glob("*.test.yml"))
RULES = ROOT / "src/muster/telemetry/rules/muster.rules.yml"


@pytest.mark.slow
@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name)
def test_we_say_what_promtool_says(file: Path) -> None:
    assert differences(file) == []
    assert value_differences(file) == []


def test_there_are_more_than_300_cases() -> None:
    assert sum(len(documents(file)["tests"]) for file in GOLDEN) >= 300


@pytest.mark.slow
@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name)
def test_promtool_still_says_so(file: Path, promtool: Path) -> None:
    assert said(promtool, "test", "rules", str(file)) == ""


@pytest.mark.slow
def test_promtool_agrees_about_new_cases(tmp_path: Path, promtool: Path) -> None:
    seed = int(os.environ.get("SEED", "2"))
    for file in write(tmp_path, cases(seed, int(os.environ.get("CASES", "20")))):
        assert said(promtool, "test", "rules", str(file)) == "", f"SEED={seed}"


def test_promtool_takes_the_rules_that_muster_ships(promtool: Path) -> None:
    assert said(promtool, "check", "rules", str(RULES)) == ""


@pytest.fixture
def promtool() -> Path:
    where = subprocess.run(  # noqa: S603 our own script
        ["/bin/bash", str(ROOT / "tests/observers/build.sh"), "where"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    found = Path(where or "/nowhere") / "promtool"
    if not found.exists():
        pytest.skip("no promtool here: make observers")
    return found


def said(promtool: Path, *words: str) -> str:
    """What it complains of; nothing where all is well."""
    done = subprocess.run(  # noqa: S603 the promtool of make observers
        [str(promtool), *words], capture_output=True, text=True, check=False, timeout=120
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
