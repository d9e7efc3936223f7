"""What every job finds in its environment: MUSTER_*, ranks, and its devices."""

from collections.abc import Sequence

from muster.launch.attempt import DeviceAccess, PlacedAttempt, nodes_of
from muster.model.job import Job
from muster.model.launch import Runs
from muster.model.placement import Placement


def of_attempt(placed: PlacedAttempt, master: str) -> dict[str, str]:
    """What all tasks of the attempt have in common."""
    job, placements = placed.job, placed.allocation.placements
    nodes = nodes_of(placements)
    found = {
        "MUSTER_JOB_ID": str(job.id),
        "MUSTER_ATTEMPT": str(placed.allocation.attempt),
        "MUSTER_JOB_NAME": job.spec.name,
        "MUSTER_QUEUE": job.spec.queue,
        "MUSTER_CLUSTER": placed.allocation.cluster,
        "MUSTER_NODELIST": ",".join(nodes),
        "MUSTER_NODES": str(len(nodes)),
        "MUSTER_TASKS": str(len(placements)),
        "MUSTER_RESTARTS": str(placed.restarts),
        "MASTER_ADDR": master,
    }
    return (
        found
        | _of_array(job)
        | ({} if placed.checkpoint is None else {"MUSTER_CHECKPOINT": placed.checkpoint})
        | _of_limit(job)
    )


def of_tasks(placed: PlacedAttempt, access: Sequence[DeviceAccess]) -> list[dict[str, str]]:
    """What each process has of its own: one process for each placement, or one beside the first.

    A process that is to start the ranks itself (torchrun, mpirun) is given no rank.
    """
    placements = placed.allocation.placements
    if placed.launch.runs is Runs.STEPS_ONLY:
        return []
    if placed.launch.runs is Runs.FIRST_TASK:
        return [_of_first(placements, access)]
    return [
        _of_node(placement.node)
        | _of_rank(rank, placements)
        | _of_amount((placement,))
        | _of_devices((access[rank],))
        for rank, placement in enumerate(placements)
    ]


def _of_array(job: Job) -> dict[str, str]:
    part = job.spec.array
    if part is None:
        return {}
    return {"MUSTER_ARRAY_JOB_ID": str(part.array), "MUSTER_ARRAY_INDEX": str(part.index)}


def _of_limit(job: Job) -> dict[str, str]:
    limit = job.spec.time_limit
    return {} if limit is None else {"MUSTER_TIME_LIMIT_S": str(limit // 1_000)}


def _of_first(placements: Sequence[Placement], access: Sequence[DeviceAccess]) -> dict[str, str]:
    """The one process has what all tasks on its node have together."""
    node = placements[0].node
    here = [rank for rank, placement in enumerate(placements) if placement.node == node]
    return (
        _of_node(node)
        | _of_amount([placements[rank] for rank in here])
        | _of_devices([access[rank] for rank in here])
    )


def _of_node(node: str) -> dict[str, str]:
    return {"MUSTER_NODE": node}


def _of_rank(rank: int, placements: Sequence[Placement]) -> dict[str, str]:
    node = placements[rank].node
    local = sum(each.node == node for each in placements[:rank])
    local_size = sum(each.node == node for each in placements)
    numbers = (rank, len(placements), local, local_size)
    found = {"MUSTER_RANK": str(rank), "MUSTER_LOCAL_RANK": str(local)}
    found |= _named("RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE", numbers)
    if len(placements) == 1:
        # A job of one task may start MPI itself, which must not think that it was started by one.
        return found
    found |= _named("PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS", numbers)
    return found | _named(
        "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE"
        " OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE",
        numbers,
    )


def _named(names: str, numbers: tuple[int, ...]) -> dict[str, str]:
    return {name: str(number) for name, number in zip(names.split(), numbers, strict=True)}


def _of_amount(placements: Sequence[Placement]) -> dict[str, str]:
    cpu_milli = sum(each.amount.cpu_milli for each in placements)
    return {
        "MUSTER_CPUS": str(max(1, cpu_milli // 1_000)),
        "MUSTER_MEMORY_MIB": str(sum(each.amount.memory_mib for each in placements)),
        "MUSTER_GPUS": str(sum(len(each.devices) for each in placements)),
    }


def _of_devices(access: Sequence[DeviceAccess]) -> dict[str, str]:
    devices = list(dict.fromkeys(name for each in access for name in each.devices))
    visible = ",".join(devices)
    found = {"CUDA_VISIBLE_DEVICES": visible, "NVIDIA_VISIBLE_DEVICES": visible or "void"}
    for each in access:
        found |= each.env
    return found
