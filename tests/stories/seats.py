"""Where a job that already runs may sit: the first devices with room, found the plain way."""

from muster.model.cluster import Node
from muster.model.gpu import Device, Mig, MpsShare, Slice, TimeShare, enforcement
from muster.model.job import Ask, TaskGroup
from muster.model.placement import DeviceShare, Placement
from muster.model.resources import NOTHING
from muster.model.value import DeviceId, replace


def seat(task: TaskGroup, index: int, node: Node, *, held: list[Placement]) -> Placement | None:
    """Task `index` of the group on this node beside what is held, or None if there is no room."""
    model = node.devices[0].model if node.devices and task.each.gpus is not None else None
    amount = task.each.amount(model)
    here = [placed for placed in held if placed.node == node.id]
    left = node.capacity - sum((placed.amount for placed in here), start=NOTHING)
    devices = _shares(task.each, node, here)
    if devices is None:
        return None
    if amount.cpu_milli > left.cpu_milli or amount.memory_mib > left.memory_mib:
        return None
    return Placement(
        group=task.name,
        index=index,
        node=node.id,
        pool=node.pool,
        amount=amount,
        devices=devices,
    )


def seats(task: TaskGroup, nodes: list[Node], *, held: list[Placement]) -> list[Placement] | None:
    """Room for the fewest tasks that may start, filling one node after the other."""
    placements: list[Placement] = []
    for node in nodes:
        while len(placements) < task.fewest:
            placed = seat(task, len(placements), node, held=[*held, *placements])
            if placed is None:
                break
            placements.append(placed)
    return placements if len(placements) == task.fewest else None


def _shares(ask: Ask, node: Node, here: list[Placement]) -> tuple[DeviceShare, ...] | None:
    if ask.gpus is None:
        return ()
    taken = [share for placed in here for share in placed.devices]
    given: list[DeviceShare] = []
    for _ in range(ask.gpus.count):
        may_stack = isinstance(ask.gpus.slice, Mig)
        used = {share.device for share in given if not may_stack}
        share = _share(_without(node, used), ask.gpus.slice, [*taken, *given])
        if share is None:
            return None
        given.append(share)
    return tuple(given)


def _without(node: Node, used: set[DeviceId]) -> Node:
    return replace(node, devices=tuple(each for each in node.devices if each.id not in used))


def _share(node: Node, part: Slice | None, taken: list[DeviceShare]) -> DeviceShare | None:
    for device in node.devices:
        here = [share for share in taken if share.device == device.id]
        start = _mig_start(device, part, here) if isinstance(part, Mig) else None
        if device.healthy and (start is not None or _has_room(device, part, here)):
            return DeviceShare(
                device=device.id, slice=part, start=start, enforced=enforcement(part)
            )
    return None


def _mig_start(device: Device, part: Mig, here: list[DeviceShare]) -> int | None:
    taken = {share.start for share in here}
    free = (one.start for one in device.mig or () if one.profile == part.profile)
    return next((start for start in free if start not in taken), None)


def _has_room(device: Device, part: Slice | None, here: list[DeviceShare]) -> bool:
    if device.mig is not None:
        return False
    match part:
        case None:
            return not here
        case Mig():
            return False
        case MpsShare():
            shares = [share.slice for share in here if isinstance(share.slice, MpsShare)]
            whole = [*shares, part]
            return (
                len(shares) == len(here)
                and sum(share.milli for share in whole) <= 1_000
                and sum(_memory(share, device) for share in whole) <= device.memory_mib
            )
        case TimeShare():
            return all(share.slice == part for share in here) and len(here) < part.replicas


def _memory(share: MpsShare, device: Device) -> int:
    return share.memory_mib or device.memory_mib * share.milli // 1_000
