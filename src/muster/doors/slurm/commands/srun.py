"""`srun`: run a step of a job, or a job of its own."""

from muster.controller.asked import JobView
from muster.doors.slurm import allocating
from muster.doors.slurm.call import (
    Call,
    Door,
    ReadScript,
    Reply,
    unsupported,
    version,
    warning,
)
from muster.doors.slurm.checking import demand_sane
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.options import Parsed, parsed
from muster.doors.slurm.request import Request, merged
from muster.doors.slurm.shape import node_count
from muster.doors.slurm.step_options import ALIASES, SRUN, Options, from_environment
from muster.doors.slurm.stepping import MPI_TYPES, Place, check_mpi, step_of, too_many_nodes
from muster.doors.slurm.trouble import SlurmError, failed
from muster.model.errors import ForbiddenError, MusterError, UnknownError
from muster.model.job import FINAL, JobState
from muster.model.value import JobId, NodeId, replace

NAME = "srun"


def run(call: Call, door: Door) -> Reply:
    """Say what the thin command is to do: wait, or run the step."""
    line = parsed(SRUN.all, call.argv, SRUN.manner)
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, SRUN.all, "[OPTIONS...] executable [args...]")
    if line.value("mpi") == "list":
        return Reply(out=MPI_TYPES)
    request = request_of(call, line, door, SRUN)
    if "cancel" in call.memo:
        return allocating.given_up(request, door)
    return _goes(request, door)


def request_of(call: Call, line: Parsed, door: Door, options: Options) -> Request:
    """The environment and the command line together; SlurmError for what cannot be done here."""
    name = options.manner.command
    surrounding = from_environment(name, call.env, line)
    for option, _ in line.given:
        if option in options.refused:
            raise unsupported(name, option)
    given = merged(surrounding, line, aliases=ALIASES)
    return Request(command=name, given=given, call=call, now=door.now)


def warnings_of(request: Request, options: Options) -> str:
    """What is accepted and has no effect, said once."""
    if request.call.memo or request.call.script is not None:
        return ""
    names = dict.fromkeys(name for name, _ in request.given.given)
    return "".join(warning(request.command, name) for name in names if name in options.ignored)


def _goes(request: Request, door: Door) -> Reply:
    rest = request.given.rest
    if not rest:
        raise SlurmError("srun: fatal: No command given to execute.")
    if ":" in rest:
        raise failed(NAME, "Muster runs one program for each step; start the others beside it")
    if request.text("het-group") not in {None, "0"}:
        raise unsupported(NAME, "het-group")
    check_mpi(request)
    if request.has("multi-prog") and request.call.script is None:
        otherwise = f"Could not open multi_prog config file {rest[0]}"
        return Reply(then=ReadScript(file=rest[0], otherwise=otherwise))
    job = _job_named(request)
    if job is None:
        return _of_its_own(request, door)
    return _step(request, door, _place(door, job))


def _job_named(request: Request) -> JobId | None:
    """The job in which we are, or that was named."""
    env = request.call.env
    text = request.text("jobid") or env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID")
    if text is None:
        return None
    if not text.isdigit():
        raise failed(NAME, f'Invalid numeric value "{text}" for --jobid.')
    return JobId(int(text))


def _of_its_own(request: Request, door: Door) -> Reply:
    if "job" not in request.call.memo:
        told = warnings_of(request, SRUN)
        nodes, tasks = node_count(request), request.number("ntasks")
        if nodes is not None and tasks is not None and tasks < nodes:
            told += too_many_nodes(tasks, nodes)
            given = replace(request.given, given=(*request.given.given, ("nodes", str(tasks))))
            request = replace(request, given=given)
        return allocating.submitted(request, door, told)
    granted = allocating.waited(request, door)
    if isinstance(granted, Reply):
        return granted
    try:
        reply = _step(request, door, replace(_place_of(granted.view, door), owns=True))
    except MusterError:
        # Nobody will come for the job.
        door.service.cancel(door.caller, (granted.view.job.id,)).result()
        raise
    return replace(reply, err=granted.told + reply.err)


def _place(door: Door, job: JobId) -> Place:
    try:
        view = door.looking.job(door.caller, job).view
        if view.job.state in FINAL:
            raise _expired(job)
        if view.job.state in {JobState.PENDING, JobState.HELD}:
            raise failed(NAME, f"Unable to create step for job {job}: Job is pending execution")
        return _place_of(view, door)
    except UnknownError:
        raise _expired(job) from None
    except ForbiddenError:
        problem = "Access/permission denied"
        raise failed(NAME, f"Unable to create step for job {job}: {problem}") from None


def _place_of(view: JobView, door: Door) -> Place:
    held = view.allocation
    placements = () if held is None else held.placements
    return Place(
        job=view.job,
        nodes=tuple(dict.fromkeys(NodeId(each.node) for each in placements)),
        folder=door.looking.steps_at(door.caller, view.job.id),
    )


def _step(request: Request, door: Door, place: Place) -> Reply:
    demand_sane(request)
    machines = door.memory.machines(door.looking.snapshot().nodes)
    step, warnings = step_of(request, place, machines)
    return Reply(err=warnings_of(request, SRUN) + warnings, then=step)


def _expired(job: JobId) -> SlurmError:
    problem = f"Unable to confirm allocation for job {job}: Invalid job id specified"
    check = f"Check SLURM_JOB_ID environment variable. Expired or invalid job {job}"
    return SlurmError(f"srun: error: {problem}", f"srun: {check}")
