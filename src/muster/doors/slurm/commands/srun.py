"""`srun`: run a step of a job, or a job of its own."""

from collections.abc import Sequence

from muster.controller.messages import JobView
from muster.doors.slurm.call import (
    Call,
    Door,
    ReadScript,
    Reply,
    unsupported,
    version,
    warning,
)
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.components import component_count, is_of_component
from muster.doors.slurm.permissions import DENIED, may_be_user
from muster.doors.slurm.steps import allocations
from muster.doors.slurm.steps.component_lines import lines_of, shares_of
from muster.doors.slurm.steps.step_options import ALIASES, SRUN, Options, from_environment
from muster.doors.slurm.steps.step_request import (
    MPI_TYPES,
    StepJob,
    check_mpi,
    side_by_side,
    step_of,
    too_many_nodes,
)
from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.inert_options import demand_sane
from muster.doors.slurm.submit.request import Request, merged
from muster.doors.slurm.submit.shape import node_count
from muster.doors.slurm.words.binding import HELP, asks_for_help, binding_words
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.options import Parsed
from muster.model.errors import MusterError, UnknownError
from muster.model.job import FINAL, JobState
from muster.model.value import JobId, NodeId, replace

NAME = "srun"


def run(call: Call, door: Door) -> Reply:
    """Say what the thin command is to do: wait, or run the step."""
    lines = lines_of(call, SRUN)
    line = lines[0]
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, SRUN.all, "[OPTIONS...] executable [args...]")
    if line.value("mpi") == "list":
        return Reply(out=MPI_TYPES)
    if "cancel" in call.memo:
        return allocations.given_up(request_of(call, line, door, SRUN), door)
    return _goes(call, lines, door)


def request_of(
    call: Call, line: Parsed, door: Door, options: Options, component: int = 0
) -> Request:
    """The environment and the command line together; SlurmError for what cannot be done here."""
    name = options.manner.command
    surrounding = from_environment(name, call.env, line, component)
    for option, _ in line.given:
        if option in options.refused:
            raise unsupported(name, option)
    given = merged(surrounding, line, aliases=ALIASES)
    return Request(command=name, given=given, call=call, now=door.now, component=component)


def warnings_of(requests: Sequence[Request], options: Options) -> str:
    """What is accepted and has no effect, said once."""
    call, command = requests[0].call, requests[0].command
    if call.memo or call.script is not None:
        return ""
    names = dict.fromkeys(name for each in requests for name, _ in each.given.given)
    return "".join(warning(command, name) for name in names if name in options.ignored)


def _words(requests: tuple[Request, ...], machines: Machines) -> str:
    """All that is said before anything runs, once."""
    call = requests[0].call
    if call.memo or call.script is not None:
        return ""
    return warnings_of(requests, SRUN) + binding_words(requests, machines)


def _goes(call: Call, lines: Sequence[Parsed], door: Door) -> Reply:
    rest = lines[-1].rest
    if not rest:
        raise SlurmError("srun: fatal: No command given to execute.")
    job = _job_named(call, lines[0])
    view = None if job is None else _view(door, job)
    shares = shares_of(lines, None if view is None else component_count(view.job))
    requests = tuple(
        request_of(call, share.line, door, SRUN, component=share.number) for share in shares
    )
    if asks_for_help(requests[0]):
        return Reply(out=HELP, code=1)
    for request in requests:
        check_mpi(request)
        demand_sane(request)
    if any(request.has("multi-prog") for request in requests):
        if len(requests) > 1:
            raise failed(NAME, "Muster reads --multi-prog only for steps of one component")
        if call.script is None:
            otherwise = f"Could not open multi_prog config file {rest[0]}"
            return Reply(then=ReadScript(file=rest[0], otherwise=otherwise))
    return _of_its_own(requests, door) if view is None else _step(requests, view, door)


def _job_named(call: Call, line: Parsed) -> JobId | None:
    """The job in which we are, or that was named."""
    text = line.value("jobid") or call.env.get("SLURM_JOB_ID") or call.env.get("SLURM_JOBID")
    if text is None:
        return None
    if not text.isdecimal():
        raise failed(NAME, f'Invalid numeric value "{text}" for --jobid.')
    return JobId(int(text))


def _of_its_own(requests: tuple[Request, ...], door: Door) -> Reply:
    if "job" not in requests[0].call.memo:
        fitted = [_fitted(request) for request in requests]
        machines = door.cache.machines(door.queries.nodes.all())
        printed = _words(requests, machines) + "".join(text for _, text in fitted)
        return allocations.submitted(tuple(request for request, _ in fitted), door, printed)
    granted = allocations.waited(requests[0], door)
    if isinstance(granted, Reply):
        return granted
    try:
        reply = _step(requests, granted.view, door, owns=True)
    except MusterError:
        # No client waits for the job any more.
        door.service.cancel(door.caller, (granted.view.job.id,)).result()
        raise
    return replace(reply, err=granted.messages + reply.err)


def _fitted(request: Request) -> tuple[Request, str]:
    """No more nodes than tasks; and what is said of it."""
    nodes, tasks = node_count(request), request.number("ntasks")
    if nodes is None or tasks is None or tasks >= nodes:
        return request, ""
    given = replace(request.given, given=(*request.given.given, ("nodes", str(tasks))))
    return replace(request, given=given), too_many_nodes(tasks, nodes)


def _view(door: Door, job: JobId) -> JobView:
    try:
        view = door.queries.jobs.detail(door.caller, job).view
    except UnknownError:
        raise _expired(job) from None
    if view.job.state in FINAL:
        raise _expired(job)
    if not may_be_user(door, view.job):
        raise failed(NAME, f"Unable to create step for job {job}: {DENIED}")
    if view.job.state in {JobState.PENDING, JobState.HELD}:
        raise failed(NAME, f"Unable to create step for job {job}: Job is pending execution")
    return view


def _step(requests: tuple[Request, ...], view: JobView, door: Door, *, owns: bool = False) -> Reply:
    machines = door.cache.machines(door.queries.nodes.all())
    step, warnings = step_of(requests, _places(requests, view, door, owns=owns), machines)
    return Reply(err=_words(requests, machines) + warnings, then=step)


def _places(
    requests: tuple[Request, ...], view: JobView, door: Door, *, owns: bool
) -> tuple[StepJob, ...]:
    """A place for each: in its component, or beside each other where the job has but one."""
    address = door.queries.attempts.step_address(door.caller, view.job.id)
    placements = () if view.allocation is None else view.allocation.placements
    if component_count(view.job) == 1:
        nodes = tuple(dict.fromkeys(NodeId(each.node) for each in placements))
        return side_by_side(
            requests, StepJob(job=view.job, nodes=nodes, address=address, owns=owns)
        )
    found: list[StepJob] = []
    for number in (request.component for request in requests):
        here = (each.node for each in placements if is_of_component(each.group, number))
        nodes = tuple(dict.fromkeys(map(NodeId, here)))
        place = StepJob(job=view.job, nodes=nodes, address=address, owns=owns, component=number)
        found.append(place)
    return tuple(found)


def _expired(job: JobId) -> SlurmError:
    problem = f"Unable to confirm allocation for job {job}: Invalid job id specified"
    check = f"Check SLURM_JOB_ID environment variable. Expired or invalid job {job}"
    return SlurmError(f"srun: error: {problem}", f"srun: {check}")
