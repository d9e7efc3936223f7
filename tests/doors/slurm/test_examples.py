"""The stories of examples/slurm, each run as its page says, on the site that is beside them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from doors.slurm.house import House, house

EXAMPLES = Path(__file__).parents[3] / "examples" / "slurm"
STORIES = sorted(path.name for path in EXAMPLES.glob("*.sh") if path.name != "containers.sh")

WANTED = {f"R{number}" for number in (*range(1, 39), 216, 222, 225, 232)}


@pytest.fixture(scope="module")
def lab() -> Iterator[House]:
    with house(site=EXAMPLES / "site") as found:
        yield found


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_says(lab: House, story: str) -> None:
    ran = lab.shell(str(EXAMPLES / story), MUSTER_HOME=str(lab.root / "home"))

    assert ran.code == 0, f"{ran.out}\n{ran.err}"


def test_every_story_is_listed_and_every_wish_has_one() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    scripts = list(EXAMPLES.glob("*.sh"))
    shown = {
        number
        for path in scripts
        for number in re.findall(r"\bR\d+\b", path.read_text(encoding="utf-8").splitlines()[1])
    }

    assert [path.name for path in scripts if f"({path.name})" not in page] == []
    assert sorted(WANTED - shown) == []


def test_the_stories_are_shell_that_bash_can_read() -> None:
    for path in EXAMPLES.glob("*.sh"):
        subprocess.run(["/bin/bash", "-n", str(path)], check=True)  # noqa: S603  our own scripts
