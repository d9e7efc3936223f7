"""The README's first screen, typed as a newcomer would type it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCREEN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_first_screen_of_the_readme_works(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (screen,) = SCREEN.findall(readme)
    env = os.environ | {"MUSTER_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}

    done = subprocess.run(  # noqa: S603 our own README
        ["/bin/bash", "-euo", "pipefail", "-c", screen],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "GPUs 0,1 on pretend1" in done.stdout, said
    assert "Needs 4 GPUs" in done.stdout, said
    assert "Submitted batch job 5" in done.stdout, said
    assert " of pretend" in done.stdout, said
    assert "COMPLETED" in done.stdout, said
    assert "Muster has stopped" in done.stdout, said
