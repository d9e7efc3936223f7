"""Everything an engine needs to start a placed attempt, whatever kind of engine it is."""

from collections.abc import Iterable, Mapping, Sequence

from muster.launch import batch_variables, muster_variables, slurm_variables
from muster.launch.attempt import DeviceAccess, PlacedAttempt, memory_limit_of, nodes_of
from muster.launch.patterns import filled, names_of, stdout_pattern
from muster.launch.shares import node_shares
from muster.launch.steps.shares import NodeShare
from muster.model.launch import Checkpointing, Runs
from muster.model.value import NodeId, Value, replace

_FIRST_PORT = 20_000
_PORTS = 40_000


class PreparedTask(Value):
    """One process to start on a node; its environment comes on top of the attempt's.

    stdin, stdout, stderr: with their patterns filled in, relative to where the job begins.
    gpus: the real ones, which a container must be given; pretend ones are only in the environment.
    memory_mib: its part of the attempt's memory; 0 where it has all of it.
    """

    node: NodeId
    env: Mapping[str, str]
    stdin: str | None
    stdout: str
    stderr: str | None
    gpus: tuple[str, ...] = ()
    memory_mib: int = 0


class HostFile(Value):
    """A list of hosts that PBS and LSF scripts expect; these variables name the file."""

    text: str
    variables: tuple[str, ...]


class PreparedAttempt(Value):
    """A placed attempt in the order of its ranks, and what follows from it.

    env: what all of its processes find; the engine adds what only it knows (its user's home, a
    free port) and nothing else.
    checkpoint: with the pattern of its path filled in.
    memory_mib, cpu_milli: of all tasks together; 0 MiB means no limit.
    master_port: where the tasks should meet, unless something else listens there.
    shares: what the attempt has of each node, for its steps.
    """

    placed: PlacedAttempt
    env: Mapping[str, str]
    tasks: tuple[PreparedTask, ...]
    host_file: HostFile | None
    checkpoint: Checkpointing | None
    memory_mib: int
    cpu_milli: int
    master_port: int
    shares: tuple[NodeShare, ...]


def prepare(
    placed: PlacedAttempt, access: Sequence[DeviceAccess], *, master: str
) -> PreparedAttempt:
    """What to start. The placements are in rank order, and `access` has an entry for each.

    master: the address at which the others reach rank 0.
    """
    placements = placed.allocation.placements
    checkpoint = _checkpoint(placed)
    return PreparedAttempt(
        placed=placed,
        env=_environment(placed, master, checkpoint),
        tasks=_tasks(placed, access),
        host_file=_host_file(placed),
        checkpoint=checkpoint,
        memory_mib=_together(memory_limit_of(placed, each) for each in placements),
        cpu_milli=sum(placement.amount.cpu_milli for placement in placements),
        master_port=master_port(placed.job.id, placed.allocation.attempt),
        shares=node_shares(placed, access),
    )


def _together(limits_mib: Iterable[int]) -> int:
    """One task without a limit, and there is none: 0."""
    limits = tuple(limits_mib)
    return sum(limits) if all(limits) else 0


def master_port(job: int, attempt: int) -> int:
    """The same for all tasks of an attempt, and seldom the same for two attempts."""
    return _FIRST_PORT + (job * 7 + attempt) % _PORTS


def _environment(
    placed: PlacedAttempt, master: str, checkpoint: Checkpointing | None
) -> dict[str, str]:
    """What the job asked for, under what it may not say of itself."""
    return {
        **placed.launch.env,
        **muster_variables.of_attempt(placed, master),
        **slurm_variables.of_attempt(placed),
        **batch_variables.of_attempt(placed),
        **({} if checkpoint is None else {"MUSTER_CHECKPOINT_PATH": checkpoint.path}),
    }


def _tasks(placed: PlacedAttempt, access: Sequence[DeviceAccess]) -> tuple[PreparedTask, ...]:
    ours = muster_variables.of_tasks(placed, access)
    slurms = slurm_variables.of_tasks(placed)
    each = (mine | theirs for mine, theirs in zip(ours, slurms, strict=True))
    return tuple(_task(placed, rank, env) for rank, env in enumerate(each))


def _task(placed: PlacedAttempt, rank: int, env: Mapping[str, str]) -> PreparedTask:
    launch, placements = placed.launch, placed.allocation.placements
    node = placements[rank].node
    names = names_of(placed.job, node, rank, nodes_of(placements).index(node))
    return PreparedTask(
        node=node,
        env=env,
        stdin=None if launch.stdin is None else filled(launch.stdin, names),
        stdout=filled(stdout_pattern(placed.job, launch), names),
        stderr=None if launch.stderr is None else filled(launch.stderr, names),
        gpus=_real_gpus(placed, node, env["CUDA_VISIBLE_DEVICES"]),
        memory_mib=_own_memory_mib(placed, rank),
    )


def _own_memory_mib(placed: PlacedAttempt, rank: int) -> int:
    placements = placed.allocation.placements
    if len(placements) == 1 or placed.launch.runs is not Runs.EVERY_TASK:
        return 0
    return memory_limit_of(placed, placements[rank])


def _real_gpus(placed: PlacedAttempt, node: NodeId, visible: str) -> tuple[str, ...]:
    known = placed.nodes.get(node)
    is_pretend = known is not None and known.pretend
    return () if not visible or is_pretend else tuple(visible.split(","))


def _host_file(placed: PlacedAttempt) -> HostFile | None:
    variables = batch_variables.host_file_variables(placed)
    return HostFile(text=batch_variables.hosts(placed), variables=variables) if variables else None


def _checkpoint(placed: PlacedAttempt) -> Checkpointing | None:
    wanted = placed.launch.checkpoint
    if wanted is None:
        return None
    names = names_of(placed.job, placed.allocation.placements[0].node, 0)
    return replace(wanted, path=filled(wanted.path, names))
