"""Which CPUs an attempt is pinned to: near its GPUs, on as few NUMA nodes as can be.

Pinned CPUs belong to one attempt at a time. The book is kept in a file, so that after a restart
we know what those processes that go on are really pinned to.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from muster.backends.local.hardware.host import Cpus
from muster.model.value import JobId

_Book = dict[str, tuple[int, ...]]


class Pinning:
    """The CPUs of a real node, and who is pinned to which. Asked twice, it answers the same."""

    def __init__(self, cpus: Cpus, book: Path) -> None:
        self._cpus = cpus
        self._file = book
        self._given = _read(book, cpus)

    def adopt(self, living: Iterable[tuple[JobId, int]]) -> None:
        """Only these attempts go on; whatever else was given is free."""
        alive = {_key(job, attempt) for job, attempt in living}
        self._keep({key: cpus for key, cpus in self._given.items() if key in alive})

    def give(
        self, job: JobId, attempt: int, *, count: int, near: frozenset[int]
    ) -> tuple[int, ...]:
        """So many CPUs for this attempt alone, or none where that cannot be."""
        key = _key(job, attempt)
        if key in self._given:
            return self._given[key]
        chosen = choose(self._free(), count, near=near)
        if chosen:
            self._keep(self._given | {key: chosen})
        return chosen

    def free(self, job: JobId, attempt: int) -> None:
        key = _key(job, attempt)
        if key in self._given:
            self._keep({each: cpus for each, cpus in self._given.items() if each != key})

    def _free(self) -> dict[int, tuple[int, ...]]:
        taken = {cpu for cpus in self._given.values() for cpu in cpus}
        return {
            numa: tuple(cpu for cpu in cpus if cpu not in taken)
            for numa, cpus in self._cpus.by_numa.items()
        }

    def _keep(self, given: _Book) -> None:
        if given == self._given:
            return
        self._given = given
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(given))
        os.replace(fresh, self._file)


def choose(
    free: Mapping[int, tuple[int, ...]], count: int, *, near: frozenset[int]
) -> tuple[int, ...]:
    """So many CPUs of these; empty where there are too few.

    One NUMA node, if one has room: that of the GPUs before others, then the one that is left with
    the least. Otherwise as few nodes as can be, in the same order of preference.
    """
    if count < 1 or sum(map(len, free.values())) < count:
        return ()
    holding = [numa for numa, cpus in free.items() if len(cpus) >= count]
    if holding:
        best = min(holding, key=lambda numa: (numa not in near, len(free[numa]), numa))
        return tuple(sorted(free[best][:count]))
    order = sorted(free, key=lambda numa: (numa not in near, -len(free[numa]), numa))
    return tuple(sorted([cpu for numa in order for cpu in free[numa]][:count]))


def _key(job: JobId, attempt: int) -> str:
    return f"{job}.{attempt}"


def _read(book: Path, cpus: Cpus) -> _Book:
    """What the file says, without CPUs that this machine no longer lets us use."""
    try:
        given = msgspec.json.decode(book.read_bytes(), type=_Book)
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    usable = {cpu for members in cpus.by_numa.values() for cpu in members}
    return {key: chosen for key, chosen in given.items() if usable.issuperset(chosen)}
