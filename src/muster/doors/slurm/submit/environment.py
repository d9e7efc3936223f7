"""What of the submitter's environment a job gets, and what sbatch adds to it. Pure."""

from collections.abc import Mapping
from itertools import pairwise

from muster.doors.slurm.call import Call
from muster.doors.slurm.submit.job_details import appends
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.submit.shape import Amounts, TaskLayout

OF_A_JOB = frozenset(
    """
    SLURMD_NODENAME SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_ID
    SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP SLURM_CPUS_ON_NODE
    SLURM_CPUS_PER_TASK SLURM_GPUS SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK
    SLURM_GPU_BIND SLURM_NTASKS_PER_GPU
    SLURM_GTIDS SLURM_HET_SIZE SLURM_JOBID SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_GID
    SLURM_JOB_GPUS
    SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION
    SLURM_JOB_QOS SLURM_JOB_UID SLURM_JOB_USER SLURM_LOCALID SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU
    SLURM_MEM_PER_NODE SLURM_NNODES SLURM_NODEID SLURM_NODELIST SLURM_NPROCS SLURM_NTASKS
    SLURM_NTASKS_PER_NODE SLURM_PROCID SLURM_RESTART_COUNT SLURM_STEPID SLURM_STEP_GPUS
    SLURM_STEP_ID SLURM_STEP_NODELIST SLURM_STEP_NUM_NODES SLURM_STEP_NUM_TASKS
    SLURM_STEP_TASKS_PER_NODE SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASKS_PER_NODE
    SLURM_TASK_PID SLURM_TOPOLOGY_ADDR SLURM_TOPOLOGY_ADDR_PATTERN CUDA_VISIBLE_DEVICES
    NVIDIA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK
    MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    """.split()
)
"""A job that is submitted from inside another must not take over what that one is."""

_BARE = ("SLURM_", "SPANK_")


def exported(request: Request) -> dict[str, str]:
    """The environment by the rules of --export."""
    call = request.call
    wish = request.text("export")
    everything = {name: value for name, value in call.env.items() if _is_free(name, call)}
    if wish is None or wish == "ALL":
        return everything
    slurms = {name: value for name, value in everything.items() if name.startswith(_BARE)}
    if wish == "NIL":
        return {}
    if wish == "NONE":
        return slurms | {"SLURM_EXPORT_ENV": "NONE", "SLURM_GET_USER_ENV": "1"}
    chosen: dict[str, str] = {}
    for word in _items(wish):
        name, equals, value = word.partition("=")
        if name == "ALL" and not equals:
            chosen = everything | chosen
        elif equals:
            chosen[name] = value
        elif name in everything:
            chosen[name] = everything[name]
    return slurms | chosen | {"SLURM_EXPORT_ENV": wish}


def chosen_names(request: Request) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """--export as srun reads it: the variables that are passed on, or None for all, and new ones.

    Whoever starts the step has the environment at hand, so that only names are needed.
    """
    wish = request.text("export")
    if wish is None or wish == "ALL":
        return None, {}
    slurms = tuple(name for name in request.call.env if name.startswith(_BARE))
    if wish in {"NONE", "NIL"}:
        return slurms, {}
    pairs = [word.partition("=") for word in _items(wish)]
    new = {name: value for name, equals, value in pairs if equals}
    old = tuple(name for name, equals, _ in pairs if not equals)
    return (None if "ALL" in old else (*slurms, *old)), new


def described(
    request: Request, amounts: Amounts, shape: TaskLayout, indices: tuple[int, ...]
) -> dict[str, str]:
    """What sbatch tells the job of the request itself; only what was asked for is named."""
    call = request.call
    found = {"SLURM_SUBMIT_DIR": call.cwd, "SLURM_SUBMIT_HOST": call.host}
    if request.has("cpus-per-task"):
        found["SLURM_CPUS_PER_TASK"] = str(amounts.cpus_per_task)
    if amounts.tasks is not None or request.has("ntasks-per-node"):
        found |= {"SLURM_NTASKS": str(shape.tasks), "SLURM_NPROCS": str(shape.tasks)}
    if amounts.tasks_per_node is not None:
        found["SLURM_NTASKS_PER_NODE"] = str(amounts.tasks_per_node)
    if request.has("distribution"):
        found["SLURM_DISTRIBUTION"] = request.text("distribution") or ""
    if request.has("open-mode"):
        # srun reads it: what a requeued job's steps wrote before must not be lost either.
        found["SLURM_OPEN_MODE"] = "a" if appends(request) else "t"
    return found | _memory(amounts) | _gpus(request) | of_array(indices)


def of_array(indices: tuple[int, ...]) -> dict[str, str]:
    """What all parts of an array know of it."""
    if not indices:
        return {}
    steps = {after - before for before, after in pairwise(indices)}
    step = steps.pop() if len(steps) == 1 else 1
    return {
        "SLURM_ARRAY_TASK_COUNT": str(len(indices)),
        "SLURM_ARRAY_TASK_MIN": str(indices[0]),
        "SLURM_ARRAY_TASK_MAX": str(indices[-1]),
        "SLURM_ARRAY_TASK_STEP": str(step),
    }


def _is_free(name: str, call: Call) -> bool:
    """Is it the user's, and not what an outer job is?"""
    if name.startswith("MUSTER_"):
        return "MUSTER_JOB_ID" not in call.env or name in {"MUSTER_HOME", "MUSTER_URL"}
    is_the_jobs = name in OF_A_JOB or "_HET_GROUP_" in name
    return not is_the_jobs or "SLURM_JOB_ID" not in call.env


def _items(text: str) -> list[str]:
    """At commas that no quotes enclose."""
    found: list[str] = []
    word, quote = "", ""
    for letter in text:
        if letter == "," and not quote:
            found.append(word)
            word = ""
        elif letter in "\"'" and quote in {"", letter}:
            quote = "" if quote else letter
        else:
            word += letter
    return [each for each in [*found, word] if each]


def _memory(amounts: Amounts) -> dict[str, str]:
    named: Mapping[str, int | None] = {
        "SLURM_MEM_PER_NODE": amounts.memory,
        "SLURM_MEM_PER_CPU": amounts.memory_per_cpu,
        "SLURM_MEM_PER_GPU": amounts.memory_per_gpu,
        "SLURM_CPUS_PER_GPU": amounts.cpus_per_gpu,
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _gpus(request: Request) -> dict[str, str]:
    named = {
        "SLURM_GPUS": request.text("gpus"),
        "SLURM_GPUS_PER_NODE": request.text("gpus-per-node"),
        "SLURM_GPUS_PER_TASK": request.text("gpus-per-task"),
        "SLURM_GPU_BIND": request.text("gpu-bind"),
        "SLURM_NTASKS_PER_GPU": request.text("ntasks-per-gpu"),
    }
    return {name: value for name, value in named.items() if value is not None}
