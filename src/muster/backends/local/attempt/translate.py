"""From what the port says to what a supervisor reads."""

from dataclasses import asdict

import msgspec

from muster.backends.base import Continue, Limit, Run, Signal, Stop, Supplies, Supply, Suspend
from muster.backends.local.attempt import spool
from muster.backends.local.hardware.mps import PIPE_VARIABLE
from muster.backends.local.isolation.devices import DeviceWall
from muster.launch.prepare import PreparedAttempt, PreparedTask
from muster.model.launch import Checkpointing, Launch, Runs
from muster.model.value import Value

Order = Stop | Suspend | Continue | Signal | Limit | Supply


class LocalAccess(Value):
    """What this machine adds to an attempt.

    mark: by which the attempt's processes are recognised. cpus: those that it alone may use.
    wall: which devices it may open, where the machine can keep it from others.
    """

    mark: str
    cpus: tuple[int, ...] = ()
    wall: DeviceWall | None = None


def launch_file(run: Run, prepared: PreparedAttempt, access: LocalAccess) -> spool.LaunchFile:
    """Everything the supervisor needs."""
    job, launch, attempt = run.job, run.launch, run.allocation.attempt
    return {
        "key": spool.key_of(job.id, attempt),
        "marker": access.mark,
        "job": job.id,
        "node": prepared.placed.allocation.placements[0].node,
        "user": job.spec.user,
        "argv": list(launch.argv),
        "script": launch.script,
        "image": launch.image,
        "images_on_host": run.images_on_host,
        "env": {**prepared.env, spool.MARKER_VARIABLE: access.mark},
        "tasks": [_task(task) for task in prepared.tasks],
        "hosts": prepared.host_file
        and {"text": prepared.host_file.text, "variables": list(prepared.host_file.variables)},
        "workdir": launch.workdir,
        "append": launch.append,
        "umask": launch.umask,
        "warn": _warn(launch),
        "checkpoint": _checkpoint(prepared.checkpoint),
        "terminal": launch.terminal and (launch.terminal.rows, launch.terminal.columns),
        "limit_ms": job.spec.time_limit,
        "grace_ms": run.grace,
        "memory_mib": prepared.memory_mib,
        "cpu_milli": prepared.cpu_milli,
        "cpus": list(access.cpus),
        "processes": run.confinement.processes or 0,
        "wall": _wall(access.wall),
        "private_tmp": run.confinement.private_tmp,
        "mps": next(
            (task.env[PIPE_VARIABLE] for task in prepared.tasks if PIPE_VARIABLE in task.env), None
        ),
        "new_privileges": run.confinement.new_privileges,
        "master_port": prepared.master_port,
        "steps_only": launch.runs is Runs.STEPS_ONLY,
        "shares": [asdict(share) for share in prepared.shares],
        "pod": None if launch.pod is None else msgspec.to_builtins(launch.pod),
        "gang": None if launch.gang is None else msgspec.to_builtins(launch.gang),
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
                "task": order.task,
            }
        case Limit():
            return {"kind": "limit", "ends_at": order.ends_at}
        case Supply():
            return {"kind": "supply"}


def supplies_file(supplies: Supplies) -> dict[str, object]:
    """What a pod may read, as its supervisor reads it."""
    found: dict[str, object] = msgspec.to_builtins(supplies)
    return found


def _task(task: PreparedTask) -> spool.TaskFile:
    return {
        "env": dict(task.env),
        "stdin": task.stdin,
        "stdout": task.stdout,
        "stderr": task.stderr,
        "gpus": list(task.gpus),
        "memory_mib": task.memory_mib,
        "node": task.node,
    }


def _wall(wall: DeviceWall | None) -> spool.WallFile | None:
    return None if wall is None else {"majors": list(wall.majors), "given": list(wall.given)}


def _warn(launch: Launch) -> spool.WarnFile | None:
    warn = launch.warn
    if warn is None:
        return None
    return {"signal": warn.signal, "lead_ms": warn.lead, "shell_only": warn.shell_only}


def _checkpoint(wanted: Checkpointing | None) -> spool.CheckpointingFile | None:
    return None if wanted is None else {"path": wanted.path, "signal": wanted.signal}
