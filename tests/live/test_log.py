"""The log of a daemon is rotated, and nothing that is written past it is lost."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import logging, os, sys
from pathlib import Path
from muster.app.log import FORM, RotatedLog
handler = RotatedLog(Path(sys.argv[1]), maxBytes=2_000, backupCount=2, encoding="utf-8")
logging.basicConfig(level=logging.INFO, format=FORM, handlers=[handler])
for number in range(200):
    logging.info("line %d", number)
os.write(2, b"a traceback\\n")
"""


def test_old_files_are_thrown_away_and_stderr_goes_to_the_newest(tmp_path: Path) -> None:
    log = tmp_path / "muster.log"

    with log.open("ab") as out:
        subprocess.run(  # noqa: S603  our own code
            [sys.executable, "-c", PROGRAM, str(log)], stdout=out, stderr=out, check=True
        )

    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "muster.log",
        "muster.log.1",
        "muster.log.2",
    ]
    newest = log.read_text(encoding="utf-8")
    assert "line 199" in newest
    assert newest.endswith("a traceback\n")
