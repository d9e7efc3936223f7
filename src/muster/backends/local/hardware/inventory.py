"""What every way of having nodes on this machine can do: the real one, and pretend ones."""

from collections.abc import Iterable
from typing import Protocol

from muster.backends.base import Cut
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.cluster import Abilities, Node
from muster.model.placement import DeviceShare
from muster.model.samples import DeviceSample
from muster.model.value import ClusterName, DeviceId, Instant, NodeId, PoolName, Value

CLUSTER = ClusterName("local")
POOL = PoolName("local")


class DeviceError(Value, gc=False):
    """The driver reported this Xid. Empty device: it could not say which."""

    node: NodeId
    device: DeviceId
    xid: int


class Inventory(Protocol):
    """Nodes with their devices, as they are now."""

    def nodes(self) -> tuple[Node, ...]: ...

    def abilities(self) -> Abilities: ...

    def visible(self, share: DeviceShare) -> str:
        """What CUDA_VISIBLE_DEVICES must say for a task to see this share."""
        ...

    def wall(self, shares: Iterable[DeviceShare]) -> DeviceWall | None:
        """Which device nodes a job with these shares may open; None: there are none to keep."""
        ...

    def cut(self, action: Cut) -> None:
        """Cut a device, once and for all; BackendDownError when it cannot be done now."""
        ...

    def poll(self, now: Instant) -> bool:
        """Look at the devices' health. True: `nodes` are not what they were at the last poll."""
        ...

    def errors(self) -> tuple[DeviceError, ...]:
        """What drivers reported since this was last asked."""
        ...

    def samples(self, now: Instant) -> tuple[DeviceSample, ...]:
        """What the last look measured. Any thread may ask, and no device is waited for."""
        ...

    def resume(self, node: NodeId) -> None:
        """The administrator says that what was found there no longer counts."""
        ...

    def numa(self, device: DeviceId) -> int | None:
        """The NUMA node that a device is attached to, where that is known."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """For `muster doctor`: why there are no GPUs, how they link."""
        ...

    def close(self) -> None: ...
