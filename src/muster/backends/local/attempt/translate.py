"""From what the port says to what a supervisor reads. Pure."""

import msgspec

from muster.backends.base import Continue, Limit, OutputAsked, Run, Signal, Stop, Suspend
from muster.backends.local.attempt import batch_environment, environment, slurm_environment, spool
from muster.backends.local.attempt.environment import DeviceAccess
from muster.backends.local.attempt.patterns import Names, default_stdout, filled
from muster.backends.local.steps import shares
from muster.model.job import Job
from muster.model.launch import Launch, Runs
from muster.model.placement import Placement
from muster.model.value import Duration, NodeId, Value, replace

Order = Stop | Suspend | Continue | Signal | Limit


class Site(Value):
    """What this machine adds to a Run.

    mark: by which the attempt's processes are known. given: for each placement, in their order.
    """

    mark: str
    grace: Duration
    given: tuple[DeviceAccess, ...]
    cpus: tuple[int, ...] = ()


def in_rank_order(run: Run) -> Run:
    """Ranks follow the groups as the job names them, and then the index within the group."""
    order = {group.name: place for place, group in enumerate(run.job.spec.groups)}

    def rank(placement: Placement) -> tuple[int, str, int]:
        return (order.get(placement.group, len(order)), placement.group, placement.index)

    placements = tuple(sorted(run.allocation.placements, key=rank))
    return replace(run, allocation=replace(run.allocation, placements=placements))


def launch_file(run: Run, site: Site) -> spool.LaunchFile:
    """Everything the supervisor needs; the placements are in the order of the ranks."""
    job, launch, placements = run.job, run.launch, run.allocation.placements
    key = spool.key_of(job.id, run.allocation.attempt)
    slurms = slurm_environment.of_tasks(run)
    own = [
        mine | theirs
        for mine, theirs in zip(environment.of_tasks(run, site.given), slurms, strict=True)
    ]
    memory = [placement.amount.memory_mib for placement in placements]
    return {
        "key": key,
        "marker": site.mark,
        "job": job.id,
        "node": placements[0].node,
        "user": job.spec.user,
        "argv": list(launch.argv),
        "script": launch.script,
        "image": launch.image,
        "images_on_host": run.images_on_host,
        "env": _env(run, site),
        "tasks": [_task(run, rank, env) for rank, env in enumerate(own)],
        "hosts": batch_environment.hosts(run),
        "workdir": launch.workdir,
        "append": launch.append,
        "umask": launch.umask,
        "warn": _warn(launch),
        "checkpoint": _checkpoint(run),
        "terminal": launch.terminal and (launch.terminal.rows, launch.terminal.columns),
        "limit_ms": job.spec.time_limit,
        "grace_ms": site.grace,
        # One task without a limit, and there is none for the attempt.
        "memory_mib": sum(memory) if all(memory) else 0,
        "cpu_milli": sum(placement.amount.cpu_milli for placement in placements),
        "cpus": list(site.cpus),
        "master_port": environment.master_port(job.id, run.allocation.attempt),
        "steps_only": launch.runs is Runs.STEPS_ONLY,
        "rooms": shares.of_run(run, site.given),
    }


def order_file(order: Order) -> dict[str, object]:
    """An order as the supervisor reads it."""
    match order:
        case Stop():
            return {
                "kind": "stop",
                "why": msgspec.to_builtins(order.why),
                "grace_ms": order.grace,
                "checkpoint": order.checkpoint,
            }
        case Suspend():
            return {"kind": "suspend"}
        case Continue():
            return {"kind": "continue"}
        case Signal():
            return {
                "kind": "signal",
                "signal": order.signal,
                "shell_only": order.shell_only,
                "step": order.step,
            }
        case Limit():
            return {"kind": "limit", "ends_at": order.ends_at}


def output_name(asked: OutputAsked) -> str:
    """The file that the task wrote to, perhaps relative to where the job began."""
    names = _names(asked.job, asked.nodes[0] if asked.nodes else "", asked.task)
    wanted = asked.launch.stderr if asked.stderr else None
    return filled(wanted or _stdout(asked.job, asked.launch), names)


def _env(run: Run, site: Site) -> dict[str, str]:
    """What the job asked for, under what it may not say of itself."""
    checkpoint = _checkpoint(run)
    where = {} if checkpoint is None else {"MUSTER_CHECKPOINT_PATH": checkpoint["path"]}
    marked = {"MUSTER_ATTEMPT_KEY": site.mark}
    facts = {
        **environment.of_attempt(run),
        **slurm_environment.of_attempt(run),
        **batch_environment.of_attempt(run),
    }
    return {**run.launch.env, **facts, **where, **marked}


def _task(run: Run, rank: int, env: dict[str, str]) -> spool.TaskFile:
    launch, placements = run.launch, run.allocation.placements
    node = placements[rank].node
    names = _names(run.job, node, rank, environment.nodes_of(placements).index(node))
    return {
        "env": env,
        "stdin": None if launch.stdin is None else filled(launch.stdin, names),
        "stdout": filled(_stdout(run.job, launch), names),
        "stderr": None if launch.stderr is None else filled(launch.stderr, names),
        "gpus": _real_gpus(run, node, env),
    }


def _real_gpus(run: Run, node: NodeId, env: dict[str, str]) -> list[str]:
    """What a container must be given: pretend devices are only in the environment."""
    known = run.nodes.get(node)
    visible = env["CUDA_VISIBLE_DEVICES"]
    return [] if not visible or (known is not None and known.pretend) else visible.split(",")


def _stdout(job: Job, launch: Launch) -> str:
    return launch.stdout or default_stdout(is_array=job.spec.array is not None)


def _names(job: Job, node: str, task: int, node_index: int = 0) -> Names:
    part = job.spec.array
    return Names(
        job=job.id,
        job_name=job.spec.name,
        user=job.spec.user,
        node=node,
        node_index=node_index,
        task=task,
        array=None if part is None else part.array,
        index=None if part is None else part.index,
    )


def _warn(launch: Launch) -> spool.WarnFile | None:
    warn = launch.warn
    if warn is None:
        return None
    return {"signal": warn.signal, "lead_ms": warn.lead, "shell_only": warn.shell_only}


def _checkpoint(run: Run) -> spool.CheckpointingFile | None:
    wanted = run.launch.checkpoint
    if wanted is None:
        return None
    names = _names(run.job, run.allocation.placements[0].node, 0)
    return {"path": filled(wanted.path, names), "signal": wanted.signal}
