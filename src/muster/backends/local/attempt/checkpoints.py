"""Which checkpoint of an attempt is the newest that is really finished."""

import glob
import os
import stat
from dataclasses import dataclass

_UNFINISHED = (".tmp", ".part", ".partial", "~")
_MANIFESTS = ("manifest.json", ".metadata", "metadata.json", "trainer_state.json", "_SUCCESS")
# File systems stamp files by a clock that lags a little behind.
_CLOCK_LAG_MS = 20
_MARGIN_MS = 1_000


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A checkpoint as it was at one look; equal at two looks, it is finished.

    mtime_ms: when it was last written. shape: sizes and times of everything it consists of.
    """

    path: str
    mtime_ms: int
    shape: tuple[tuple[str, int, int], ...]


class CheckpointWatch:
    """Looks for checkpoints of one attempt; those from before it began do not count.

    path: a file, a folder or a pattern, absolute. uid: only this user's files count.
    """

    def __init__(self, path: str, *, uid: int, since_ms: int) -> None:
        self._path = path
        self._uid = uid
        self._since_ms = since_ms - _CLOCK_LAG_MS
        self._before: dict[str, Seen] = {}
        self._reported: Seen | None = None

    def look(self) -> Seen | None:
        """A finished checkpoint that is newer than the last one reported, or None."""
        now = {seen.path: seen for seen in self._candidates()}
        still = [seen for path, seen in now.items() if self._before.get(path) == seen]
        self._before = now
        return self._news(still)

    def look_last(self, *, killed_at_ms: int | None) -> Seen | None:
        """The same when nothing writes any more.

        Whatever was written just before the processes were killed may be half of a checkpoint.
        """
        found = self._candidates()
        if killed_at_ms is not None:
            found = [seen for seen in found if seen.mtime_ms <= killed_at_ms - _MARGIN_MS]
        return self._news(found)

    def _news(self, finished: list[Seen]) -> Seen | None:
        newest = max(finished, key=lambda seen: (seen.mtime_ms, seen.path), default=None)
        if newest is None or newest == self._reported:
            return None
        if self._reported is not None and newest.mtime_ms < self._reported.mtime_ms:
            return None
        self._reported = newest
        return newest

    def _candidates(self) -> list[Seen]:
        if glob.has_magic(self._path):
            found = self._those_of(glob.glob(self._path))
        else:
            found = self._inside(self._path)
        return [seen for seen in found if seen.mtime_ms >= self._since_ms]

    def _inside(self, path: str) -> list[Seen]:
        """A file is a checkpoint; a folder is one if it has a manifest, else it holds some."""
        whole = self._folder(path) if os.path.isdir(path) else self._file(path)
        if whole is not None:
            return [whole]
        return self._those_of([os.path.join(path, name) for name in _names(path)])

    def _those_of(self, paths: list[str]) -> list[Seen]:
        each = (self._folder(path) if os.path.isdir(path) else self._file(path) for path in paths)
        return [seen for seen in each if seen is not None]

    def _file(self, path: str) -> Seen | None:
        part = self._part(path)
        if part is None or not _is_final(os.path.basename(path)):
            return None
        return Seen(path=path, mtime_ms=part[2] // 1_000_000, shape=(part,))

    def _folder(self, path: str) -> Seen | None:
        names = _names(path)
        if not _is_final(os.path.basename(path)) or not any(each in names for each in _MANIFESTS):
            return None
        parts = [self._part(os.path.join(path, name)) for name in names]
        shape = tuple(sorted(part for part in parts if part is not None))
        newest = max((part[2] for part in shape), default=0)
        return Seen(path=path, mtime_ms=newest // 1_000_000, shape=shape)

    def _part(self, path: str) -> tuple[str, int, int] | None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == self._uid
        return (path, found.st_size, found.st_mtime_ns) if is_ours and found.st_size else None


def _is_final(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
