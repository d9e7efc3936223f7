"""Metrics of pools: the states of their GPUs, and which free ones serve nobody who waits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from muster.controller.loop.controller import LastPlan
from muster.controller.watching.tally import NO_ROOM_TAKEN, Tally
from muster.controller.world.record import Record
from muster.model.cluster import Node, NodeState, Pool
from muster.model.gpu import WHOLE_GPU_MILLI, DeviceState
from muster.model.job import WAITING
from muster.model.reason import MakingRoom, NoRoom
from muster.model.value import ClusterName, DeviceId, GpuModel, Instant, PoolName
from muster.telemetry import names
from muster.telemetry.family import Family, Labels, Point
from muster.telemetry.spare import Idle, PoolKey, Spare, Wanted, spare, wanted_by

MOST_WAITING = 2_000
"""So many of the waiting jobs are held against what is free."""

_Kind = tuple[ClusterName, PoolName, GpuModel]


class _Devices:
    """Of which kind and state GPUs are as far as nodes tell it: worked out when nodes change.

    Kinds are known by their place in `kinds`, because there may be many GPUs and few kinds.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.kinds: dict[_Kind, int] = {}
        self.working: dict[DeviceId, int] = {}
        self.draining: dict[DeviceId, int] = {}
        self.broken: Counter[int] = Counter()
        for node in nodes:
            for device in node.devices:
                kind = (node.cluster, node.pool, device.model)
                place = self.kinds.setdefault(kind, len(self.kinds))
                if not device.healthy or node.state is NodeState.DOWN:
                    self.broken[place] += WHOLE_GPU_MILLI
                elif node.state is NodeState.DRAINING:
                    self.draining[device.id] = place
                else:
                    self.working[device.id] = place
        self.all_working = Counter(self.working.values())
        self.all_draining = Counter(self.draining.values())


class PoolSource:
    """What is so of pools now."""

    def __init__(self, record: Record, tally: Tally, last_plan: LastPlan) -> None:
        self._record = record
        self._tally = tally
        self._last_plan = last_plan
        self._devices: tuple[int, _Devices] = (-1, _Devices(()))
        # Of which plan it was worked out, and what.
        self._spare: tuple[int, Mapping[PoolKey, Spare]] = (-1, {})

    def __call__(self, _: Instant) -> Iterator[Family]:
        yield names.POOL_GPUS.family(self._by_state())
        found = self._looked_at_spare()
        yield names.POOL_FILLABLE.family(
            Point(_labels(pool), each.fillable) for pool, each in found.items()
        )
        yield names.POOL_STRANDED.family(
            Point(_labels(pool), each.stranded) for pool, each in found.items()
        )

    def _by_state(self) -> Iterator[Point]:
        """Every GPU is in one state: broken before drained, drained before held."""
        devices = self._known()
        held = [0] * len(devices.kinds)
        still_held: Counter[int] = Counter()
        for device, milli in self._tally.held().items():
            place = devices.working.get(device)
            if place is None and (place := devices.draining.get(device)) is not None:
                still_held[place] += 1
            if place is not None:
                held[place] += min(WHOLE_GPU_MILLI, milli)
        for kind, place in sorted(devices.kinds.items()):
            working = devices.all_working[place] + still_held[place]
            amounts = (
                ("free", working * WHOLE_GPU_MILLI - held[place]),
                ("held", held[place]),
                ("broken", devices.broken[place]),
                ("drained", (devices.all_draining[place] - still_held[place]) * WHOLE_GPU_MILLI),
            )
            labels = tuple(zip(("cluster", "pool", "model"), kind, strict=True))
            for state, milli in amounts:
                whole, part = divmod(milli, WHOLE_GPU_MILLI)
                value = milli / WHOLE_GPU_MILLI if part else whole
                yield Point((*labels, ("state", state)), value)

    def _known(self) -> _Devices:
        with self._record.lock:
            version = self._record.nodes_version
            nodes = () if self._devices[0] == version else tuple(self._record.nodes.values())
        if self._devices[0] != version:
            self._devices = (version, _Devices(nodes))
        return self._devices[1]

    def _looked_at_spare(self) -> Mapping[PoolKey, Spare]:
        number = self._last_plan.number
        if self._spare[0] != number:
            self._spare = (number, self._worked_out())
        return self._spare[1]

    def _worked_out(self) -> Mapping[PoolKey, Spare]:
        """As of the last plan: what changed since then is not held against it."""
        with self._record.lock:
            nodes = tuple(self._record.nodes.values())
            pools = self._record.pools(self._record.site)
        every = {(node.cluster, node.pool): Spare() for node in nodes if node.devices}
        wanted = self._wanted()
        if not wanted:
            return every
        return {**every, **spare(self._idle(nodes, pools), wanted)}

    def _wanted(self) -> tuple[Wanted, ...]:
        """None while room is being made: then it is not for everybody."""
        waits, jobs = self._last_plan.waits, self._record.jobs
        if any(isinstance(wait.why, MakingRoom) for wait in waits.values()):
            return ()
        alone = (
            job
            for job_id, wait in waits.items()
            if isinstance(wait.why, NoRoom)
            and (job := jobs.get(job_id)) is not None
            and job.state in WAITING
        )
        return tuple(each for job in islice(alone, MOST_WAITING) for each in wanted_by(job.spec))

    def _idle(self, nodes: Iterable[Node], pools: Mapping[PoolName, Pool]) -> Iterator[Idle]:
        """Nodes with free GPUs that were as they are when the last plan was made."""
        held, taken = self._tally.held(), self._tally.taken()
        version = self._last_plan.version
        reserved = bool(self._record.site.reservations)
        for node in nodes:
            free = Counter(
                (device.model, device.memory_mib)
                for device in node.devices
                if device.state is DeviceState.WELL
                and device.mig is None
                and not held.get(device.id)
            )
            room = taken.get(node.id, NO_ROOM_TAKEN)
            if not free or node.state is not NodeState.UP or room.version > version:
                continue
            pool = pools.get(node.pool)
            for (model, memory_mib), gpus in free.items():
                yield Idle(
                    pool=(node.cluster, node.pool),
                    model=model,
                    gpu_memory_mib=memory_mib,
                    gpus=gpus,
                    cpu_milli=node.cpu_milli - room.cpu_milli,
                    memory_mib=node.memory_mib - room.memory_mib,
                    is_plain=not reserved and not node.taints and _is_for_all(pool),
                )


def _is_for_all(pool: Pool | None) -> bool:
    return pool is not None and pool.starts and pool.is_open and not pool.spot


def _labels(pool: PoolKey) -> Labels:
    return (("cluster", pool[0]), ("pool", pool[1]))
