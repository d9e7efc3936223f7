"""The nodes of a cluster that others use too: less what they hold, and what of it is news."""

from collections.abc import Iterable, Iterator, Mapping

from muster.model.cluster import Node
from muster.model.event import Event, NodeGone, NodeSeen
from muster.model.gpu import Device, Mig
from muster.model.placement import DeviceShare
from muster.model.resources import Resources
from muster.model.value import DeviceId, Instant, NodeId, Value, replace


class Taken(Value):
    """What others hold of a node. mig: instances by their profiles."""

    amount: Resources = Resources()
    mig: Mapping[str, int] = {}

    def __add__(self, other: "Taken") -> "Taken":
        profiles = sorted({*self.mig, *other.mig})
        return Taken(
            amount=self.amount + other.amount,
            mig={each: self.mig.get(each, 0) + other.mig.get(each, 0) for each in profiles},
        )


class NodeWatch:
    """The nodes as they were told, and as they are: less what others have of them."""

    def __init__(self) -> None:
        self._whole: dict[NodeId, Node] = {}
        self._told: dict[NodeId, Node] = {}
        self._taken: Mapping[NodeId, Taken] = {}

    def forget(self) -> None:
        """Tell everything again."""
        self._told.clear()

    def are(self, nodes: Iterable[Node]) -> None:
        self._whole = {node.id: node for node in nodes}

    def others_hold(self, taken: Mapping[NodeId, Taken]) -> None:
        self._taken = taken

    def news(self, ours: Iterable[DeviceShare], now: Instant) -> Iterator[Event]:
        """What differs from what was told. ours: what attempts of ours hold."""
        held = tuple(ours)
        found = {
            id: without(node, self._taken[id], held) if id in self._taken else node
            for id, node in self._whole.items()
        }
        for id, node in found.items():
            if self._told.get(id) != node:
                yield NodeSeen(at=now, node=node)
        for id in self._told:
            if id not in found:
                yield NodeGone(at=now, node=id)
        self._told = found


def without(node: Node, taken: Taken, ours: Iterable[DeviceShare]) -> Node:
    """The node less what others have of it.

    Engines say how many GPUs others have, not by the names that we gave them: those are taken away
    that none of our attempts holds, the last ones first.
    """
    held = tuple(ours)
    amount, devices = taken.amount, _without_instances(node.devices, taken.mig, held)
    count = -(-amount.gpu_milli // 1_000)
    used = {each.device for each in held}
    gone: set[DeviceId] = set()
    for each in reversed(devices):
        if count > 0 and each.id not in used and each.mig is None:
            gone.add(each.id)
            count -= (each.turns or 1) if each.split else 1
    left = tuple(each for each in devices if each.id not in gone)
    return replace(
        node,
        cpu_milli=max(0, node.cpu_milli - amount.cpu_milli),
        memory_mib=max(0, node.memory_mib - amount.memory_mib),
        devices=tuple(map(_full, left)) if count > 0 else left,
    )


def _full(device: Device) -> Device:
    """One that is split, and of which others have parts that nobody can tell from ours."""
    if not device.split:
        return device
    return replace(device, healthy=False, reason="others have the rest of its parts")


def _without_instances(
    devices: tuple[Device, ...], taken: Mapping[str, int], ours: tuple[DeviceShare, ...]
) -> tuple[Device, ...]:
    if not any(taken.values()):
        return devices
    left = dict(taken)
    held = {(each.device, each.start) for each in ours if isinstance(each.slice, Mig)}
    found: list[Device] = []
    for device in reversed(devices):
        instances = list(device.mig or ())
        for each in reversed(device.mig or ()):
            if left.get(each.profile, 0) > 0 and (device.id, each.start) not in held:
                left[each.profile] -= 1
                instances.remove(each)
        kept = device if device.mig is None else replace(device, mig=tuple(instances))
        found.append(kept)
    return tuple(reversed(found))
