"""The machine as the backend uses it: its nodes, and what of them an attempt gets to see."""

from collections.abc import Mapping
from pathlib import Path

from muster.backends.base import Cut, Wake
from muster.backends.local.hardware.gpus import find_inventory
from muster.backends.local.hardware.host import hardware
from muster.backends.local.hardware.inventory import CLUSTER, DeviceError, Inventory
from muster.backends.local.hardware.mps import Mps, client_limits, mps_binary
from muster.backends.local.hardware.pinning import Pinning
from muster.backends.local.hardware.pretend import Pretend, PretendInventory
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.cluster import BackendKind, Cluster, Node
from muster.model.gpu import Device, MpsShare
from muster.model.placement import Allocation, DeviceShare, Placement
from muster.model.samples import DeviceSample
from muster.model.value import DeviceId, Instant, JobId, NodeId


def find_machine(
    home: Path, pretend: tuple[Pretend, ...] = (), wake: Wake = lambda: None
) -> "Machine":
    """This machine as it is, or the pretend nodes in its place.

    `wake` is called, from any thread, when a device's health should be polled.
    """
    if pretend:
        return Machine(PretendInventory(home, pretend))
    here, binary = hardware(), mps_binary()
    return Machine(
        find_inventory(here, mps=binary is not None, wake=wake, home=home),
        cores=Pinning(here.cpus, home / "cpus.json"),
        mps=Mps(home / "mps", binary),
    )


class Machine:
    """One backend's hardware. Without `mps` and `cores`, the nodes are pretend ones.

    One thread calls, except for `nodes`, `cluster` and `samples`.
    """

    def __init__(
        self, inventory: Inventory, *, cores: Pinning | None = None, mps: Mps | None = None
    ) -> None:
        self._inventory = inventory
        self._pinning = cores
        self._mps = mps

    def cluster(self) -> Cluster:
        return Cluster(
            name=CLUSTER, backend=BackendKind.LOCAL, abilities=self._inventory.abilities()
        )

    def nodes(self) -> tuple[Node, ...]:
        """What is there now, with how the devices are cut and whether they are well."""
        return self._inventory.nodes()

    def poll(self, now: Instant) -> bool:
        """Look at the devices' health, cheaply. True: `nodes` changed since the last poll."""
        return self._inventory.poll(now)

    def errors(self) -> tuple[DeviceError, ...]:
        """What drivers reported since this was last asked."""
        return self._inventory.errors()

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:
        """What the last look at the devices measured. Any thread may ask."""
        return self._inventory.samples(now)

    def resume(self, node: NodeId) -> None:
        """What was found wrong with this node's devices no longer counts; they are seen afresh."""
        self._inventory.resume(node)

    def remarks(self) -> tuple[str, ...]:
        """For `muster doctor`: why there are no GPUs, and how those that are there link up."""
        return self._inventory.remarks()

    def adopt(self, allocations: tuple[Allocation, ...]) -> None:
        """These attempts go on; whatever else held CPUs or an MPS daemon does so no longer."""
        if self._pinning is not None:
            self._pinning.adopt((each.job, each.attempt) for each in allocations)
        if self._mps is not None:
            placements = (place for each in allocations for place in each.placements)
            self._mps.adopt(filter(None, map(_mps_devices, placements)))

    def visible(self, share: DeviceShare) -> str:
        """An entry of CUDA_VISIBLE_DEVICES: a GPU's UUID, a MIG UUID, or a pretend GPU's index."""
        return self._inventory.visible(share)

    def sharing(self, placement: Placement) -> Mapping[str, str]:
        """The environment that keeps a task to its MPS shares; starts the MPS daemon if need be.

        Each call wants one `release`. Limits of pretend GPUs are only written down.
        """
        shares = [
            (share.slice, self._device(share.device).memory_mib)
            for share in placement.devices
            if isinstance(share.slice, MpsShare)
        ]
        if not shares:
            return {}
        limits = client_limits(shares)
        if self._mps is None:
            return limits
        return {**self._mps.join(_mps_devices(placement)), **limits}

    def wall(self, allocation: Allocation) -> DeviceWall | None:
        """Which device nodes the attempt may open; None where there are none to keep."""
        return self._inventory.wall(
            share for placement in allocation.placements for share in placement.devices
        )

    def release(self, placement: Placement) -> None:
        """The task is over: undoes one `sharing`."""
        devices = _mps_devices(placement)
        if self._mps is not None and devices:
            self._mps.leave(devices)

    def cpus(self, allocation: Allocation) -> tuple[int, ...]:
        """The CPUs that this attempt alone may use, until `free`; empty means: not pinned.

        Only whole CPUs are given away, and pretend ones not at all.
        """
        milli = sum(placement.amount.cpu_milli for placement in allocation.placements)
        if self._pinning is None or milli % 1_000:
            return ()
        devices = [share.device for each in allocation.placements for share in each.devices]
        numas = (self._inventory.numa(device) for device in devices)
        near = frozenset(numa for numa in numas if numa is not None)
        return self._pinning.give(
            allocation.job, allocation.attempt, count=milli // 1_000, near=near
        )

    def free(self, job: JobId, attempt: int) -> None:
        """The attempt is over: its CPUs are free."""
        if self._pinning is not None:
            self._pinning.free(job, attempt)

    def cut(self, action: Cut) -> None:
        """Cut a device into MIG instances; BackendDownError says why it cannot be done now."""
        self._inventory.cut(action)

    def close(self) -> None:
        """Let go of the hardware. MPS daemons stay: jobs use them."""
        self._inventory.close()

    def _device(self, id: DeviceId) -> Device:
        return next(each for node in self.nodes() for each in node.devices if each.id == id)


def _mps_devices(placement: Placement) -> tuple[DeviceId, ...]:
    return tuple(each.device for each in placement.devices if isinstance(each.slice, MpsShare))
