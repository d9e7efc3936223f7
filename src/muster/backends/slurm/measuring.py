"""What attempts of ours use on a Slurm cluster: asked of it for all of them together.

`sstat` asks every node of a job, and may take its time: a thread of its own waits for it, once a
minute, and orders go on meanwhile.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Thread

from muster.backends.slurm.usage import Usage
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError, Wire
from muster.model.errors import BackendDownError
from muster.model.placement import Allocation, Placement
from muster.model.samples import DeviceSample, JobSample, Samples
from muster.model.value import ClusterName, Instant, NodeId, Value

log = logging.getLogger(__name__)

PAUSE_MS = 60_000
STALE_PAUSES = 3

_NOTHING: Mapping[str, Usage] = {}


class Running(Value):
    """An attempt that runs, and what Slurm calls it."""

    handle: str
    allocation: Allocation


class Measuring:
    """Asked to look by the thread of the backend; any thread may have what was found."""

    def __init__(self, cluster: ClusterName, wire: Wire, clock: Callable[[], Instant]) -> None:
        self._cluster, self._wire, self._clock = cluster, wire, clock
        self._asked_at: Instant | None = None
        self._thread: Thread | None = None
        # Nothing is known before the first answer, and that is nobody's fault for a while.
        self._told = Samples(at=clock(), secondhand=True)
        self._before: tuple[Instant, Mapping[str, Usage]] = (Instant(0), _NOTHING)
        self._why = "it has not answered yet"
        self._is_refused = False

    def is_due(self, now: Instant) -> bool:
        is_asking = self._thread is not None and self._thread.is_alive()
        return not is_asking and (self._asked_at is None or now - self._asked_at >= PAUSE_MS)

    def ask(self, running: Sequence[Running]) -> None:
        """Have it asked, and go on."""
        self._asked_at = self._clock()
        self._thread = Thread(
            target=self.ask_once, args=(running,), name=f"sstat-{self._cluster}", daemon=True
        )
        self._thread.start()

    def ask_once(self, running: Sequence[Running]) -> None:
        """Ask for everything; what goes wrong is said to who asks for samples."""
        try:
            found = self._usage([each.handle for each in running])
        except SlurmDownError as error:
            self._why = str(error)
            return
        except Exception:
            self._why = "a mistake of ours; see the log"
            log.exception("what jobs of cluster %s use is not understood", self._cluster)
            return
        at, before = self._clock(), self._before
        self._before = (at, found)
        jobs = [each for one in running for each in _jobs(one, found, before, at)]
        devices = [each for one in running for each in _devices(one, found, at)]
        self._told = Samples(at=at, jobs=tuple(jobs), devices=tuple(devices), secondhand=True)

    def samples(self, now: Instant) -> Samples:
        """BackendDownError says why nothing is known."""
        told = self._told
        if now - told.at > STALE_PAUSES * PAUSE_MS:
            raise BackendDownError(self._cluster, f"sstat told nothing: {self._why}")
        return told

    def _usage(self, handles: Sequence[str]) -> Mapping[str, Usage]:
        if not handles:
            return _NOTHING
        try:
            found = self._wire.usage(handles)
        except SlurmRefusedError as error:
            # Clusters that gather nothing about jobs are no reason to call anybody.
            if not self._is_refused:
                log.warning("cluster %s measures no jobs: %s", self._cluster, error)
            self._is_refused = True
            return _NOTHING
        self._is_refused = False
        return found


def _jobs(
    running: Running,
    found: Mapping[str, Usage],
    before: tuple[Instant, Mapping[str, Usage]],
    at: Instant,
) -> Iterator[JobSample]:
    """By node. Slurm tells the sum: each node is taken to have used its part of what was given."""
    usage = found.get(running.handle)
    if usage is None:
        return
    since, earlier = before
    passed = at - since if running.handle in earlier else 0
    grown = _grown(earlier.get(running.handle, Usage()).cpu_ms, usage.cpu_ms)
    given = _cpu_by_node(running.allocation)
    whole = sum(given.values())
    for node, cpu_milli in given.items():
        parts, of = (cpu_milli, whole) if whole else (1, len(given))
        yield JobSample(
            job=running.allocation.job,
            attempt=running.allocation.attempt,
            node=node,
            at=at,
            interval_ms=passed or None,
            cpu_granted_milli=cpu_milli,
            cpu_used_milli=(
                1_000 * grown * parts // of // passed if passed and grown is not None else None
            ),
            cpu_ns_total=_part(usage.cpu_ms, 1_000_000 * parts, of),
            memory_peak_bytes=_part(usage.memory_peak_bytes, parts, of),
        )


def _devices(running: Running, found: Mapping[str, Usage], at: Instant) -> Iterator[DeviceSample]:
    """Of whole GPUs. Slurm tells the sum over a job's: each is taken to do its part of it."""
    usage = found.get(running.handle)
    placements = running.allocation.placements
    held = {
        share.device: placement
        for placement in placements
        for share in placement.devices
        if share.slice is None
    }
    if usage is None or not held or _shares(placements):
        return
    if usage.gpu_milli is None and usage.gpu_memory_bytes is None:
        return
    busy_milli = _part(usage.gpu_milli, 1, len(held))
    for device, placement in held.items():
        yield DeviceSample(
            device=device,
            node=placement.node,
            at=at,
            index=int(device.rpartition("gpu")[2]),
            interval_ms=PAUSE_MS,
            busy_milli=None if busy_milli is None else min(1_000, busy_milli),
            memory_used_bytes=_part(usage.gpu_memory_bytes, 1, len(held)),
        )


def _shares(placements: Sequence[Placement]) -> bool:
    return any(share.slice is not None for each in placements for share in each.devices)


def _cpu_by_node(allocation: Allocation) -> Mapping[NodeId, int]:
    found: dict[NodeId, int] = {}
    for each in allocation.placements:
        found[each.node] = found.get(each.node, 0) + each.amount.cpu_milli
    return found


def _grown(before: int | None, now: int | None) -> int | None:
    """Steps that ended are no longer told of: a sum that got smaller says nothing."""
    return None if before is None or now is None or now < before else now - before


def _part(amount: int | None, parts: int, of: int) -> int | None:
    return None if amount is None else amount * parts // of
