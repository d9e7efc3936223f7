"""What scontrol brings out of the server: scripts, the configuration, tokens, and messages."""

from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.slurm.call import Call, Door, Reply, WriteFile
from muster.doors.slurm.control import configuration
from muster.doors.slurm.lists.filters import in_any_state, job_name, live_views
from muster.doors.slurm.permissions import STRANGER, may_be_user, may_change
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Parsed
from muster.model.errors import MusterError
from muster.model.job import JobState
from muster.model.site import Role
from muster.model.value import Duration, UserName

FAILURE = "job script retrieval failed"
LOST = f"{FAILURE}: Invalid job id specified"


def write(words: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> Reply:
    """`write batch_script ID [FILE|-]`, `write config [FILE]`."""
    what, rest = words[0], words[1:]
    if "batch_script".startswith(what.lower()) and len(what) > 4:
        return _script(rest, call, door)
    if "config".startswith(what.lower()):
        if "written" in call.memo:
            return Reply(out=f"Slurm config saved to {call.memo['written']}\n")
        base = rest[0] if rest else "slurm.conf"
        file = f"{base}.{times.instant_text(door.now, zone=call.zone)}"
        text = configuration.as_file(call, door)
        return Reply(then=WriteFile(file=file, text=text, memo={"written": file}))
    raise SlurmError(f"invalid write argument:{what}")


def notify(words: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> Reply:
    """A message for the job's own output: there is no way to it here, and that is said."""
    name = job_name(words[0])
    views = [] if name is None else live_views(door, in_any_state(name))
    if not any(view.job.state is JobState.RUNNING for view in views):
        raise SlurmError("job notify failure: Invalid job id specified")
    if not all(may_change(door, view.job) for view in views):
        raise SlurmError(f"job notify failure: {STRANGER}")
    return Reply(err="scontrol: warning: notify is ignored by Muster\n")


def new_token(door: Door, user: UserName, lifetime: Duration) -> str:
    """The secret of a token of Muster's."""
    wish = TokenRequest(user=user, role=Role.USER, queue=None, lifetime=lifetime)
    try:
        return door.service.make_token(door.caller, wish).result().secret
    except MusterError as error:
        why = f"scontrol: error: slurm_fetch_token: error with request: {STRANGER}"
        raise SlurmError(why, "Error fetching token") from error


def _script(words: tuple[str, ...], call: Call, door: Door) -> Reply:
    name = job_name(words[0]) if words else None
    if name is None:
        raise SlurmError(LOST, code=0)
    file = words[1] if len(words) > 1 else f"slurm-{name.text}.sh"
    if "written" in call.memo:
        return Reply(out=f"batch script for job {name.text} written to {file}\n")
    try:
        detail = door.queries.jobs.detail(door.caller, name.job)
    except MusterError as error:
        # Slurm ends well here.
        raise SlurmError(LOST, code=0) from error
    if not may_be_user(door, detail.view.job):
        raise SlurmError(f"{FAILURE}: {STRANGER}", code=0)
    launch = detail.launch
    if launch is None or launch.script is None:
        raise SlurmError(LOST, code=0)
    if file == "-":
        return Reply(out=launch.script)
    return Reply(then=WriteFile(file=file, text=launch.script, memo={"written": file}))
