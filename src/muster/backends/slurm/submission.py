"""From an attempt that was placed to what `sbatch` is told. Pure.

Slurm executes our decision: the nodes are named, and what each of them gives is counted.
Slurm itself sets SLURM_* and says which GPUs a job sees; everything else comes from `launch`.
"""

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum

from muster.backends.base import Run
from muster.backends.slurm.listing import Key
from muster.launch.attempt import DeviceAccess, cpus_on, memory_limit_of, nodes_of
from muster.launch.prepare import PreparedAttempt, prepare
from muster.launch.slurm_variables import NTASKS
from muster.model.hostlist import compressed
from muster.model.launch import Runs
from muster.model.placement import Placement
from muster.model.value import Duration, NodeId, Value

_THEIRS = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
_OURS = ("SLURM_ARRAY_", "SLURM_RESTART_COUNT")
"""An array is ours: to Slurm each part is a job of its own, and so is each attempt."""
_MINUTE_MS = 60_000
_AFTER_OURS_MS = 5 * _MINUTE_MS
"""Muster ends an attempt at its limit. Should it be away then, Slurm does so this much later."""


class Containers(StrEnum):
    """What runs images on the cluster's nodes."""

    NONE = "none"
    PYXIS = "pyxis"
    APPTAINER = "apptainer"


class Manner(Value):
    """How jobs are given to the cluster.

    delegates: Slurm chooses the nodes; it is told only what the job needs.
    account, qos: in whose name; empty for the user's own.
    longest: what a job may take that names no limit, by pool; None: without end.
    """

    delegates: bool = False
    account: str = ""
    qos: str = ""
    containers: Containers = Containers.NONE
    longest: Mapping[str, Duration | None] = {}


class Submission(Value):
    """One call of `sbatch`: its options, the script and its arguments, and what they find.

    hosts: the node of each task, where Slurm would spread them otherwise.
    """

    options: tuple[str, ...]
    script: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str | None
    umask: int | None
    hosts: tuple[NodeId, ...] = ()


def submission(run: Run, key: Key, manner: Manner) -> Submission:
    """What begins this attempt. Its placements are in the order of the ranks."""
    prepared = prepared_for(run)
    script, args = _script(run, prepared, manner)
    return Submission(
        options=(*_common(run, prepared, key, manner), *_amounts(run, manner)),
        script=script,
        args=args,
        env=_ours({**prepared.env, **(prepared.tasks[0].env if _is_single(run) else {})}),
        workdir=run.launch.workdir,
        umask=run.launch.umask,
        hosts=_hosts(run) if _is_by_task(run) and not manner.delegates else (),
    )


def prepared_for(run: Run) -> PreparedAttempt:
    """What the attempt finds around it. Slurm says which GPUs it sees: ours are only counted."""
    placements = run.allocation.placements
    access = [
        DeviceAccess(devices=tuple(str(number) for number in range(len(each.devices))))
        for each in placements
    ]
    return prepare(run, access, master=placements[0].node)


def _common(run: Run, prepared: PreparedAttempt, key: Key, manner: Manner) -> tuple[str, ...]:
    """Options that hold for the whole job."""
    first, pool = prepared.tasks[0], run.allocation.placements[0].pool
    found = [
        "--parsable",
        # Muster decides whether it runs again: were Slurm to do so, it would run twice.
        "--no-requeue",
        f"--job-name={run.job.spec.name}",
        f"--comment={key.mark}",
        f"--partition={pool}",
        f"--output={_literal(first.stdout)}",
        f"--open-mode={'append' if run.launch.append else 'truncate'}",
        f"--time={_minutes(run, manner)}",
    ]
    if first.stderr is not None:
        found.append(f"--error={_literal(first.stderr)}")
    if first.stdin is not None:
        found.append(f"--input={_literal(first.stdin)}")
    if manner.account:
        found.append(f"--account={manner.account}")
    if manner.qos:
        found.append(f"--qos={manner.qos}")
    if run.launch.image is not None and manner.containers is Containers.PYXIS and _is_single(run):
        found.append(f"--container-image={run.launch.image}")
    return tuple(found)


def _minutes(run: Run, manner: Manner) -> int:
    """The limit as Slurm keeps it; 0 is none."""
    longest = manner.longest.get(run.allocation.placements[0].pool)
    limit = run.job.spec.time_limit
    if limit is None:
        return 0 if longest is None else max(1, longest // _MINUTE_MS)
    wanted = limit + run.grace + _AFTER_OURS_MS
    return -(-min(wanted, longest or wanted) // _MINUTE_MS)


def _amounts(run: Run, manner: Manner) -> tuple[str, ...]:
    """Where, and how much of it: by task, by node, or by component where tasks differ."""
    placements = run.allocation.placements
    if _is_by_task(run):
        return (*_nodes(placements, manner), *_by_task(run))
    found: list[str] = []
    for options, here in _components(run).items():
        separator = (":",) if found else ()
        found += [*separator, *_nodes(here, manner), *options]
    return tuple(found)


def _is_by_task(run: Run) -> bool:
    """Are all tasks alike, and is each of them begun, or is their number on the nodes not?"""
    shapes = {_shape(run, each) for each in run.allocation.placements}
    is_even = len(_components(run)) == 1
    return len(shapes) == 1 and (not is_even or run.launch.runs is Runs.EVERY_TASK)


def _nodes(placements: Sequence[Placement], manner: Manner) -> tuple[str, ...]:
    nodes = nodes_of(placements)
    pinned = () if manner.delegates else (f"--nodelist={compressed(nodes)}",)
    return (f"--nodes={len(nodes)}", *pinned)


def _by_task(run: Run) -> tuple[str, ...]:
    placements = run.allocation.placements
    cpus, memory_mib, gpus = _shape(run, placements[0])
    found = [f"--ntasks={len(placements)}", f"--cpus-per-task={cpus}"]
    if len(placements) > 1:
        found.append("--distribution=arbitrary")
    if memory_mib:
        found.append(f"--mem-per-cpu={-(-memory_mib // cpus)}M")
    if gpus:
        found.append(f"--gpus-per-task={gpus}")
    return tuple(found)


def _shape(run: Run, placement: Placement) -> tuple[int, int, int]:
    """CPUs, memory and GPUs of one task."""
    cpus = cpus_on((placement,), placement.node)
    return cpus, memory_limit_of(run, placement), len(placement.devices)


def _components(run: Run) -> dict[tuple[str, ...], list[Placement]]:
    """Nodes that give the same are asked for together."""
    placements = run.allocation.placements
    found: dict[tuple[str, ...], list[Placement]] = {}
    for node in nodes_of(placements):
        here = [each for each in placements if each.node == node]
        found.setdefault(_by_node(run, here), []).extend(here)
    return found


def _by_node(run: Run, here: Sequence[Placement]) -> tuple[str, ...]:
    """What one node gives to the tasks on it, of which sbatch may have named more."""
    tasks = _tasks_per_node(run) or len(here)
    limits = [memory_limit_of(run, each) for each in here]
    gpus = sum(len(each.devices) for each in here)
    cpus = cpus_on(here, here[0].node)
    found = [f"--ntasks-per-node={tasks}", f"--cpus-per-task={max(1, cpus // tasks)}"]
    if all(limits):
        found.append(f"--mem={sum(limits)}M")
    if gpus:
        found.append(f"--gres=gpu:{gpus}")
    return tuple(found)


def _tasks_per_node(run: Run) -> int:
    """As many as the script was promised; 0 where it is one for each placement."""
    asked, nodes = run.launch.env.get(NTASKS, ""), len(nodes_of(run.allocation.placements))
    return int(asked) // nodes if asked.isdecimal() else 0


def _hosts(run: Run) -> tuple[NodeId, ...]:
    placements = run.allocation.placements
    return tuple(each.node for each in placements) if len(placements) > 1 else ()


def _script(run: Run, prepared: PreparedAttempt, manner: Manner) -> tuple[str, tuple[str, ...]]:
    """What sbatch is given: the job's own script, or one that begins its command."""
    launch = run.launch
    if launch.runs is Runs.STEPS_ONLY:
        return "#!/bin/sh\nexec sleep infinity\n", ()
    if launch.script is not None and (_is_single(run) or launch.runs is Runs.FIRST_TASK):
        return launch.script, launch.argv
    command = _in_image(run, manner)
    if _is_single(run) or launch.runs is Runs.FIRST_TASK:
        return f"#!/bin/sh\nexec {shlex.join(command)}\n", ()
    return _every_task(run, prepared, command), ()


def _in_image(run: Run, manner: Manner) -> tuple[str, ...]:
    image = run.launch.image
    if image is None or manner.containers is not Containers.APPTAINER:
        return run.launch.argv
    named = image if "://" in image or image.startswith("/") else f"docker://{image}"
    return ("apptainer", "exec", "--nv", named, *run.launch.argv)


def _every_task(run: Run, prepared: PreparedAttempt, command: Sequence[str]) -> str:
    """A script whose step begins the command once for each task, on the node of its rank."""
    cases = [
        f"{rank}) {_exports(task.env)}{_redirected(prepared, rank)};;"
        for rank, task in enumerate(prepared.tasks)
    ]
    task = "\n".join(("case $SLURM_PROCID in", *cases, "esac", 'exec "$@"'))
    groups = 1 if _is_by_task(run) else len(_components(run))
    across = f" --het-group=0-{groups - 1}" if groups > 1 else ""
    nodes = "\n".join(each.node for each in prepared.tasks)
    return (
        "#!/bin/sh\n"
        f"hosts=$(mktemp) && printf '%s\\n' {shlex.quote(nodes)} > \"$hosts\"\n"
        "export SLURM_HOSTFILE=$hosts\n"
        f"srun{across} --distribution=arbitrary --ntasks={len(prepared.tasks)}"
        f" --kill-on-bad-exit=1 /bin/sh -c {shlex.quote(task)} sh {shlex.join(command)}\n"
        'code=$?\nrm -f "$hosts"\nexit $code\n'
    )


def _exports(env: Mapping[str, str]) -> str:
    mine = _ours(env)
    pairs = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(mine.items()))
    return f"export {pairs}" if pairs else ":"


def _redirected(prepared: PreparedAttempt, rank: int) -> str:
    """Where a task writes, if it is not where the first one does."""
    first, task = prepared.tasks[0], prepared.tasks[rank]
    if (task.stdout, task.stderr) == (first.stdout, first.stderr):
        return ""
    errors = "2>&1" if task.stderr is None else f"2>{shlex.quote(task.stderr)}"
    return f"; exec >{shlex.quote(task.stdout)} {errors}"


def _is_single(run: Run) -> bool:
    return len(run.allocation.placements) == 1


def _ours(env: Mapping[str, str]) -> dict[str, str]:
    """Without what Slurm itself sets for its jobs."""
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(_THEIRS) or name.startswith(_OURS)
    }


def _literal(path: str) -> str:
    """A path in which Slurm fills nothing in: ours is filled already."""
    return path.replace("%", "%%")
