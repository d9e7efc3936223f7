"""Which checkpoint of an attempt is the newest that is really finished.

The files are the user's, and so may be what a pattern leads to: folders that link to themselves,
millions of names. So `candidates` looks at a bounded number of names, and is called by a process
that has no more rights than the user (`looking`).
"""

import fnmatch
import glob
import hashlib
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_UNFINISHED = (".tmp", ".part", ".partial", "~")
_MANIFESTS = ("manifest.json", ".metadata", "metadata.json", "trainer_state.json", "_SUCCESS")
# File systems stamp files by a clock that lags a little behind.
_CLOCK_LAG_MS = 20
_MARGIN_MS = 1_000
_MOST_NAMES = 20_000
_MOST_FOUND = 64

_Part = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True)
class CheckpointPlace:
    """Where to look: a file, a folder or a pattern, absolute.

    uid: only this user's files count. since_ms: those that were written before do not.
    """

    path: str
    uid: int
    since_ms: int


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A checkpoint as it was at one look; equal at two looks, it is finished.

    mtime_ms: when it was last written. shape: differs where a size or a time of its files does.
    """

    path: str
    mtime_ms: int
    shape: str


def candidates(place: CheckpointPlace, most_names: int = _MOST_NAMES) -> list[Seen]:
    """The newest checkpoints that are there now, as far as so many names lead to them."""
    look = _Names(most_names)
    if glob.has_magic(place.path):
        parts = [part for part in place.path.split("/") if part]
        found = _those_of(place, look, _matching("/", parts, look))
    else:
        found = _inside(place, look)
    since_ms = place.since_ms - _CLOCK_LAG_MS
    return heapq.nlargest(
        _MOST_FOUND, (seen for seen in found if seen.mtime_ms >= since_ms), key=_age
    )


class CheckpointWatch:
    """What is known of an attempt's checkpoints from one look to the next."""

    def __init__(self) -> None:
        self._before: dict[str, Seen] = {}
        self._reported: Seen | None = None

    def news(self, found: Sequence[Seen]) -> Seen | None:
        """A finished checkpoint that is newer than the last one reported, or None."""
        now = {seen.path: seen for seen in found}
        still = [seen for path, seen in now.items() if self._before.get(path) == seen]
        self._before = now
        return self._newest(still)

    def last_news(self, found: Sequence[Seen], *, killed_at_ms: int | None) -> Seen | None:
        """The same when nothing writes any more.

        Whatever was written just before the processes were killed may be half of a checkpoint.
        """
        if killed_at_ms is not None:
            found = [seen for seen in found if seen.mtime_ms <= killed_at_ms - _MARGIN_MS]
        return self._newest(found)

    def _newest(self, finished: Sequence[Seen]) -> Seen | None:
        newest = max(finished, key=_age, default=None)
        if newest is None or newest == self._reported:
            return None
        if self._reported is not None and newest.mtime_ms < self._reported.mtime_ms:
            return None
        self._reported = newest
        return newest


class _Names:
    """Lists folders until so many names were seen."""

    def __init__(self, left: int) -> None:
        self._left = left

    def of(self, folder: str) -> Iterator[str]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self._left <= 0:
                        return
                    self._left -= 1
                    yield entry.name
        except OSError:
            return


def _matching(base: str, parts: Sequence[str], names: _Names) -> Iterator[str]:
    """The paths that a pattern means, one after the other, so that few are held at a time."""
    if not parts:
        yield base
        return
    part, rest = parts[0], parts[1:]
    if not glob.has_magic(part):
        yield from _matching(os.path.join(base, part), rest, names)
        return
    for name in names.of(base):
        is_hidden = name.startswith(".") and not part.startswith(".")
        if not is_hidden and fnmatch.fnmatchcase(name, part):
            yield from _matching(os.path.join(base, name), rest, names)


def _inside(place: CheckpointPlace, names: _Names) -> Iterable[Seen]:
    """A file is a checkpoint; a folder is one if it has a manifest, else it holds some."""
    path = place.path
    if not os.path.isdir(path):
        found = _file(place, path)
        return () if found is None else (found,)
    inside = list(names.of(path))
    whole = _folder(place, path, inside)
    if whole is not None:
        return (whole,)
    return _those_of(place, names, (os.path.join(path, name) for name in inside))


def _those_of(place: CheckpointPlace, names: _Names, paths: Iterable[str]) -> Iterator[Seen]:
    for path in paths:
        is_folder = os.path.isdir(path)
        seen = _folder(place, path, list(names.of(path))) if is_folder else _file(place, path)
        if seen is not None:
            yield seen


def _file(place: CheckpointPlace, path: str) -> Seen | None:
    part = _part(place, path)
    if part is None or not _is_final(os.path.basename(path)):
        return None
    return _seen(path, [part])


def _folder(place: CheckpointPlace, path: str, names: Sequence[str]) -> Seen | None:
    if not _is_final(os.path.basename(path)) or not any(each in names for each in _MANIFESTS):
        return None
    parts = [_part(place, os.path.join(path, name)) for name in names]
    return _seen(path, sorted(part for part in parts if part is not None))


def _seen(path: str, parts: Sequence[_Part]) -> Seen:
    newest_ns = max((part[2] for part in parts), default=0)
    shape = hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return Seen(path=path, mtime_ms=newest_ns // 1_000_000, shape=shape)


def _part(place: CheckpointPlace, path: str) -> _Part | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == place.uid
    return (path, found.st_size, found.st_mtime_ns) if is_ours and found.st_size else None


def _is_final(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED)


def _age(seen: Seen) -> tuple[int, str]:
    return seen.mtime_ms, seen.path
