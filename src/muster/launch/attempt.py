"""The attempt as it was placed, and the questions that all its environments ask about it."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from muster.model.cluster import Node
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.placement import Allocation, Placement
from muster.model.site import SHARED_TMP, Confinement
from muster.model.value import NodeId, Value, replace

# A task that has a small part of a CPU must still be able to load its program.
_LEAST_MIB = 512
_SMALLEST_MIB = 30
"""No limit is smaller, as with Slurm: less kills the shell that starts the command."""

_Placed = TypeVar("_Placed", bound="PlacedAttempt")


class PlacedAttempt(Value):
    """One attempt of a job with its place. `job.spec.launch` is empty; `launch` has it.

    nodes: those of the placements, as they are known now.
    checkpoint: the newest checkpoint that an earlier attempt really wrote, if any.
    restarts: how many attempts there were before this one.
    confinement: what the site keeps every job to.
    """

    job: Job
    allocation: Allocation
    launch: Launch
    nodes: Mapping[NodeId, Node]
    checkpoint: str | None = None
    restarts: int = 0
    confinement: Confinement = SHARED_TMP


class DeviceAccess(Value):
    """How one placement gets at its devices, which only the engine knows.

    devices: by the names that CUDA_VISIBLE_DEVICES takes, in the order of the placement's shares.
    env: what else must be set, for instance for MPS.
    """

    devices: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


def in_rank_order(placed: _Placed) -> _Placed:
    """Ranks follow the groups as the job names them, and then the index within the group."""
    placements = ranked(placed.job, placed.allocation.placements)
    return replace(placed, allocation=replace(placed.allocation, placements=placements))


def ranked(job: Job, placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements of a job's tasks in the order of their ranks."""
    order = {group.name: place for place, group in enumerate(job.spec.groups)}

    def rank(placement: Placement) -> tuple[int, str, int]:
        return (order.get(placement.group, len(order)), placement.group, placement.index)

    return tuple(sorted(placements, key=rank))


def nodes_of(placements: Sequence[Placement]) -> tuple[NodeId, ...]:
    """In the order of the ranks: the first is where rank 0 is, which clients rely on."""
    return tuple(dict.fromkeys(placement.node for placement in placements))


def cpus_on(placements: Sequence[Placement], node: NodeId) -> int:
    """Whole CPUs of these placements on a node, and at least one."""
    return max(1, sum(each.amount.cpu_milli for each in placements if each.node == node) // 1_000)


def component_of(group: str) -> int:
    """The component of a heterogeneous job that a group belongs to.

    Groups of later components are called `het1`, `het1-more` and so on.
    """
    number = group.removesuffix("-more").removeprefix("het")
    return int(number) if group.startswith("het") and number.isdecimal() else 0


def device_indices(placed: PlacedAttempt, node: NodeId) -> dict[str, int]:
    """The devices of a node by their numbers there, where the node is known."""
    known = placed.nodes.get(node)
    return {each.id: each.index for each in known.devices} if known is not None else {}


def memory_limit_of(placed: PlacedAttempt, placement: Placement) -> int:
    """What one task may use: what it asked for, else what the site gives; 0 means no limit."""
    node, rules = placed.nodes.get(placement.node), placed.confinement
    if not rules.memory:
        return 0
    if placement.amount.memory_mib:
        return max(placement.amount.memory_mib, _SMALLEST_MIB)
    if node is None:
        return 0
    per_cpu_mib, per_gpu_mib = rules.memory_per_cpu_mib, rules.memory_per_gpu_mib
    if per_cpu_mib is None:
        per_cpu_mib = node.memory_mib * 1_000 // max(1_000, node.cpu_milli)
    if per_gpu_mib is None:
        per_gpu_mib = node.memory_mib // max(1, len(node.devices))
    amount = placement.amount
    wanted = max(per_cpu_mib * amount.cpu_milli, per_gpu_mib * amount.gpu_milli) // 1_000
    return min(node.memory_mib, max(wanted, _LEAST_MIB)) if wanted else 0


def memory_limit_mib(placements: Sequence[Placement]) -> int:
    """All of their memory together; one task without a limit, and there is none: 0."""
    memory = [placement.amount.memory_mib for placement in placements]
    return sum(memory) if all(memory) else 0
