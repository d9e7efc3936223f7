"""What attempts do outside their GPUs: from control groups of both versions, and /proc."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.backends.local.attempt import spool
from muster.backends.local.isolation.cgroup import CgroupRoots
from muster.backends.local.measuring import kernel_files
from muster.backends.local.measuring.host_reader import TICKS_A_SECOND, text_of
from muster.model.placement import Placement
from muster.model.samples import JobSample, Pressure
from muster.model.value import Instant, JobId, Value, replace

_MOST_PROCESSES = 512
_MOST_THREADS = 2_048
"""More of one job are not looked at one by one; what the group counts has all of them."""
_NANOSECONDS = 1_000_000_000
_NO_LIMIT = 1 << 60
"""Version 1 writes a number near 2^63 where there is no limit."""


class Held(Value):
    """One attempt, by its folder in the spool, where it runs, and its processes."""

    key: str
    placements: tuple[Placement, ...]
    pids: tuple[int, ...] = ()


class Counted(Value, gc=False):
    """What a group, or its processes together, have used so far."""

    cpu_ns: int | None = None
    throttled_ns: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None


class _Memory(Value, gc=False):
    now_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass
class _Look:
    """states: one letter for each process. threads: CPU ticks by `PID/TID`."""

    at: Instant
    states: str
    threads: dict[str, int]
    counted: Counted


class JobReader:
    """Remembers the last look at each attempt. One thread."""

    def __init__(self, roots: CgroupRoots, proc: str = "/proc") -> None:
        self._folders = dict(roots.folders)
        self._proc = proc
        self._before: dict[str, _Look] = {}

    def look(self, held: tuple[Held, ...], now: Instant) -> tuple[JobSample, ...]:
        """Those that have processes here; what was held before and is no more is forgotten."""
        found = {each.key: sample for each in held if (sample := self._one(each, now)) is not None}
        self._before = {key: look for key, look in self._before.items() if key in found}
        return tuple(found[key] for key in sorted(found))

    def _one(self, held: Held, now: Instant) -> JobSample | None:
        parts = spool.parts_of(held.key)
        if parts is None or not held.pids or not held.placements:
            return None
        look = self._looked(held, now)
        before = self._before.get(held.key)
        self._before[held.key] = look
        memory = self._memory(held.key)
        sample = JobSample(
            job=JobId(parts[0]),
            attempt=parts[1],
            node=held.placements[0].node,
            at=now,
            processes=len(held.pids),
            cpu_granted_milli=sum(each.amount.cpu_milli for each in held.placements),
            cpu_ns_total=look.counted.cpu_ns,
            memory_bytes=memory.now_bytes,
            memory_peak_bytes=memory.peak_bytes,
            memory_limit_bytes=memory.limit_bytes,
            read_bytes_total=look.counted.read_bytes,
            written_bytes_total=look.counted.written_bytes,
            blocked_milli=_part_of(look.states.count("D"), len(look.states)),
            pressure=self._pressure(held.key),
        )
        return sample if before is None or now <= before.at else _since(sample, before, look)

    def _looked(self, held: Held, now: Instant) -> _Look:
        """What the group counts goes first: it knows of processes that have ended."""
        states, threads, own = self._processes(held.pids[:_MOST_PROCESSES])
        stat = kernel_files.keyed(self._text("v2", held.key, "cpu.stat"))
        stat_v1 = kernel_files.keyed(self._text("cpu", held.key, "cpu.stat"))
        cpu_v1 = kernel_files.number(self._text("cpu", held.key, "cpuacct.usage"))
        moved = kernel_files.transferred(self._text("v2", held.key, "io.stat"))
        counted = Counted(
            cpu_ns=_first(_thousandfold(stat.get("usage_usec")), cpu_v1, own.cpu_ns),
            throttled_ns=_first(
                _thousandfold(stat.get("throttled_usec")), stat_v1.get("throttled_time")
            ),
            read_bytes=own.read_bytes if moved is None else moved[0],
            written_bytes=own.written_bytes if moved is None else moved[1],
        )
        return _Look(at=now, states=states, threads=threads, counted=counted)

    def _processes(self, pids: Sequence[int]) -> tuple[str, dict[str, int], Counted]:
        """What each does, the ticks of their threads, and what they have used together."""
        seen = [stat for pid in pids if (stat := self._stat(str(pid))) is not None]
        threads: dict[str, int] = {}
        for name in self._threads(pids):
            stat = self._stat(name)
            if stat is not None:
                threads[name] = stat[1]
        moved = [kernel_files.keyed(text_of(f"{self._proc}/{pid}/io")) for pid in pids]
        counted = Counted(
            cpu_ns=_NANOSECONDS * sum(ticks for _, ticks in seen) // TICKS_A_SECOND,
            read_bytes=_summed(moved, "read_bytes"),
            written_bytes=_summed(moved, "write_bytes"),
        )
        return "".join(state for state, _ in seen), threads, counted

    def _threads(self, pids: Sequence[int]) -> Iterator[str]:
        left = _MOST_THREADS
        for pid in pids:
            # A process may end while we look.
            with contextlib.suppress(OSError):
                for tid in os.listdir(f"{self._proc}/{pid}/task")[:left]:
                    left -= 1
                    yield f"{pid}/task/{tid}"

    def _stat(self, name: str) -> tuple[str, int] | None:
        return kernel_files.state_and_ticks(text_of(f"{self._proc}/{name}/stat"))

    def _memory(self, key: str) -> _Memory:
        """Version 2 where it has the controller, else version 1."""
        v2 = kernel_files.number(self._text("v2", key, "memory.current"))
        if v2 is not None:
            return _Memory(
                now_bytes=v2,
                peak_bytes=kernel_files.number(self._text("v2", key, "memory.peak")),
                limit_bytes=kernel_files.number(self._text("v2", key, "memory.max")),
            )
        limit = kernel_files.number(self._text("memory", key, "memory.limit_in_bytes"))
        return _Memory(
            now_bytes=kernel_files.number(self._text("memory", key, "memory.usage_in_bytes")),
            peak_bytes=kernel_files.number(self._text("memory", key, "memory.max_usage_in_bytes")),
            limit_bytes=None if limit is None or limit >= _NO_LIMIT else limit,
        )

    def _pressure(self, key: str) -> Pressure:
        kinds = ("cpu", "memory", "io")
        return kernel_files.pressure(
            {kind: self._text("v2", key, f"{kind}.pressure") for kind in kinds}
        )

    def _text(self, hierarchy: str, key: str, name: str) -> str:
        root = self._folders.get(hierarchy)
        return "" if root is None else text_of(f"{root}/{key}/{name}")


def _since(sample: JobSample, before: _Look, look: _Look) -> JobSample:
    """The same look, with what happened since the one before."""
    elapsed_ms = look.at - before.at
    then, now = before.counted, look.counted
    most = max(
        (
            ticks - before.threads[name]
            for name, ticks in look.threads.items()
            if name in before.threads
        ),
        default=None,
    )
    throttled = _per_second(then.throttled_ns, now.throttled_ns, elapsed_ms)
    used = _per_second(then.cpu_ns, now.cpu_ns, elapsed_ms)
    return replace(
        sample,
        interval_ms=elapsed_ms,
        cpu_used_milli=None if used is None else used // 1_000_000,
        cpu_throttled_milli=None if throttled is None else min(1_000, throttled // 1_000_000),
        busiest_thread_milli=(
            None if most is None else 1_000_000 * max(0, most) // (TICKS_A_SECOND * elapsed_ms)
        ),
        read_bytes_per_s=_per_second(then.read_bytes, now.read_bytes, elapsed_ms),
        written_bytes_per_s=_per_second(then.written_bytes, now.written_bytes, elapsed_ms),
    )


def _per_second(then: int | None, now: int | None, elapsed_ms: int) -> int | None:
    """How fast it grew. What fell has begun again, or a process took its part with it."""
    if then is None or now is None:
        return None
    return 1_000 * max(0, now - then) // elapsed_ms


def _part_of(some: int, all: int) -> int | None:
    return 1_000 * some // all if all else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _thousandfold(value: int | None) -> int | None:
    return None if value is None else 1_000 * value


def _summed(tables: Sequence[Mapping[str, int]], name: str) -> int | None:
    known = [table[name] for table in tables if name in table]
    return sum(known) if known else None
