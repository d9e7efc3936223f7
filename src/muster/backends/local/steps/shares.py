"""What an attempt has of each of its nodes, as its supervisor shares it out among steps. Pure."""

from collections.abc import Sequence

from muster.backends.base import Run
from muster.backends.local.attempt import spool
from muster.backends.local.attempt.environment import DeviceAccess
from muster.backends.local.attempt.slurm_environment import component_of
from muster.model.placement import Placement
from muster.model.value import DeviceId


def of_run(run: Run, given: Sequence[DeviceAccess]) -> list[spool.RoomFile]:
    """One room for each node of each component, in the order of the ranks."""
    found: dict[tuple[int, str], list[tuple[Placement, DeviceAccess]]] = {}
    for placement, own in zip(run.allocation.placements, given, strict=True):
        key = (component_of(placement.group), placement.node)
        found.setdefault(key, []).append((placement, own))
    return [_room(run, here) for here in found.values()]


def _room(run: Run, here: Sequence[tuple[Placement, DeviceAccess]]) -> spool.RoomFile:
    placements = [placement for placement, _ in here]
    devices: dict[str, DeviceId] = {}
    sharing: dict[str, str] = {}
    for placement, given in here:
        shares = [share.device for share in placement.devices]
        devices |= dict(zip(given.devices, shares, strict=True))
        sharing |= given.sharing
    memory = [placement.amount.memory_mib for placement in placements]
    return {
        "node": placements[0].node,
        "component": component_of(placements[0].group),
        "cpus": max(1, sum(each.amount.cpu_milli for each in placements) // 1_000),
        # One task without a limit, and there is none for the node.
        "memory_mib": sum(memory) if all(memory) else 0,
        "gpu_milli": sum(each.amount.gpu_milli for each in placements),
        "gpus": list(devices),
        "indices": _indices(run, placements[0], list(devices.values())),
        "env": sharing,
    }


def _indices(run: Run, placement: Placement, devices: Sequence[DeviceId]) -> list[int]:
    node = run.nodes.get(placement.node)
    known = {each.id: each.index for each in node.devices} if node is not None else {}
    return [known.get(device, at) for at, device in enumerate(devices)]
