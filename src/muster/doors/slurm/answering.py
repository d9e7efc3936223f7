"""Which command answers a call, and how errors become what the command prints."""

import time
from typing import Protocol

from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.commands import (
    sacct,
    sacctmgr,
    salloc,
    sattach,
    sbatch,
    sbcast,
    scancel,
    scontrol,
    scrontab,
    sdiag,
    sinfo,
    sprio,
    squeue,
    srun,
    sshare,
    sstat,
    strigger,
)
from muster.doors.slurm.words.errors import SlurmError
from muster.model.errors import ForbiddenError, MusterError


class Command(Protocol):
    """A module of `commands`."""

    NAME: str

    def run(self, call: Call, door: Door) -> Reply: ...


COMMANDS = (
    sbatch,
    srun,
    salloc,
    sattach,
    sbcast,
    squeue,
    scancel,
    sinfo,
    scontrol,
    sacct,
    sprio,
    sshare,
    sstat,
    sdiag,
    sacctmgr,
    scrontab,
    strigger,
)
"""Add a command: write its module, name it here; `muster slurm install` finds it."""

NAMES = tuple(command.NAME for command in COMMANDS)
_BY_NAME = {command.NAME: command for command in COMMANDS}


def is_sane(call: Call) -> bool:
    """Could a process have sent this? Others could hand a job what no process can be given."""
    texts = (*call.argv, call.cwd, *call.env, *call.env.values())
    return (
        not any("\0" in text or not _is_text(text) for text in texts)
        and all(name and "=" not in name for name in call.env)
        and call.cwd.startswith("/")
        and 0 <= call.umask <= 0o777
    )


def _is_text(text: str) -> bool:
    """Can it be written down and sent on?"""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def answered(name: str, call: Call, door: Door) -> Reply:
    """What the command prints, whatever happens."""
    command = _BY_NAME.get(name)
    if not is_sane(call):
        return Reply(err=f"{name}: error: the call cannot be read\n", code=1)
    if command is None:
        return Reply(err=f"{name}: error: Muster has no such command\n", code=1)
    began = time.perf_counter_ns()
    try:
        return command.run(call, door)
    except SlurmError as error:
        if error.on_stdout:
            return Reply(out=error.text, code=error.code)
        return Reply(err=error.text, code=error.code)
    except ForbiddenError as error:
        door.service.note_refusal(door.caller, name, str(error))
        return Reply(err=f"{name}: error: Access/permission denied\n", code=1)
    except MusterError as error:
        return Reply(err=f"{name}: error: {error}\n", code=1)
    finally:
        door.traffic.count(name, door.caller.user, (time.perf_counter_ns() - began) // 1_000)
