import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from muster.checkpoint import latest, on_preemption, restarts, save, saving, time_left
from shape.source import SRC

MODULE = SRC / "muster" / "checkpoint.py"


def milliseconds(at: float) -> str:
    return str(int(at * 1000))


def rfc_3339(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


@pytest.fixture(autouse=True)
def _outside_muster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("MUSTER_", "SLURM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_at_first_there_is_none() -> None:
    assert latest() is None


def test_what_was_saved_last_is_the_latest(tmp_path: Path) -> None:
    save("step-1.pt", text("one"))

    where = save("step-2.pt", text("two"))

    assert where == Path("checkpoints", "step-2.pt")
    assert latest() == where
    assert where.read_text() == "two"
    assert (tmp_path / where).exists()


def test_the_number_decides_where_the_clock_does_not() -> None:
    for step in (9, 10):
        os.utime(save(f"step-{step}.pt", text("x")), ns=(5, 5))

    assert latest() == Path("checkpoints", "step-10.pt")


def test_muster_says_which_one_it_saw_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    first = save("step-1.pt", text("one"))
    second = save("step-2.pt", text("two"))

    monkeypatch.setenv("MUSTER_CHECKPOINT", str(first))
    newest = latest()
    first.unlink()

    assert newest == first
    assert latest() == second


def test_muster_says_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_PATH", str(tmp_path / "theirs"))

    where = save("step-1.pt", text("one"), folder="ours")

    assert where == tmp_path / "theirs" / "step-1.pt"
    assert latest("ours") == where


@pytest.mark.parametrize("place", ["runs/last.pt", "runs/*.pt"])
def test_the_place_may_be_a_file_or_a_pattern(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_PATH", str(tmp_path / place))

    where = save("last.pt", text("one"))

    assert where == tmp_path / "runs" / "last.pt"
    assert latest() == where


def test_a_name_that_would_not_be_found_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_PATH", str(tmp_path / "step-*.pt"))

    with pytest.raises(ValueError, match="would not be found there"):
        save("epoch-1.pt", text("one"))


def test_a_path_with_folders_is_taken_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_PATH", str(tmp_path / "theirs"))

    where = save(tmp_path / "a" / "b.pt", text("one"))

    assert where == tmp_path / "a" / "b.pt"
    assert where.read_text() == "one"


def test_unfinished_things_are_not_found(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    (folder / "half-folder").mkdir(parents=True)
    (folder / "half-folder" / "shard-0").write_text("x")
    for name in ("a.pt.tmp", "b.part", "c.partial", "d~", ".e.pt"):
        (folder / name).write_text("x")
    (folder / "empty.pt").touch()

    assert latest() is None


def test_until_the_block_ends_nothing_is_to_be_seen() -> None:
    first = save("step-1.pt", text("one"))

    with saving("step-2.pt") as path:
        path.write_text("two")
        during = latest()

    assert path.name.startswith(".")
    assert path.suffix == ".pt"
    assert during == first
    assert latest() == Path("checkpoints", "step-2.pt")


def test_a_block_that_fails_changes_nothing() -> None:
    save("last.pt", text("good"))

    with pytest.raises(OSError, match="disk full"):
        save("last.pt", fails_halfway)

    assert names() == ["last.pt"]
    assert Path("checkpoints", "last.pt").read_text() == "good"


def test_a_block_that_writes_nothing_says_so() -> None:
    with pytest.raises(FileNotFoundError, match="nothing was written"), saving("last.pt"):
        pass


def test_a_folder_can_be_a_checkpoint() -> None:
    with saving("step-1") as path:
        (path / "deep").mkdir(parents=True)
        (path / "deep" / "shard-0").write_text("zero")

    assert latest() == Path("checkpoints", "step-1")
    assert Path("checkpoints/step-1/deep/shard-0").read_text() == "zero"


def test_a_folder_saved_again_takes_the_place_of_the_first() -> None:
    for word in ("first", "second"):
        with saving("step-1") as path:
            path.mkdir()
            (path / word).write_text(word)

    assert names() == ["step-1"]
    assert sorted(each.name for each in Path("checkpoints/step-1").iterdir()) == [
        "_SUCCESS",
        "second",
    ]


def test_a_folder_of_something_else_is_never_replaced() -> None:
    Path("checkpoints/step-1").mkdir(parents=True)
    Path("checkpoints/step-1/thesis.tex").write_text("years of work")

    with pytest.raises(FileExistsError, match="no checkpoint"), saving("step-1") as path:
        path.mkdir()

    assert Path("checkpoints/step-1/thesis.tex").read_text() == "years of work"


def test_the_newest_few_are_kept() -> None:
    for step in range(8, 13):
        save(f"step-{step}.pt", text("x"))

    assert names() == ["step-10.pt", "step-11.pt", "step-12.pt"]


def test_only_those_with_the_same_name_but_for_the_last_number_make_room() -> None:
    others = ["notes.txt", "other-1.pt", "rank1-step-1.pt", "resnet50.pt", "step-1.json"]
    for name in others:
        save(name, text("x"))

    for step in range(1, 4):
        save(f"rank0-step-{step}.pt", text("x"), keep=1)
        save(f"resnet{step}.pt", text("x"), keep=1)

    assert names() == sorted([*others, "rank0-step-3.pt", *(f"resnet{n}.pt" for n in (1, 2, 3))])


def test_all_are_kept_on_request() -> None:
    for step in range(5):
        save(f"step-{step}.pt", text("x"), keep=None)

    assert len(names()) == 5


def test_old_folders_make_room_but_only_finished_ones() -> None:
    Path("checkpoints/step-0").mkdir(parents=True)
    for step in range(1, 4):
        with saving(f"step-{step}", keep=1) as path:
            path.mkdir()

    assert names() == ["step-0", "step-3"]


def test_what_a_killed_process_left_is_cleared_away() -> None:
    Path("checkpoints").mkdir()
    gone = int(printed("import os; print(os.getpid())"))
    Path(f"checkpoints/.saving-{gone}-step-1.pt").write_text("half")
    Path(f"checkpoints/.saving-{os.getppid()}-step-2.pt").write_text("still being written")

    save("step-3.pt", text("x"))

    assert names() == [f".saving-{os.getppid()}-step-2.pt", "step-3.pt"]


def test_a_signal_is_noted_and_the_script_goes_on() -> None:
    with on_preemption() as preemption:
        before = preemption.asked, preemption.exit_code
        signal.raise_signal(signal.SIGTERM)
        after = preemption.asked, preemption.exit_code

    assert before == (False, 0)
    assert after == (True, 143)


def test_having_answered_one_may_go_on_until_the_next() -> None:
    with on_preemption() as preemption:
        signal.raise_signal(signal.SIGUSR1)
        preemption.answered()
        between = preemption.asked
        signal.raise_signal(signal.SIGTERM)

        assert not between
        assert (preemption.asked, preemption.signal) == (True, signal.SIGTERM)


def test_handlers_from_before_are_called_too_and_come_back(heard: list[int]) -> None:
    called: list[int] = []

    with on_preemption(called.append, signals=[signal.SIGUSR2]):
        signal.raise_signal(signal.SIGUSR2)
    signal.raise_signal(signal.SIGUSR2)

    assert called == [signal.SIGUSR2]
    assert heard == [signal.SIGUSR2, signal.SIGUSR2]


def test_restarts_are_counted_by_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = restarts()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "2")
    slurm = restarts()
    monkeypatch.setenv("MUSTER_RESTARTS", "3")

    assert (outside, slurm, restarts()) == (0, 2, 3)


@pytest.mark.parametrize("write", [milliseconds, rfc_3339])
def test_the_time_left_is_in_seconds(
    write: Callable[[float], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_ENDS_AT", write(time.time() + 60))

    left = time_left()

    assert left is not None
    assert 50 < left <= 60


def test_no_time_is_left_after_the_end_and_without_a_limit_nobody_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without = time_left()
    monkeypatch.setenv("MUSTER_ENDS_AT", "1000")

    assert without is None
    assert time_left() == 0


def test_the_file_alone_works_with_an_old_python_and_nothing_else() -> None:
    ast.parse(MODULE.read_text(), feature_version=(3, 9))

    words = printed(
        f"import sys; sys.path.insert(0, {str(MODULE.parent)!r}); import checkpoint;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )

    assert set(words.split()) - sys.stdlib_module_names == {"checkpoint", "__main__"}


@pytest.fixture
def heard() -> Iterator[list[int]]:
    numbers: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGUSR2, before)


def text(words: str) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(words.encode())


def fails_halfway(file: BinaryIO) -> None:
    file.write(b"half")
    raise OSError("disk full")


def printed(code: str) -> str:
    """By a Python without installed packages, and with nothing from its surroundings."""
    argv = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)  # noqa: S603 -- ours
    return done.stdout


def names() -> list[str]:
    return sorted(os.listdir("checkpoints"))
