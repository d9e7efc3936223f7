"""From an attempt that was placed to what `sbatch` is told. Pure.

Slurm executes our decision: the nodes are named, and what each of them gives is counted.
Slurm itself sets SLURM_* and says which GPUs a job sees; everything else comes from `launch`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from muster.backends.base import Run
from muster.backends.slurm import delegated, images
from muster.backends.slurm.gres import GPU, Gres, asked
from muster.backends.slurm.images import Containers
from muster.backends.slurm.listing import Key
from muster.backends.slurm.pods import as_commands
from muster.launch.attempt import DeviceAccess, cpus_on, device_indices, memory_limit_of, nodes_of
from muster.launch.prepare import PreparedAttempt, prepare
from muster.launch.slurm_variables import NTASKS
from muster.model.gpu import WHOLE_GPU_MILLI, MpsShare
from muster.model.hostlist import compressed
from muster.model.launch import Runs
from muster.model.placement import Placement
from muster.model.queue import of_nearest
from muster.model.value import Duration, NodeId, PoolName, QueuePath, Value, replace

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
_DIRECTIVE = re.compile(r"^#(SBATCH|PBS|BSUB)")
_MINUTE_MS = 60_000
_AFTER_OURS_MS = 5 * _MINUTE_MS
"""Muster ends an attempt at its limit. Should it be away then, Slurm does so this much later."""


class Manner(Value):
    """How jobs are given to the cluster.

    delegates: Slurm chooses the nodes; it is told only what the job needs.
    account, qos: in whose name; empty for the user's own. accounts, qualities: the same for queues
    and all below them.
    prefix: what our names of its nodes and pools begin with, before Slurm's own.
    longest: what a job may take that names no limit, by partition; None: without end. gres: what
    each node has, by the names that Slurm gives it. Both are seen, and not set.
    """

    delegates: bool = False
    account: str = ""
    accounts: Mapping[QueuePath, str] = {}
    qos: str = ""
    qualities: Mapping[QueuePath, str] = {}
    containers: Containers = Containers.NONE
    prefix: str = ""
    longest: Mapping[str, Duration | None] = {}
    gres: Mapping[NodeId, tuple[Gres, ...]] = {}


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


def submission(placed: Run, key: Key, manner: Manner) -> Submission:
    """What begins this attempt. Its placements are in the order of the ranks."""
    run = _without_pods(_in_its_names(placed, manner.prefix), key, manner)
    prepared = prepared_for(run)
    script, args = _script(run, prepared, manner)
    return Submission(
        options=(*_common(run, prepared, key, manner), *_amounts(run, manner)),
        script=script,
        args=args,
        env=_ours({**prepared.env, **(prepared.tasks[0].env if _is_single(run) else {})}, manner),
        workdir=run.launch.workdir,
        umask=run.launch.umask,
        hosts=_hosts(run) if _is_by_task(run, manner) and not manner.delegates else (),
    )


def _without_pods(run: Run, key: Key, manner: Manner) -> Run:
    """What runs in the place of pods; MissingError where something is not there that they read."""
    if not run.launch.pods:
        return run
    return as_commands(run, key, prepared_for(run), lambda each: _in_its_image(each, manner))


def _in_its_image(run: Run, manner: Manner) -> tuple[str, ...]:
    """The command of a pod's only container: what begins it again, and counts, is outside."""
    asked = images.options(run, prepared_for(run), manner.containers)
    command = images.command(run, manner.containers)
    return ("srun", "--ntasks=1", *asked, *command) if asked else command


def _in_its_names(run: Run, prefix: str) -> Run:
    """Nodes and pools by the names that Slurm, and who runs there, knows them by."""
    if not prefix:
        return run
    placements = tuple(
        replace(
            each,
            node=NodeId(each.node.removeprefix(prefix)),
            pool=PoolName(each.pool.removeprefix(prefix)),
        )
        for each in run.allocation.placements
    )
    nodes = {NodeId(id.removeprefix(prefix)): node for id, node in run.nodes.items()}
    allocation = replace(run.allocation, placements=placements)
    return replace(run, allocation=allocation, nodes=nodes)


def prepared_for(run: Run) -> PreparedAttempt:
    """What the attempt finds around it. Slurm says which GPUs it sees: ours are only counted."""
    placements = run.allocation.placements
    access = [
        DeviceAccess(
            devices=tuple(str(number) for number in range(len(each.devices))),
            env=_limits(run, each),
        )
        for each in placements
    ]
    return prepare(run, access, master=placements[0].node)


def _limits(run: Run, placement: Placement) -> Mapping[str, str]:
    """What keeps a task to the memory of its part of a GPU: Slurm limits only the threads."""
    known = run.nodes.get(placement.node)
    memory = {} if known is None else {each.id: each.memory_mib for each in known.devices}
    found: list[str] = []
    for at, share in enumerate(placement.devices):
        if isinstance(share.slice, MpsShare):
            whole = memory.get(share.device, 0)
            part = share.slice.memory_mib or whole * share.slice.milli // WHOLE_GPU_MILLI
            found.append(f"{at}={part}M")
    return {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ",".join(found)} if found else {}


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
    queue = run.job.spec.queue
    if account := of_nearest(manner.accounts, queue) or manner.account:
        found.append(f"--account={account}")
    if quality := of_nearest(manner.qualities, queue) or manner.qos:
        found.append(f"--qos={quality}")
    if not _begins_tasks(run):
        found += images.options(run, prepared, manner.containers)
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
    if _is_by_task(run, manner):
        return (*_nodes_of_tasks(placements, manner), *_by_task(run, manner))
    found: list[str] = []
    for options, here in _components(run, manner).items():
        separator = (":",) if found else ()
        found += [*separator, *_nodes(here, manner), *options]
    return tuple(found)


def _is_by_task(run: Run, manner: Manner) -> bool:
    """Are all tasks alike, and is each of them begun, or is their number on the nodes not?

    Of shards and MPS only a node can be asked, and of one type of GPU a task.
    """
    shapes = {_shape(run, each, manner) for each in run.allocation.placements}
    is_even = len(_components(run, manner)) == 1
    is_plain = all(len(gres) < 2 and _counts_gpus(gres) for _, _, gres in shapes)
    is_begun = not is_even or run.launch.runs is Runs.EVERY_TASK
    return len(shapes) == 1 and is_plain and is_begun


def _counts_gpus(gres: Sequence[str]) -> bool:
    return all(each.partition(":")[0] == GPU for each in gres)


def _nodes(placements: Sequence[Placement], manner: Manner) -> tuple[str, ...]:
    nodes = nodes_of(placements)
    pinned = () if manner.delegates else (f"--nodelist={compressed(nodes)}",)
    return (f"--nodes={len(nodes)}", *pinned)


def _nodes_of_tasks(placements: Sequence[Placement], manner: Manner) -> tuple[str, ...]:
    """On how many nodes tasks are, of which nobody asked how many to a node, is Slurm's choice."""
    if manner.delegates and len(placements) > 1:
        return ()
    return _nodes(placements, manner)


def _by_task(run: Run, manner: Manner) -> tuple[str, ...]:
    placements = run.allocation.placements
    cpus, memory_mib, gres = _shape(run, placements[0], manner)
    found = [f"--ntasks={len(placements)}", f"--cpus-per-task={cpus}"]
    if len(placements) > 1 and not manner.delegates:
        found.append("--distribution=arbitrary")
    if memory_mib:
        found.append(f"--mem-per-cpu={-(-memory_mib // cpus)}M")
    found += [f"--gpus-per-task={each.partition(':')[2]}" for each in gres]
    return tuple(found)


def _shape(run: Run, placement: Placement, manner: Manner) -> tuple[int, int, tuple[str, ...]]:
    """CPUs, memory and what it takes of GPUs of one task."""
    cpus = cpus_on((placement,), placement.node)
    return cpus, memory_limit_of(run, placement), _gres(run, (placement,), manner)


def _gres(run: Run, here: Sequence[Placement], manner: Manner) -> tuple[str, ...]:
    """What these tasks on one node ask of it, in Slurm's words."""
    node = here[0].node
    known = device_indices(run, node)
    shares = [(known.get(share.device, 0), share) for each in here for share in each.devices]
    return asked(shares, manner.gres.get(node, ()))


def _components(run: Run, manner: Manner) -> dict[tuple[str, ...], list[Placement]]:
    """Nodes that give the same are asked for together."""
    placements = run.allocation.placements
    found: dict[tuple[str, ...], list[Placement]] = {}
    for node in nodes_of(placements):
        here = [each for each in placements if each.node == node]
        found.setdefault(_by_node(run, here, manner), []).extend(here)
    return found


def _by_node(run: Run, here: Sequence[Placement], manner: Manner) -> tuple[str, ...]:
    """What one node gives to the tasks on it, of which sbatch may have named more."""
    tasks = _tasks_per_node(run) or len(here)
    limits = [memory_limit_of(run, each) for each in here]
    gres = _gres(run, here, manner)
    cpus = cpus_on(here, here[0].node)
    found = [f"--ntasks-per-node={tasks}", f"--cpus-per-task={max(1, cpus // tasks)}"]
    if all(limits):
        found.append(f"--mem={sum(limits)}M")
    if gres:
        found.append(f"--gres={','.join(gres)}")
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
    if launch.script is not None and not _begins_tasks(run):
        return images.script(run, _without_directives(launch.script), manner.containers)
    command = images.command(run, manner.containers)
    if not _begins_tasks(run):
        there = f"{delegated.IN_SCRIPT}{delegated.ONE_TASK}" if manner.delegates else ""
        return f"#!/bin/sh\n{there}exec {shlex.join(command)}\n", ()
    return _every_task(run, prepared, command, manner), ()


def _without_directives(script: str) -> str:
    """The script with nothing for sbatch in it: what it asked for was read when it was submitted.

    sbatch would take from it whatever it is not told otherwise: GPUs, an array, another account.
    """
    # Not `splitlines`: sbatch knows no other line break.
    lines = script.split("\n")
    begins = next((at for at, line in enumerate(lines) if _is_command(line)), len(lines))
    header = [_DIRECTIVE.sub(r"# \1", line) for line in lines[:begins]]
    return "\n".join((*header, *lines[begins:]))


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _every_task(run: Run, prepared: PreparedAttempt, command: Sequence[str], manner: Manner) -> str:
    """A script whose step begins the command once for each task, on the node of its rank."""
    cases = [
        f"{rank}) {_exports(_ours(task.env, manner))}{_redirected(prepared, rank)};;"
        for rank, task in enumerate(prepared.tasks)
    ]
    there = (delegated.IN_TASK,) if manner.delegates else ()
    task = "\n".join(("case $SLURM_PROCID in", *cases, "esac", *there, 'exec "$@"'))
    groups = 1 if _is_by_task(run, manner) else len(_components(run, manner))
    across = f" --het-group=0-{groups - 1}" if groups > 1 else ""
    image = shlex.join(images.options(run, prepared, manner.containers))
    begin = " ".join(
        (f"--ntasks={len(prepared.tasks)}", *_cpus(run, manner), "--kill-on-bad-exit=1", image)
    ).rstrip()
    begin = f"{begin} /bin/sh -c {shlex.quote(task)} sh {shlex.join(command)}"
    if manner.delegates:
        return f"#!/bin/sh\n{delegated.IN_SCRIPT}exec srun{across} {begin}\n"
    nodes = "\n".join(each.node for each in prepared.tasks)
    return (
        "#!/bin/sh\n"
        f"hosts=$(mktemp) && printf '%s\\n' {shlex.quote(nodes)} > \"$hosts\"\n"
        "export SLURM_HOSTFILE=$hosts\n"
        f"srun{across} --distribution=arbitrary {begin}\n"
        'code=$?\nrm -f "$hosts"\nexit $code\n'
    )


def _cpus(run: Run, manner: Manner) -> tuple[str, ...]:
    """From 22.05 on a step takes no CPUs for its tasks from what sbatch was told."""
    if not _is_by_task(run, manner):
        return ()
    cpus, _, _ = _shape(run, run.allocation.placements[0], manner)
    return (f"--cpus-per-task={cpus}",)


def _exports(env: Mapping[str, str]) -> str:
    pairs = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(env.items()))
    return f"export {pairs}" if pairs else ":"


def _redirected(prepared: PreparedAttempt, rank: int) -> str:
    """Where a task writes, if it is not where the first one does."""
    first, task = prepared.tasks[0], prepared.tasks[rank]
    if (task.stdout, task.stderr) == (first.stdout, first.stderr):
        return ""
    errors = "2>&1" if task.stderr is None else f"2>{shlex.quote(task.stderr)}"
    return f"; exec >{shlex.quote(task.stdout)} {errors}"


def _begins_tasks(run: Run) -> bool:
    """Does what sbatch runs begin the tasks, rather than being the only one?"""
    return not _is_single(run) and run.launch.runs is not Runs.FIRST_TASK


def _is_single(run: Run) -> bool:
    return len(run.allocation.placements) == 1


def _ours(env: Mapping[str, str], manner: Manner) -> dict[str, str]:
    """Without what Slurm itself sets for its jobs, and what is only known where it chose nodes."""
    unknown = delegated.CHOSEN_THERE if manner.delegates else frozenset[str]()
    return {
        name: value
        for name, value in env.items()
        if name not in unknown and (not name.startswith(_THEIRS) or name.startswith(_OURS))
    }


def _literal(path: str) -> str:
    """A path in which Slurm fills nothing in: ours is filled already."""
    return path.replace("%", "%%")
