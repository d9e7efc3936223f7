"""How much memory a job asks for, and of what: of each node, or of each of its CPUs."""

from muster.doors.slurm import jobs
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.sizes import memory_text


def is_per_cpu(row: JobRow) -> bool:
    return row.label("mem-per-cpu") is not None


def least_memory_mib(row: JobRow) -> int:
    """As it was asked for; what is asked for GPUs is none of the node's."""
    if row.label("mem-per-gpu") is not None:
        return 0
    asked = row.label("mem-per-cpu")
    return jobs.memory_per_node_mib(row) if asked is None else int(asked)


def per_gpu(row: JobRow) -> str | None:
    """`gres:gpu:100`, of what is asked for each GPU."""
    asked = row.label("mem-per-gpu")
    return None if asked is None else f"gres:gpu:{asked}"


def least_memory(row: JobRow) -> str:
    """`MinMemoryNode=8G`, `MinMemoryCPU=100M`."""
    return f"MinMemory{'CPU' if is_per_cpu(row) else 'Node'}={memory_text(least_memory_mib(row))}"
