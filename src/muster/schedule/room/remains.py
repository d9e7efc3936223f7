"""What is left on a node beside those who are there, and what families of tasks see of it."""

from collections.abc import Iterable, Mapping, Set

from muster.model.gpu import Slice
from muster.model.placement import DeviceShare, Placement
from muster.model.value import DeviceId, JobId
from muster.schedule.room.index import Promise, Room, Stay, Tenant
from muster.schedule.room.needs import Need, tasks_on_host
from muster.schedule.room.profiles import Family, GpuNeed, Profile, Profiles
from muster.schedule.room.slices import DeviceState, resting, with_tenant

SEALED = -1
"""What is left beside an exclusive job: less than any task asks for, even one without asks."""

MOST_SEEN = 100_000
"""So many states of a node's devices are remembered with what families see of them."""

NO_JOBS: frozenset[JobId] = frozenset()

Left = tuple[int, int, tuple[DeviceState | None, ...]]
"""CPU milli, memory MiB and devices, in the node's order; None for one that may not be used."""


class Remains:
    """Works it out from who is there; what is worked out often is remembered."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self._seen: dict[tuple[DeviceState | None, ...], tuple[Profile, ...]] = {}
        self._taken: dict[tuple[DeviceState, Slice | None, int | None], DeviceState] = {}

    def left(self, room: Room, tenants: Mapping[JobId, Tenant]) -> Left:
        """What would be left on the node beside these tenants."""
        node = room.node
        cpu_milli, memory_mib = node.cpu_milli, node.memory_mib
        states = dict(self.resting(room))
        for _, tenant in sorted(tenants.items()):
            for placement in tenant.placements:
                memory_mib -= placement.amount.memory_mib
                if not tenant.is_suspended:
                    cpu_milli -= placement.amount.cpu_milli
                    self._take_shares(states, placement)
        for device in _unready(tenants):
            states.pop(device, None)
        if any(tenant.is_exclusive for tenant in tenants.values()):
            cpu_milli, memory_mib = SEALED, SEALED
        return cpu_milli, memory_mib, tuple([states.get(device.id) for device in node.devices])

    def fit_without(
        self,
        room: Room,
        gone: Set[JobId],
        need: Need,
        gpus: GpuNeed | None,
        promises: Iterable[Promise] = (),
    ) -> int:
        """How many tasks would fit if some of those who are there left, beside these promises."""
        staying = {job: tenant for job, tenant in room.tenants.items() if job not in gone}
        promises = tuple(promises)
        if need.where.exclusive and (staying or promises):
            return 0
        cpu_milli, memory_mib, devices = self.left(room, staying)
        for promise in promises:
            cpu_milli -= promise.takes[0]
            memory_mib -= promise.takes[1]
            kept = promise.devices
            devices = tuple([None if at in kept else each for at, each in enumerate(devices)])
        fit = tasks_on_host(need, cpu_milli, memory_mib)
        if gpus is None or not fit:
            return fit
        return min(fit, self._profiles.most(self._profiles.of(devices, gpus.family), gpus))

    def fit_for(self, room: Room, need: Need, gpus: GpuNeed | None, stay: Stay) -> int:
        """How many tasks would fit beside those who are there, if they stay so long."""
        outlived = [promise for promise in room.promises if stay.outlives(promise)]
        if gpus is not None and gpus.family is Family.MIG:
            # Until a cut is made, the room says more than those who are there.
            return self.fit_without(room, NO_JOBS, need, gpus, outlived)
        if need.where.exclusive and (room.tenants or outlived):
            return 0
        fit = tasks_on_host(need, *room.host_for(stay))
        if gpus is None or not fit:
            return fit
        barred = room.barred(stay)
        devices = tuple([each for at, each in enumerate(room.devices) if at not in barred])
        return min(fit, self._profiles.most(self.views_of(devices)[gpus.family], gpus))

    def views_of(self, devices: tuple[DeviceState | None, ...]) -> tuple[Profile, ...]:
        """What each family sees of these devices."""
        known = self._seen.get(devices)
        if known is None:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            known = tuple(self._profiles.of(devices, family) for family in Family)
            self._seen[devices] = known
        return known

    def resting(self, room: Room) -> dict[DeviceId, DeviceState]:
        """The healthy devices of a node without tenants."""
        if room.resting is None:
            room.resting = {
                device.id: self._profiles.state(resting(device))
                for device in room.node.devices
                if device.healthy
            }
        return room.resting

    def _take_shares(self, states: dict[DeviceId, DeviceState], placement: Placement) -> None:
        for share in placement.devices:
            state = states.get(share.device)
            if state is not None:
                states[share.device] = self._with_tenant(state, share)

    def _with_tenant(self, state: DeviceState, share: DeviceShare) -> DeviceState:
        key = (state, share.slice, share.start)
        known = self._taken.get(key)
        if known is None:
            found = with_tenant(state, share.slice, share.start)
            known = self._taken[key] = self._profiles.state(found)
        return known


def _unready(tenants: Mapping[JobId, Tenant]) -> set[DeviceId]:
    """Devices that are claimed while others still have to leave them."""
    return {
        share.device
        for tenant in tenants.values()
        if tenant.is_unready
        for placement in tenant.placements
        for share in placement.devices
    }
