"""What Slurm's jobs find in their environment, for every job of ours.

What depends on how a job was asked for (SLURM_CPUS_PER_TASK, SLURM_NTASKS ...) the Slurm door puts
into the launch; here is what is known only when the job has its place.
"""

from collections import Counter
from collections.abc import Sequence

from muster.launch.attempt import (
    PlacedAttempt,
    component_of,
    cpus_on,
    device_indices,
    nodes_of,
)
from muster.model.hostlist import compressed, runs_text
from muster.model.launch import Runs
from muster.model.placement import Placement

NTASKS = "SLURM_NTASKS"
_HET = "_HET_GROUP_"
_PACK = "_PACK_GROUP_"


def of_attempt(placed: PlacedAttempt) -> dict[str, str]:
    """What all tasks of the attempt have in common.

    Of a job of several components, the first is what the names without a number are about.
    """
    spec, placements = placed.job.spec, _first(placed)
    nodes = nodes_of(placements)
    names = compressed(nodes)
    found = {
        "SLURM_CLUSTER_NAME": placed.allocation.cluster,
        "SLURM_JOBID": str(placed.job.id),
        "SLURM_JOB_ACCOUNT": spec.queue,
        "SLURM_JOB_CPUS_PER_NODE": runs_text(cpus_on(placements, node) for node in nodes),
        "SLURM_JOB_ID": str(placed.job.id),
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_JOB_PARTITION": placements[0].pool,
        "SLURM_JOB_QOS": spec.job_class,
        "SLURM_JOB_USER": spec.user,
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_NODELIST": names,
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_TASKS_PER_NODE": runs_text(_spread(placements, placed.launch.env.get(NTASKS, ""))),
    }
    return found | _of_array(placed) | _of_request(placed) | _of_components(placed)


def of_tasks(placed: PlacedAttempt) -> list[dict[str, str]]:
    """What each process has of its own, in the order of the ranks."""
    placements = placed.allocation.placements
    if placed.launch.runs is Runs.STEPS_ONLY:
        return []
    if placed.launch.runs is Runs.FIRST_TASK:
        return [_of_task(placed, 0)]
    return [_of_task(placed, rank) for rank in range(len(placements))]


def _of_components(placed: PlacedAttempt) -> dict[str, str]:
    """What a job of several components, which all have its id, has in each of them."""
    spec, placements = placed.job.spec, placed.allocation.placements
    numbers = sorted({component_of(group.name) for group in placed.job.spec.groups})
    if len(numbers) == 1:
        return {}
    found = {name: text for name, text in placed.launch.env.items() if _HET in name}
    for number in numbers:
        here = [each for each in placements if component_of(each.group) == number]
        nodes = nodes_of(here)
        asked = placed.launch.env.get(f"{NTASKS}{_HET}{number}", "")
        own = {
            "SLURM_JOB_ACCOUNT": spec.queue,
            "SLURM_JOB_CPUS_PER_NODE": runs_text(cpus_on(here, node) for node in nodes),
            "SLURM_JOB_ID": str(placed.job.id),
            "SLURM_JOB_NAME": spec.name,
            "SLURM_JOB_NODELIST": compressed(nodes),
            "SLURM_JOB_NUM_NODES": str(len(nodes)),
            "SLURM_JOB_PARTITION": here[0].pool if here else "",
            "SLURM_JOB_QOS": spec.job_class,
            "SLURM_TASKS_PER_NODE": runs_text(_spread(here, asked)),
        }
        if placed.launch.runs is Runs.STEPS_ONLY:
            # salloc's command has these as well.
            own |= {
                "SLURM_JOBID": own["SLURM_JOB_ID"],
                "SLURM_NNODES": own["SLURM_JOB_NUM_NODES"],
                "SLURM_NODELIST": own["SLURM_JOB_NODELIST"],
                "SLURM_NODE_ALIASES": "(null)",
            }
        found |= {f"{variable}{_HET}{number}": value for variable, value in own.items()}
    # What they were called before is still there in 22.05.
    older = {name.replace(_HET, _PACK): text for name, text in found.items()}
    size = str(len(numbers))
    return found | older | {"SLURM_HET_SIZE": size, "SLURM_PACK_SIZE": size}


def _first(placed: PlacedAttempt) -> list[Placement]:
    """The placements of the first component, which are all of most jobs."""
    placements = placed.allocation.placements
    return [each for each in placements if not component_of(each.group)] or list(placements)


def _of_array(placed: PlacedAttempt) -> dict[str, str]:
    part = placed.job.spec.array
    if part is None:
        return {}
    return {"SLURM_ARRAY_JOB_ID": str(part.array), "SLURM_ARRAY_TASK_ID": str(part.index)}


def _of_request(placed: PlacedAttempt) -> dict[str, str]:
    found: dict[str, str] = {}
    if placed.job.spec.reservation is not None:
        found["SLURM_JOB_RESERVATION"] = placed.job.spec.reservation
    if placed.restarts:
        found["SLURM_RESTART_COUNT"] = str(placed.restarts)
    if placed.launch.workdir and "SLURM_SUBMIT_DIR" not in placed.launch.env:
        found["SLURM_SUBMIT_DIR"] = placed.launch.workdir
    tasks = len(placed.allocation.placements)
    if placed.launch.runs is Runs.EVERY_TASK and NTASKS not in placed.launch.env:
        found |= {NTASKS: str(tasks), "SLURM_NPROCS": str(tasks)}
    return found


def _of_task(placed: PlacedAttempt, rank: int) -> dict[str, str]:
    placements = placed.allocation.placements
    node = placements[rank].node
    here = [each for each in placements if each.node == node]
    local = sum(each.node == node for each in placements[:rank])
    found = {
        "SLURMD_NODENAME": node,
        "SLURM_CPUS_ON_NODE": str(cpus_on(placements, node)),
        "SLURM_GTIDS": str(rank),
        "SLURM_LOCALID": str(local),
        "SLURM_NODEID": str(nodes_of(placements).index(node)),
        "SLURM_PROCID": str(rank),
        "SLURM_TOPOLOGY_ADDR": node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }
    is_first = placed.launch.runs is Runs.FIRST_TASK
    return found | _of_gpus(placed, here, here if is_first else (placements[rank],))


def _of_gpus(
    placed: PlacedAttempt, here: Sequence[Placement], own: Sequence[Placement]
) -> dict[str, str]:
    """By their numbers on the node: those of the job there, and those that the process may use."""
    if not any(each.devices for each in here):
        return {}
    visible = _indices(placed, own)
    return {
        "SLURM_GPUS_ON_NODE": str(sum(len(each.devices) for each in here)),
        "SLURM_JOB_GPUS": _indices(placed, here),
        "GPU_DEVICE_ORDINAL": visible,
        "ROCR_VISIBLE_DEVICES": visible,
        "ZE_AFFINITY_MASK": visible,
    }


def _indices(placed: PlacedAttempt, placements: Sequence[Placement]) -> str:
    known = device_indices(placed, placements[0].node)
    shares = (share for each in placements for share in each.devices)
    numbers = {known[share.device] for share in shares if share.device in known}
    return ",".join(map(str, sorted(numbers)))


def _spread(placements: Sequence[Placement], asked: str) -> list[int]:
    """As many tasks as were asked for, over the nodes; else one for each placement."""
    nodes = nodes_of(placements)
    if not asked.isdecimal() or int(asked) < len(nodes) or int(asked) == len(placements):
        count = Counter[str](each.node for each in placements)
        return [count[node] for node in nodes]
    each, more = divmod(int(asked), len(nodes))
    return [each + (place < more) for place in range(len(nodes))]
