"""What Slurm's jobs find in their environment, for every job of ours. Pure.

What depends on how a job was asked for (SLURM_CPUS_PER_TASK, SLURM_NTASKS ...) is put into the
launch by whoever reads the request; here is what is known only when the job has its place.
"""

from collections import Counter
from collections.abc import Sequence

from muster.backends.base import Run
from muster.model.hostlist import compressed, runs_text
from muster.model.launch import Runs
from muster.model.placement import Placement

NTASKS = "SLURM_NTASKS"
_HET = "_HET_GROUP_"
_PACK = "_PACK_GROUP_"


def component_of(group: str) -> int:
    """Groups of later components are called `het1`, `het1-more` and so on."""
    number = group.removesuffix("-more").removeprefix("het")
    return int(number) if group.startswith("het") and number.isdecimal() else 0


def of_attempt(run: Run) -> dict[str, str]:
    """What all tasks of the attempt have in common.

    Of a job of several components, the first is what the names without a number are about.
    """
    spec, placements = run.job.spec, _first(run)
    nodes = _nodes(placements)
    names = compressed(nodes)
    found = {
        "SLURM_CLUSTER_NAME": run.allocation.cluster,
        "SLURM_JOBID": str(run.job.id),
        "SLURM_JOB_ACCOUNT": spec.queue,
        "SLURM_JOB_CPUS_PER_NODE": runs_text(_cpus(placements, node) for node in nodes),
        "SLURM_JOB_ID": str(run.job.id),
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
        "SLURM_TASKS_PER_NODE": runs_text(_spread(placements, run.launch.env.get(NTASKS, ""))),
    }
    return found | _of_array(run) | _of_request(run) | _of_components(run)


def of_tasks(run: Run) -> list[dict[str, str]]:
    """What each process has of its own, in the order of the ranks."""
    placements = run.allocation.placements
    if run.launch.runs is Runs.STEPS_ONLY:
        return []
    if run.launch.runs is Runs.FIRST_TASK:
        return [_of_task(run, 0)]
    return [_of_task(run, rank) for rank in range(len(placements))]


def _of_components(run: Run) -> dict[str, str]:
    """What a job of several components, which all have its id, has in each of them."""
    spec, placements = run.job.spec, run.allocation.placements
    numbers = _components(run)
    if len(numbers) == 1:
        return {}
    found = {name: text for name, text in run.launch.env.items() if _HET in name}
    for number in numbers:
        here = [each for each in placements if component_of(each.group) == number]
        nodes = _nodes(here)
        asked = run.launch.env.get(f"{NTASKS}{_HET}{number}", "")
        told = {
            "SLURM_JOB_ACCOUNT": spec.queue,
            "SLURM_JOB_CPUS_PER_NODE": runs_text(_cpus(here, node) for node in nodes),
            "SLURM_JOB_ID": str(run.job.id),
            "SLURM_JOB_NAME": spec.name,
            "SLURM_JOB_NODELIST": compressed(nodes),
            "SLURM_JOB_NUM_NODES": str(len(nodes)),
            "SLURM_JOB_PARTITION": here[0].pool if here else "",
            "SLURM_JOB_QOS": spec.job_class,
            "SLURM_TASKS_PER_NODE": runs_text(_spread(here, asked)),
        }
        if run.launch.runs is Runs.STEPS_ONLY:
            # salloc's command has these as well.
            told |= {
                "SLURM_JOBID": told["SLURM_JOB_ID"],
                "SLURM_NNODES": told["SLURM_JOB_NUM_NODES"],
                "SLURM_NODELIST": told["SLURM_JOB_NODELIST"],
                "SLURM_NODE_ALIASES": "(null)",
            }
        found |= {f"{variable}{_HET}{number}": value for variable, value in told.items()}
    # What they were called before is still there in 22.05.
    older = {name.replace(_HET, _PACK): text for name, text in found.items()}
    size = str(len(numbers))
    return found | older | {"SLURM_HET_SIZE": size, "SLURM_PACK_SIZE": size}


def _components(run: Run) -> list[int]:
    return sorted({component_of(group.name) for group in run.job.spec.groups})


def _first(run: Run) -> list[Placement]:
    """The placements of the first component, which are all of most jobs."""
    placements = run.allocation.placements
    return [each for each in placements if not component_of(each.group)] or list(placements)


def _of_array(run: Run) -> dict[str, str]:
    part = run.job.spec.array
    if part is None:
        return {}
    return {"SLURM_ARRAY_JOB_ID": str(part.array), "SLURM_ARRAY_TASK_ID": str(part.index)}


def _of_request(run: Run) -> dict[str, str]:
    found: dict[str, str] = {}
    if run.job.spec.reservation is not None:
        found["SLURM_JOB_RESERVATION"] = run.job.spec.reservation
    if run.restarts:
        found["SLURM_RESTART_COUNT"] = str(run.restarts)
    if run.launch.workdir and "SLURM_SUBMIT_DIR" not in run.launch.env:
        found["SLURM_SUBMIT_DIR"] = run.launch.workdir
    tasks = len(run.allocation.placements)
    if run.launch.runs is Runs.EVERY_TASK and NTASKS not in run.launch.env:
        found |= {NTASKS: str(tasks), "SLURM_NPROCS": str(tasks)}
    return found


def _of_task(run: Run, rank: int) -> dict[str, str]:
    placements = run.allocation.placements
    node = placements[rank].node
    here = [each for each in placements if each.node == node]
    local = sum(each.node == node for each in placements[:rank])
    found = {
        "SLURMD_NODENAME": node,
        "SLURM_CPUS_ON_NODE": str(_cpus(placements, node)),
        "SLURM_GTIDS": str(rank),
        "SLURM_LOCALID": str(local),
        "SLURM_NODEID": str(_nodes(placements).index(node)),
        "SLURM_PROCID": str(rank),
        "SLURM_TOPOLOGY_ADDR": node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }
    is_first = run.launch.runs is Runs.FIRST_TASK
    return found | _of_gpus(run, here, here if is_first else (placements[rank],))


def _of_gpus(run: Run, here: Sequence[Placement], own: Sequence[Placement]) -> dict[str, str]:
    """By their numbers on the node: those of the job there, and those that the process may use."""
    if not any(each.devices for each in here):
        return {}
    visible = _indices(run, own)
    return {
        "SLURM_GPUS_ON_NODE": str(sum(len(each.devices) for each in here)),
        "SLURM_JOB_GPUS": _indices(run, here),
        "GPU_DEVICE_ORDINAL": visible,
        "ROCR_VISIBLE_DEVICES": visible,
        "ZE_AFFINITY_MASK": visible,
    }


def _indices(run: Run, placements: Sequence[Placement]) -> str:
    node = run.nodes.get(placements[0].node)
    known = {each.id: each.index for each in node.devices} if node is not None else {}
    shares = (share for each in placements for share in each.devices)
    numbers = {known[share.device] for share in shares if share.device in known}
    return ",".join(map(str, sorted(numbers)))


def _spread(placements: Sequence[Placement], asked: str) -> list[int]:
    """As many tasks as were asked for, over the nodes; else one for each placement."""
    nodes = _nodes(placements)
    if not asked.isdigit() or int(asked) < len(nodes) or int(asked) == len(placements):
        count = Counter[str](each.node for each in placements)
        return [count[node] for node in nodes]
    each, more = divmod(int(asked), len(nodes))
    return [each + (place < more) for place in range(len(nodes))]


def _cpus(placements: Sequence[Placement], node: str) -> int:
    return max(1, sum(each.amount.cpu_milli for each in placements if each.node == node) // 1_000)


def _nodes(placements: Sequence[Placement]) -> list[str]:
    """In the order of the ranks: the first is where rank 0 is, which clients rely on."""
    return list(dict.fromkeys(each.node for each in placements))
