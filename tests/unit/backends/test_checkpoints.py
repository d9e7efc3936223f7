import os
from pathlib import Path

from muster.backends.checkpoints import (
    CheckpointPlace,
    CheckpointWatch,
    Seen,
    candidates,
)

BEGAN_MS = 1_000_000_000


def wrote(path: Path, text: str = "weights", *, after_ms: int = 5_000) -> Path:
    path.write_text(text)
    at = (BEGAN_MS + after_ms) / 1_000
    os.utime(path, (at, at))
    return path


class Watched:
    """A watch that looks itself."""

    def __init__(self, path: Path, uid: int) -> None:
        self._place = CheckpointPlace(path=str(path), uid=uid, since_ms=BEGAN_MS)
        self._watch = CheckpointWatch()

    def look(self) -> Seen | None:
        return self._watch.news(candidates(self._place))

    def look_last(self, *, killed_at_ms: int | None) -> Seen | None:
        return self._watch.last_news(candidates(self._place), killed_at_ms=killed_at_ms)


def lookout(path: Path) -> Watched:
    return Watched(path, os.getuid())


def test_what_is_unchanged_between_two_looks_is_finished(tmp_path: Path) -> None:
    watched = lookout(tmp_path / "*.pt")
    saved = wrote(tmp_path / "a.pt")

    assert watched.look() is None
    seen = watched.look()

    assert seen is not None
    assert (seen.path, seen.mtime_ms) == (str(saved), BEGAN_MS + 5_000)
    assert watched.look() is None


def test_what_grows_is_not_finished(tmp_path: Path) -> None:
    watched = lookout(tmp_path / "a.pt")
    wrote(tmp_path / "a.pt", "w")
    watched.look()

    wrote(tmp_path / "a.pt", "we")

    assert watched.look() is None
    assert watched.look() is not None


def test_unfinished_names_and_empty_files_do_not_count(tmp_path: Path) -> None:
    watched = lookout(tmp_path)
    for name in ("a.pt.tmp", "b.part", ".hidden", "c~"):
        wrote(tmp_path / name)
    wrote(tmp_path / "empty.pt", "")

    watched.look()

    assert watched.look() is None


def test_what_is_older_than_the_attempt_does_not_count(tmp_path: Path) -> None:
    watched = lookout(tmp_path)
    wrote(tmp_path / "old.pt", after_ms=-60_000)

    watched.look()

    assert watched.look() is None


def test_the_newest_of_a_folder_is_reported(tmp_path: Path) -> None:
    watched = lookout(tmp_path)
    wrote(tmp_path / "a.pt", after_ms=9_000)
    wrote(tmp_path / "b.pt", after_ms=3_000)

    watched.look()
    seen = watched.look()

    assert seen is not None
    assert seen.path == str(tmp_path / "a.pt")


def test_a_folder_with_a_manifest_is_one_checkpoint(tmp_path: Path) -> None:
    watched = lookout(tmp_path / "step-*")
    (tmp_path / "step-1").mkdir()
    wrote(tmp_path / "step-1" / "weights.bin")
    watched.look()
    assert watched.look() is None

    wrote(tmp_path / "step-1" / "manifest.json", after_ms=6_000)
    watched.look()
    seen = watched.look()

    assert seen is not None
    assert (seen.path, seen.mtime_ms) == (str(tmp_path / "step-1"), BEGAN_MS + 6_000)


def test_what_was_written_just_before_the_kill_may_be_half(tmp_path: Path) -> None:
    watched = lookout(tmp_path / "a.pt")
    wrote(tmp_path / "a.pt")

    assert watched.look_last(killed_at_ms=BEGAN_MS + 5_500) is None
    assert watched.look_last(killed_at_ms=None) is not None


def test_somebody_elses_file_does_not_count(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "a.pt", os.getuid() + 1)
    wrote(tmp_path / "a.pt")

    watched.look()

    assert watched.look() is None
