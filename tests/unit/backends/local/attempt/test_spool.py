import os
from pathlib import Path

import pytest

from muster.backends.local.attempt import spool


@pytest.mark.parametrize(
    ("name", "parts"),
    [("7.2", (7, 2)), ("7", None), ("7.", None), ("7.2~", None), ("spawner.sock", None)],
)
def test_only_folders_of_attempts_have_a_job_and_an_attempt(
    name: str, parts: tuple[int, int] | None
) -> None:
    assert spool.parts_of(name) == parts


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    spool.write(tmp_path / "end.json", {"at": 7, "why": {"type": "exited", "code": 0}})

    assert spool.read(tmp_path / "end.json") == {"at": 7, "why": {"type": "exited", "code": 0}}
    assert os.listdir(tmp_path) == ["end.json"]
    assert spool.read(tmp_path / "nothing.json") is None


def test_a_folder_can_be_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lock = spool.take()

    assert lock is not None
    assert spool.take() is None
    assert spool.lock_abandoned(tmp_path) is None
    begun = spool.begun(tmp_path)
    assert begun is not None
    assert begun["pid"] == os.getpid()
    os.close(lock)


def test_when_its_supervisor_is_gone_one_may_clear_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = spool.take()
    assert taken is not None
    os.close(taken)

    first = spool.lock_abandoned(tmp_path)

    assert first is not None
    assert spool.lock_abandoned(tmp_path) is None
    assert spool.take() is None
    os.close(first)


def test_one_that_is_just_beginning_is_not_dead(tmp_path: Path) -> None:
    (tmp_path / spool.BEGUN).touch()

    assert spool.lock_abandoned(tmp_path) is None

    os.utime(tmp_path / spool.BEGUN, (1_000, 1_000))
    lock = spool.lock_abandoned(tmp_path)
    assert lock is not None
    os.close(lock)


def test_a_folder_is_removed_whole(tmp_path: Path) -> None:
    folder = tmp_path / "7.1"
    folder.mkdir()
    (folder / "end.json").touch()

    spool.remove(folder)
    spool.remove(folder)

    assert os.listdir(tmp_path) == []
