"""Checkpoints for training scripts: find the newest, save one whole or not at all, leave in time.

    import sys
    import torch
    from muster.checkpoint import latest, on_preemption, saving

    found = latest()
    state = torch.load(found) if found else fresh_state()
    with on_preemption() as preemption:
        for step in range(state["step"], 10_000):
            train(state)
            if step % 100 == 99 or preemption.asked:
                with saving(f"step-{step + 1}.pt") as path:
                    torch.save(state, path)
            if preemption.asked:
                sys.exit(preemption.exit_code)

It works without Muster too: then checkpoints are in the folder `checkpoints`, or where you say.
Of many ranks, one saves (usually rank 0) and all load; or each saves under a name of its own.

This file needs nothing but Python 3.9 or newer, and nothing else of Muster: where an image cannot
have Muster installed, copy it.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType, TracebackType
from typing import BinaryIO

__all__ = ["Preemption", "latest", "on_preemption", "restarts", "save", "saving", "time_left"]


def latest(folder: str | Path = "checkpoints") -> Path | None:
    """The checkpoint to go on from, or None when there is none yet.

    In a restarted job it is the one that Muster saw finished before. Otherwise it is the newest
    under the job's checkpoint path, or under `folder` where the job has none: a file that is not
    empty, or a folder that `saving` (or a framework that leaves a manifest) has finished.
    """
    given = os.environ.get("MUSTER_CHECKPOINT")
    if given and os.path.exists(given):
        return Path(given)
    place = os.environ.get("MUSTER_CHECKPOINT_PATH") or str(folder)
    finished = [path for path in _candidates(place) if _is_finished(path)]
    return max(finished, key=_age, default=None)


def save(
    name: str | Path,
    write: Callable[[BinaryIO], object],
    *,
    keep: int | None = 3,
    folder: str | Path = "checkpoints",
) -> Path:
    """Have `write` fill a file, and put that in place whole; returns where it is. See `saving`."""
    with saving(name, keep=keep, folder=folder) as path, path.open("wb") as file:
        write(file)
        file.flush()
    return _target(name, folder)


@contextmanager
def saving(
    name: str | Path, *, keep: int | None = 3, folder: str | Path = "checkpoints"
) -> Generator[Path]:
    """Write a file, or make a folder, at the path given; after the block it is in place.

    Whatever happens, a killed process or a machine without power, no one ever finds a part of a
    checkpoint under its name: it is written under a hidden name beside it, brought to the disk,
    then renamed. If the block raises, nothing is changed.

    name: a name alone is put where the job's checkpoints belong, or into `folder` where the job
        has no place for them; a path with folders is taken as it stands. Give folders numbered
        names: a file takes the place of its forerunner at once, but of two folders with one name
        there is an instant without either.
    keep: so many stay of those whose names differ only in the last number (`step-100.pt`,
        `step-200.pt`; the number follows on `-`, `_`, `.` or `=`). None: all stay.
    """
    target = _target(name, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".saving-{os.getpid()}-{target.name}")
    _remove(draft)
    try:
        yield draft
        _finish(draft)
        _put_in_place(draft, target)
    finally:
        _remove(draft)
    _bring_to_disk(target.parent)
    _tidy(target, keep)


def on_preemption(
    callback: Callable[[int], object] | None = None,
    *,
    signals: Sequence[int] = (signal.SIGUSR1, signal.SIGTERM),
) -> Preemption:
    """Listen for being asked to save and leave, from now on or for the length of a `with` block.

    signals: name the signal here if the job asked to be warned by another one.
    callback: called with the signal's number. It interrupts whatever the script is doing, so most
        scripts do better to look at `asked` between two steps.

    Call it in the main thread; Python allows it nowhere else.
    """
    return Preemption(callback, signals)


class Preemption:
    """Whether this process was asked to save and leave.

    asked: look at it between two steps. signal: the number of the signal that asked last.
    """

    def __init__(self, callback: Callable[[int], object] | None, signals: Sequence[int]) -> None:
        self.asked = False
        self.signal: int | None = None
        self._callback = callback
        self._before = {number: signal.signal(number, self._hear) for number in signals}

    @property
    def exit_code(self) -> int:
        """What a process that ends by that signal ends with, by custom; 0 if no signal came."""
        return 128 + self.signal if self.signal is not None else 0

    def answered(self) -> None:
        """Saved, and going on: `asked` is False until the next signal."""
        self.asked = False

    def close(self) -> None:
        """Stop listening; the handlers from before are back."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def __enter__(self) -> Preemption:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.signal = number
        if self._callback is not None:
            self._callback(number)
        before = self._before.get(number)
        # The default is to die, which is what we are here to prevent.
        if callable(before):
            before(number, frame)


def restarts() -> int:
    """How often this job was started before; 0 in its first attempt, and outside Muster."""
    given = os.environ.get("MUSTER_RESTARTS") or os.environ.get("SLURM_RESTART_COUNT")
    return int(given) if given else 0


def time_left() -> float | None:
    """Seconds until the time limit, not below 0; None when there is no limit."""
    given = os.environ.get("MUSTER_ENDS_AT")
    return max(0.0, _seconds(given) - time.time()) if given else None


# What marks a folder as finished: our own mark, and those of frameworks.
_MARK = "_SUCCESS"
_MANIFESTS = (_MARK, "manifest.json", ".metadata", "metadata.json", "trainer_state.json")
_UNFINISHED = (".tmp", ".part", ".partial", "~")
_HIDDEN = re.compile(r"\.(?:saving|replaced)-(\d+)-(.+)")
_NUMBERED = re.compile(r"(|.*[-_.=])(\d+)(\D*)")


def _candidates(place: str) -> list[Path]:
    """A place is a file, a folder of checkpoints, a folder that is one, or a pattern of those."""
    found: list[Path] = []
    for path in map(Path, glob.glob(place) if glob.has_magic(place) else [place]):
        holds_some = path.is_dir() and not _is_finished(path)
        found.extend(path.iterdir() if holds_some else [path])
    return found


def _is_finished(path: Path) -> bool:
    if path.name.startswith(".") or path.name.endswith(_UNFINISHED):
        return False
    if path.is_dir():
        return any((path / name).exists() for name in _MANIFESTS)
    return path.is_file() and _size_and_time(path)[0] > 0


def _size_and_time(path: Path) -> tuple[int, int]:
    """Zeros for a file that another process has just removed."""
    with suppress(FileNotFoundError):
        found = path.stat()
        return found.st_size, found.st_mtime_ns
    return 0, 0


def _age(path: Path) -> tuple[int, list[int], str]:
    """Later is greater; where the clock does not decide, the number in the name does."""
    parts = path.iterdir() if path.is_dir() else [path]
    written = max((_size_and_time(part)[1] for part in parts), default=0)
    return written, [int(number) for number in re.findall(r"\d+", path.name)], path.name


def _target(name: str | Path, folder: str | Path) -> Path:
    path = Path(name)
    given = os.environ.get("MUSTER_CHECKPOINT_PATH")
    if path.parent != Path() or not given:
        return path if path.parent != Path() else Path(folder, name)
    place = Path(given)
    if fnmatchcase(path.name, place.name) and not glob.has_magic(str(place.parent)):
        return place.with_name(path.name)
    if glob.has_magic(given) or place.is_file():
        raise ValueError(f"the job's checkpoint path is {given}: {name} would not be found there")
    return place / path


def _finish(draft: Path) -> None:
    if not draft.exists():
        raise FileNotFoundError(f"nothing was written to {draft}, the path that saving() gave")
    if draft.is_dir():
        (draft / _MARK).write_text("complete\n", encoding="ascii")
    else:
        # A copy may be as old as its original, and would not be found to be the newest.
        os.utime(draft)
    for path in [*draft.rglob("*"), draft]:
        _bring_to_disk(path)


def _put_in_place(draft: Path, target: Path) -> None:
    if not draft.is_dir() or not target.is_dir():
        draft.replace(target)
        return
    if not _is_finished(target):
        raise FileExistsError(f"{target} is a folder, but no checkpoint; choose another name")
    aside = target.with_name(f".replaced-{os.getpid()}-{target.name}")
    target.replace(aside)
    draft.replace(target)
    _remove(aside)


def _bring_to_disk(path: Path) -> None:
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError:
        # Some network file systems cannot do this for folders, and need not.
        if path.is_file():
            raise
    finally:
        os.close(opened)


def _tidy(target: Path, keep: int | None) -> None:
    """Remove those beyond `keep`, and what killed processes left half-written."""
    alike = _alike(target)
    beside = list(target.parent.iterdir())
    for path in beside:
        left = _HIDDEN.fullmatch(path.name)
        if left and alike(left[2]) and not _is_running(int(left[1])):
            _remove(path)
    if keep is None:
        return
    # A folder that was never finished may be something else: it is not ours to remove.
    others = [each for each in beside if alike(each.name) and _is_finished(each)]
    others = sorted((each for each in others if each != target), key=_age, reverse=True)
    for path in others[max(keep - 1, 0) :]:
        _remove(path)


def _alike(target: Path) -> Callable[[str], bool]:
    """Whether another name differs from this one only in its last number."""
    found = _NUMBERED.fullmatch(target.stem)
    if found is None:
        return lambda name: name == target.name
    before, _, after = (re.escape(part) for part in found.groups())
    pattern = re.compile(rf"{before}\d+{after}{re.escape(target.suffix)}")
    return lambda name: pattern.fullmatch(name) is not None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        path.unlink()


def _seconds(text: str) -> float:
    """An instant, given in milliseconds since 1970 or as RFC 3339 has it."""
    if text.isdecimal():
        return int(text) / 1000
    zoned = text.replace("Z", "+00:00")  # Python learnt about Z in 3.11
    return datetime.fromisoformat(zoned).timestamp()
