"""Is each wall's fall noticed? Every one is taken away in a copy, and a hostile test must fail.

The test passes while the wall stands. A wall that nothing misses has no test, or is none.
Run as root: others have fewer walls.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.report import Row, report

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LOCAL = "backends/local"
PATIENCE_S = 300
FAILED = 1
"""The exit code by which pytest says that tests ran, and some failed."""


@dataclass(frozen=True, kw_only=True)
class Wall:
    """What stands in a file, what stands there when the wall is gone, and who should miss it."""

    name: str
    file: str
    stands: str
    gone: str
    tests: str
    only: str = ""


WALLS = (
    Wall(
        name="modes are mended without following links",
        file="settings.py",
        stands="os.O_PATH | os.O_NOFOLLOW, dir_fd=above",
        gone="os.O_PATH, dir_fd=above",
        tests="test_state_folder.py",
        only="link",
    ),
    Wall(
        name="the folder of a pod is closed",
        file=f"{LOCAL}/pods/places.py",
        stands="        path.mkdir(mode=0o700)\n        if owner",
        gone="        path.mkdir(mode=0o755)\n        if owner",
        tests="test_pods.py",
        only="one_who_may_pass",
    ),
    Wall(
        name="only a folder of our own form is removed",
        file=f"{LOCAL}/pods/volumes.py",
        stands="if old is not None and _HELD.fullmatch(old):",
        gone="if old is not None:",
        tests="test_pods.py",
        only="leads_root_nowhere",
    ),
    Wall(
        name="a file of a source is in its volume",
        file=f"{LOCAL}/pods/volumes.py",
        stands='or ".." in file.path.split("/"):',
        gone="or not file.path:",
        tests="test_pods.py",
        only="is_in_its_volume",
    ),
    Wall(
        name="what a job may open is opened as its user",
        file=f"{LOCAL}/attempt/process.py",
        stands="        with acting_as(user):\n            opened = os.open(bind.path",
        gone="        if user:\n            opened = os.open(bind.path",
        tests="test_images.py",
        only="could_open",
    ),
    Wall(
        name="images are references",
        file=f"{LOCAL}/isolation/container.py",
        stands="return name.partition(",
        gone="return True or name.partition(",
        tests="test_images.py",
        only="is_none",
    ),
    Wall(
        name="no new privileges",
        file=f"{LOCAL}/attempt/process.py",
        stands="if way.user.changes and not way.new_privileges:",
        gone="if way.user.changes and way.new_privileges:",
        tests="test_confinement.py",
        only="more_than_its_user",
    ),
    Wall(
        name="a private /tmp",
        file=f"{LOCAL}/attempt/tasks.py",
        stands='if not launch["private_tmp"] or not user.changes:',
        gone="if launch:",
        tests="test_confinement.py",
        only="seen_by_no_other",
    ),
    Wall(
        name="checkpoints are looked for as the user",
        file=f"{LOCAL}/attempt/looking.py",
        stands="        become(running.user)\n",
        gone="",
        tests="test_checkpoints.py",
        only="may_not_see",
    ),
    Wall(
        name="being somebody takes that user",
        file="controller/rights.py",
        stands="    if not owns(caller, site, job):",
        gone="    if not may_change(caller, site, job):",
        tests="test_being_somebody.py",
    ),
    Wall(
        name="private queues hide names",
        file="controller/rights.py",
        stands="    if caller.root or not is_private(site.queues, queue):",
        gone="    if caller:",
        tests="test_private_queues.py",
        only="sees_no_names",
    ),
    Wall(
        name="tokens for others are root's",
        file="controller/use_cases/tokens.py",
        stands="if request.user != caller.user and not caller.root:",
        gone="if not request.user:",
        tests="test_being_somebody.py",
        only="makes_tokens",
    ),
    Wall(
        name="classes say who may use them",
        file="controller/rights.py",
        stands="if not is_given and not job_class.lets_use(",
        gone="if not caller.user and not job_class.lets_use(",
        tests="test_being_somebody.py",
        only="class",
    ),
    Wall(
        name="routes about jobs demand the right to change them",
        file="controller/rights.py",
        stands="    if not may_change(caller, site, job):",
        gone="    if not caller.user:",
        tests="test_routes.py",
        only="other",
    ),
    Wall(
        name="costly routes take turns",
        file="doors/rest/of_diagnosis.py",
        stands='and why it is slow",\n        costly=True,\n',
        gone='and why it is slow",\n',
        tests="test_telemetry.py",
        only="takes_turns",
    ),
    Wall(
        name="names of others are one short line",
        file="telemetry/readers/dcgm_queries.py",
        stands='each if each.isprintable() else " "',
        gone="each",
        tests="test_telemetry.py",
        only="reach_no_terminal",
    ),
    Wall(
        name="words of Slurm's commands are text",
        file="doors/slurm/answering.py",
        stands='"\\0" in text or not _is_text(text)',
        gone='"\\0" in text',
        tests="test_fuzz_doors.py",
        only="no_text",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="walls whose names have this in them")
    wanted = parser.parse_args().only
    rows = [_tried(wall) for wall in WALLS if wanted in wall.name]
    missed = sum(row["missed"] == "yes" for row in rows)
    report("walls", {"walls": len(rows), "missed": missed, "bar": len(rows)}, rows)


def _tried(wall: Wall) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        # Also those of other users come to read it: processes of jobs do.
        os.chmod(folder, 0o755)  # noqa: S103 -- see above
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        before = _tests(wall, source)
        _take_away(wall, source / "muster" / wall.file)
        began = time.monotonic()
        after = _tests(wall, source)
    print(f"{wall.name}: {before} before, {after} after", flush=True)
    said = "yes" if (before, after) == (0, FAILED) else "no"
    return {"wall": wall.name, "missed": said, "seconds": round(time.monotonic() - began)}


def _take_away(wall: Wall, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if text.count(wall.stands) != 1:
        raise SystemExit(f"{wall.file} has not just one place with: {wall.stands}")
    file.write_text(text.replace(wall.stands, wall.gone), encoding="utf-8")


def _tests(wall: Wall, source: Path) -> int:
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    argv += [f"tests/hostile/{wall.tests}", *(["-k", wall.only] if wall.only else [])]
    environ = {**os.environ, "PYTHONPATH": str(source)}
    try:
        return subprocess.run(  # noqa: S603 -- our own tests
            argv, check=False, cwd=ROOT, env=environ, timeout=PATIENCE_S, capture_output=True
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


if __name__ == "__main__":
    main()
