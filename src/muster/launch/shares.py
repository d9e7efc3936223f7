"""What an attempt has of each of its nodes: from its placements to what steps share."""

from collections.abc import Sequence

from muster.launch.attempt import (
    DeviceAccess,
    PlacedAttempt,
    component_of,
    cpus_on,
    device_indices,
    memory_limit_mib,
)
from muster.launch.steps.shares import NodeShare
from muster.model.placement import Placement
from muster.model.value import DeviceId


def node_shares(placed: PlacedAttempt, access: Sequence[DeviceAccess]) -> tuple[NodeShare, ...]:
    """One share for each node of each component, in the order of the ranks."""
    found: dict[tuple[int, str], list[tuple[Placement, DeviceAccess]]] = {}
    for placement, own in zip(placed.allocation.placements, access, strict=True):
        key = (component_of(placement.group), placement.node)
        found.setdefault(key, []).append((placement, own))
    return tuple(_share(placed, here) for here in found.values())


def _share(placed: PlacedAttempt, here: Sequence[tuple[Placement, DeviceAccess]]) -> NodeShare:
    placements = [placement for placement, _ in here]
    devices: dict[str, DeviceId] = {}
    env: dict[str, str] = {}
    for placement, access in here:
        shares = [share.device for share in placement.devices]
        devices |= dict(zip(access.devices, shares, strict=True))
        env |= access.env
    node = placements[0].node
    indices = device_indices(placed, node)
    return NodeShare(
        node=node,
        component=component_of(placements[0].group),
        cpus=cpus_on(placements, node),
        memory_mib=memory_limit_mib(placements),
        gpu_milli=sum(each.amount.gpu_milli for each in placements),
        gpus=tuple(devices),
        indices=tuple(indices.get(device, at) for at, device in enumerate(devices.values())),
        env=env,
    )
