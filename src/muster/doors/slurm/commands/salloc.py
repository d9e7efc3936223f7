"""`salloc`: hold a job while a command runs here."""

from muster.doors.slurm.call import Call, Door, HoldJob, Reply, version
from muster.doors.slurm.commands.srun import request_of, warnings_of
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.steps import allocations
from muster.doors.slurm.steps.component_lines import lines_of
from muster.doors.slurm.steps.step_options import SALLOC
from muster.doors.slurm.submit.request import Request
from muster.doors.units import BadTextError, signal_number

NAME = "salloc"


def run(call: Call, door: Door) -> Reply:
    """Submit, wait, and have the thin command run what was asked for."""
    lines = lines_of(call, SALLOC)
    line = lines[0]
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, SALLOC.all, "[OPTIONS...] [command [args...]]")
    requests = tuple(
        request_of(call, each, door, SALLOC, component=place) for place, each in enumerate(lines)
    )
    request = requests[0]
    kill_signal = _kill_signal(request)
    if "cancel" in call.memo:
        return allocations.given_up(request, door)
    if "job" not in call.memo:
        return allocations.submitted(requests, door, warnings_of(requests, SALLOC))
    granted = allocations.waited(request, door)
    if isinstance(granted, Reply):
        return granted
    job = granted.view.job.id
    hold = HoldJob(
        job=job,
        address=door.queries.attempts.step_address(door.caller, job),
        argv=line.rest,
        env={"SLURM_SUBMIT_DIR": call.cwd, "SLURM_SUBMIT_HOST": call.host},
        keeps=request.has("no-shell"),
        bell=request.has("bell") and not request.has("no-bell"),
        quiet=request.has("quiet"),
        kill_signal=kill_signal,
    )
    return Reply(err=granted.messages, then=hold)


def _kill_signal(request: Request) -> int | None:
    if not request.has("kill-command"):
        return None
    try:
        return signal_number(request.text("kill-command") or "TERM")
    except BadTextError:
        raise request.bad("kill-command") from None
