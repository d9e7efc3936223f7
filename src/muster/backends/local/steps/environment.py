"""What the tasks of a step find in their environment. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.backends.local.attempt import spool
from muster.backends.local.steps.room import StepRequest, StepShare
from muster.model.gpu_bind import bound
from muster.model.hostlist import compressed, runs_text

_OF_THE_JOB = ("SLURM_", "SLURMD_", "MUSTER_", "MASTER_")
_OF_A_RANK = ("PMI_", "OMPI_COMM_WORLD_", "MPI_LOCAL")
_HERE = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class StepLaunch:
    """A step and what is around it.

    envs: for each wish, that of whoever started it.
    """

    launch: spool.LaunchFile
    number: int
    wishes: tuple[StepRequest, ...]
    parts: tuple[StepShare, ...]
    envs: tuple[Mapping[str, str], ...]
    umask: int
    label: bool = False

    @property
    def tasks(self) -> int:
        return sum(wish.tasks for wish in self.wishes)


def of_task(around: StepLaunch, part: StepShare, rank: int) -> dict[str, str]:
    """Everything, for one task."""
    found = _inherited(around, part) | _of_step(around, part) | _of_components(around)
    return found | _of_node(around, part) | _of_rank(part, rank) | _of_gpus(around, part, rank)


def gpus_of(around: StepLaunch, part: StepShare, rank: int) -> tuple[int, ...]:
    """The GPUs of one task, by their numbers in the attempt's room on the node."""
    bind = around.wishes[part.wish].gpu_bind
    if not bind:
        return part.gpus
    # Slurm too lets a task for which nothing is left use the first.
    return bound(bind, part.gpus, part.ranks.index(rank)) or part.gpus[:1]


def _inherited(around: StepLaunch, part: StepShare) -> dict[str, str]:
    """Of the caller, without what made one rank of it; and from outside of the job, what it is."""
    launch, env = around.launch, around.envs[part.wish]
    mine = {name: text for name, text in env.items() if not name.startswith(_OF_A_RANK)}
    is_inside = mine.get("SLURM_JOB_ID") == str(launch["job"])
    facts = {
        name: text
        for name, text in launch["env"].items()
        if name.startswith(_OF_THE_JOB) and not (is_inside and name in mine)
    }
    # By this, processes of the attempt are known when everything else is lost.
    return mine | facts | {"MUSTER_ATTEMPT_KEY": launch["marker"]}


def _of_step(around: StepLaunch, part: StepShare) -> dict[str, str]:
    wish, parts, launch = around.wishes[part.wish], around.parts, around.launch
    names = _node_names(launch["rooms"][each.node] for each in parts)
    spread = runs_text([len(each.ranks) for each in parts])
    count, tasks, number = str(len(parts)), str(around.tasks), str(around.number)
    cpus = launch["env"].get("SLURM_JOB_CPUS_PER_NODE", "")
    nodes = sum(each.wish == part.wish for each in parts)
    found = {
        "SLURM_DISTRIBUTION": "cyclic" if wish.cyclic or wish.tasks <= nodes else "block",
        "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": cpus,
        "SLURM_LAUNCH_NODE_IPADDR": _HERE,
        "SLURM_NNODES": count,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_SRUN_COMM_HOST": _HERE,
        # Nobody listens there: srun has a socket in the attempt's folder.
        "SLURM_SRUN_COMM_PORT": "0",
        "SLURM_STEPID": number,
        "SLURM_STEP_ID": number,
        "SLURM_STEP_LAUNCHER_PORT": "0",
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": count,
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": spread,
        "SLURM_TASKS_PER_NODE": spread,
        "SLURM_UMASK": f"{around.umask:04o}",
        "WORLD_SIZE": tasks,
    }
    return found | ({"SLURM_LABELIO": "1"} if around.label else {})


def _of_components(around: StepLaunch) -> dict[str, str]:
    """In a job of several components, those that the step runs in are all there is."""
    rooms = around.launch["rooms"]
    if len(around.wishes) == 1 and not any(room["component"] for room in rooms):
        return {}
    chosen = {wish.component for wish in around.wishes}
    here = [room for room in rooms if room["component"] in chosen]
    names = _node_names(here)
    size = str(max(len(around.wishes), 1 + max(room["component"] for room in rooms)))
    return {
        "SLURM_HET_SIZE": size,
        "SLURM_JOB_CPUS_PER_NODE": runs_text([room["cpus"] for room in here]),
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(here)),
        "SLURM_NODELIST": names,
        "SLURM_PACK_SIZE": size,
    }


def _node_names(rooms: Iterable[spool.RoomFile]) -> str:
    return compressed(list(dict.fromkeys(room["node"] for room in rooms)))


def _of_node(around: StepLaunch, part: StepShare) -> dict[str, str]:
    room = around.launch["rooms"][part.node]
    size = str(len(part.ranks))
    return room["env"] | {
        "SLURMD_NODENAME": room["node"],
        "SLURM_CPUS_ON_NODE": str(part.cpus),
        "SLURM_GTIDS": ",".join(map(str, part.ranks)),
        "SLURM_NODEID": str(around.parts.index(part)),
        "SLURM_TOPOLOGY_ADDR": room["node"],
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        "MUSTER_NODE": room["node"],
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


def _of_gpus(around: StepLaunch, part: StepShare, rank: int) -> dict[str, str]:
    room = around.launch["rooms"][part.node]
    own = gpus_of(around, part, rank)
    visible = _joined(room["gpus"], own)
    found = {"CUDA_VISIBLE_DEVICES": visible, "NVIDIA_VISIBLE_DEVICES": visible or "void"}
    if not room["gpus"]:
        return found
    indices = _joined(room["indices"], own)
    found |= {
        "SLURM_GPUS_ON_NODE": str(len(part.gpus)),
        "SLURM_STEP_GPUS": indices,
        "GPU_DEVICE_ORDINAL": indices,
        "ROCR_VISIBLE_DEVICES": indices,
        "ZE_AFFINITY_MASK": indices,
    }
    bind = around.wishes[part.wish].gpu_bind
    if bind and len(part.ranks) > 1:
        found["SLURMD_TRES_BIND"] = f"gpu:{bind}"
    return found


def _joined(names: Sequence[object], chosen: Sequence[int]) -> str:
    return ",".join(str(names[at]) for at in chosen)
