"""What the tasks of a step find in their environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.launch.steps.allocator import StepRequest, StepShare
from muster.launch.steps.shares import NodeShare
from muster.model.gpu_bind import bound
from muster.model.hostlist import compressed, runs_text

_OF_THE_JOB = ("SLURM_", "SLURMD_", "MUSTER_", "MASTER_")
_OF_A_RANK = ("PMI_", "OMPI_COMM_WORLD_", "MPI_LOCAL")


@dataclass(frozen=True, kw_only=True)
class StepLaunch:
    """A step, the attempt that it runs in, and what started it.

    job, shares, env: of the attempt. fixed: variables that the caller of a step cannot change.
    envs: for each request, that of the process which asked for it.
    address: at which the tasks reach the process that asked.
    """

    job: int
    shares: tuple[NodeShare, ...]
    env: Mapping[str, str]
    number: int
    requests: tuple[StepRequest, ...]
    parts: tuple[StepShare, ...]
    envs: tuple[Mapping[str, str], ...]
    umask: int
    label: bool = False
    fixed: Mapping[str, str]
    address: str

    @property
    def tasks(self) -> int:
        return sum(request.tasks for request in self.requests)


def of_task(step: StepLaunch, part: StepShare, rank: int) -> dict[str, str]:
    """Everything, for one task."""
    found = _inherited(step, part) | _of_step(step, part) | _of_components(step)
    return found | _of_node(step, part) | _of_rank(part, rank) | _of_gpus(step, part, rank)


def gpus_of(step: StepLaunch, part: StepShare, rank: int) -> tuple[int, ...]:
    """The GPUs of one task, by their places in the attempt's share of the node."""
    bind = step.requests[part.request].gpu_bind
    if not bind:
        return part.gpus
    # Slurm too lets a task for which nothing is left use the first.
    return bound(bind, part.gpus, part.ranks.index(rank)) or part.gpus[:1]


def _inherited(step: StepLaunch, part: StepShare) -> dict[str, str]:
    """Of the caller, without what made one rank of it; and from outside of the job, what it is."""
    env = step.envs[part.request]
    mine = {name: text for name, text in env.items() if not name.startswith(_OF_A_RANK)}
    is_inside = mine.get("SLURM_JOB_ID") == str(step.job)
    facts = {
        name: text
        for name, text in step.env.items()
        if name.startswith(_OF_THE_JOB) and not (is_inside and name in mine)
    }
    return {**mine, **facts, **step.fixed}


def _of_step(step: StepLaunch, part: StepShare) -> dict[str, str]:
    request, parts = step.requests[part.request], step.parts
    names = _node_names(step.shares[each.node] for each in parts)
    spread = runs_text([len(each.ranks) for each in parts])
    count, tasks, number = str(len(parts)), str(step.tasks), str(step.number)
    cpus = step.env.get("SLURM_JOB_CPUS_PER_NODE", "")
    nodes = sum(each.request == part.request for each in parts)
    found = {
        "SLURM_DISTRIBUTION": "cyclic" if request.cyclic or request.tasks <= nodes else "block",
        "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": cpus,
        "SLURM_LAUNCH_NODE_IPADDR": step.address,
        "SLURM_NNODES": count,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_SRUN_COMM_HOST": step.address,
        # Nothing listens there: srun does not speak Slurm's protocol to its tasks.
        "SLURM_SRUN_COMM_PORT": "0",
        "SLURM_STEPID": number,
        "SLURM_STEP_ID": number,
        "SLURM_STEP_LAUNCHER_PORT": "0",
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": count,
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": spread,
        "SLURM_TASKS_PER_NODE": spread,
        "SLURM_UMASK": f"{step.umask:04o}",
        "WORLD_SIZE": tasks,
    }
    return found | ({"SLURM_LABELIO": "1"} if step.label else {})


def _of_components(step: StepLaunch) -> dict[str, str]:
    """In a job of several components, those that the step runs in are all there is."""
    shares = step.shares
    if len(step.requests) == 1 and not any(share.component for share in shares):
        return {}
    chosen = {request.component for request in step.requests}
    here = [share for share in shares if share.component in chosen]
    names = _node_names(here)
    size = str(max(len(step.requests), 1 + max(share.component for share in shares)))
    return {
        "SLURM_HET_SIZE": size,
        "SLURM_JOB_CPUS_PER_NODE": runs_text([share.cpus for share in here]),
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(here)),
        "SLURM_NODELIST": names,
        "SLURM_PACK_SIZE": size,
    }


def _node_names(shares: Iterable[NodeShare]) -> str:
    return compressed(list(dict.fromkeys(share.node for share in shares)))


def _of_node(step: StepLaunch, part: StepShare) -> dict[str, str]:
    share = step.shares[part.node]
    size = str(len(part.ranks))
    return {**share.env} | {
        "SLURMD_NODENAME": share.node,
        "SLURM_CPUS_ON_NODE": str(part.cpus),
        "SLURM_GTIDS": ",".join(map(str, part.ranks)),
        "SLURM_NODEID": str(step.parts.index(part)),
        "SLURM_TOPOLOGY_ADDR": share.node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        "MUSTER_NODE": share.node,
        "LOCAL_WORLD_SIZE": size,
    }


def _of_rank(part: StepShare, rank: int) -> dict[str, str]:
    local = str(part.ranks.index(rank))
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": local,
        "MUSTER_RANK": str(rank),
        "MUSTER_LOCAL_RANK": local,
        "RANK": str(rank),
        "LOCAL_RANK": local,
    }


def _of_gpus(step: StepLaunch, part: StepShare, rank: int) -> dict[str, str]:
    share = step.shares[part.node]
    own = gpus_of(step, part, rank)
    visible = _joined(share.gpus, own)
    found = {"CUDA_VISIBLE_DEVICES": visible, "NVIDIA_VISIBLE_DEVICES": visible or "void"}
    if not share.gpus:
        return found
    indices = _joined(share.indices, own)
    found |= {
        "SLURM_GPUS_ON_NODE": str(len(part.gpus)),
        "SLURM_STEP_GPUS": indices,
        "GPU_DEVICE_ORDINAL": indices,
        "ROCR_VISIBLE_DEVICES": indices,
        "ZE_AFFINITY_MASK": indices,
    }
    bind = step.requests[part.request].gpu_bind
    if bind and len(part.ranks) > 1:
        found["SLURMD_TRES_BIND"] = f"gpu:{bind}"
    return found


def _joined(names: Sequence[object], chosen: Sequence[int]) -> str:
    return ",".join(str(names[at]) for at in chosen)
