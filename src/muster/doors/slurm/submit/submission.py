"""From a call of sbatch to what is submitted: options, script and environment as one JobSpec."""

import os.path
from collections.abc import Mapping

from muster.controller.use_cases.submission import NO_QUEUE
from muster.doors.request.parse import Wanted
from muster.doors.slurm.accounting.associations import queue_named
from muster.doors.slurm.call import Call, Script, unsupported
from muster.doors.slurm.submit import directives, job_details
from muster.doors.slurm.submit.environment import described, exported
from muster.doors.slurm.submit.inert_options import demand_sane
from muster.doors.slurm.submit.job_options import (
    ALIASES,
    ENVIRONMENT,
    IGNORED_NAMES,
    OPTIONS,
    REFUSED_NAMES,
    SBATCH,
)
from muster.doors.slurm.submit.labels import job_name, labels_of, script_line, submit_line
from muster.doors.slurm.submit.our_words import World, in_our_words
from muster.doors.slurm.submit.request import Request, merged
from muster.doors.slurm.submit.shape import (
    TaskLayout,
    amounts_of,
    demand_possible,
    demand_room,
    shape_of,
    widened,
)
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.options import Manner, Parsed, parsed
from muster.model.job import Dependency, JobSpec, RetryPolicy, TaskGroup
from muster.model.launch import Launch, Runs
from muster.model.queue import UNNAMED
from muster.model.value import (
    ClassName,
    Duration,
    Instant,
    PoolName,
    QueuePath,
    replace,
)

NOT_A_SCRIPT = (
    "sbatch: error: This does not look like a batch script.  The first",
    "sbatch: error: line must start with #! followed by the path to an interpreter.",
    "sbatch: error: For instance: #!/bin/sh",
)


def command_line(call: Call, manner: Manner = SBATCH) -> Parsed:
    """What stands on the command line: the first component's options, and the script."""
    typed = _typed(call, manner)
    return Parsed(given=typed[0].given, rest=typed[-1].rest)


def script_of(line: Parsed, script: Script | None) -> str:
    """The script: given, read, or made of --wrap. SlurmError for what is none."""
    wrapped = line.value("wrap")
    if wrapped is not None:
        if line.rest:
            raise failed("sbatch", "Script arguments not permitted with --wrap option")
        return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrapped}\n"
    text = script.text if script is not None else ""
    if not text:
        raise failed("sbatch", "Batch script is empty!")
    if text.isspace():
        raise failed("sbatch", "Batch script contains only whitespace!")
    if not text.startswith("#!"):
        raise SlurmError(*NOT_A_SCRIPT)
    if "\0" in text:
        problem = "The Slurm controller does not allow scripts that\n"
        raise failed("sbatch", problem + "sbatch: error: contain a NULL character '\\0'.")
    if "\r\n" in text:
        problem = "Batch script contains DOS line breaks (\\r\\n)\n"
        raise failed(
            "sbatch", problem + "sbatch: error: instead of expected UNIX line breaks (\\n)."
        )
    return text


def requests_of(call: Call, line: Parsed, script: str, now: Instant) -> tuple[Request, ...]:
    """One request for each component of the job: script, then environment, then command line."""
    surrounding = _from_environment(call.env)
    written = directives.components(script, line.rest[0] if line.rest else "sbatch")
    typed = _typed(call)
    found: list[Request] = []
    for place in range(max(len(written), len(typed))):
        options = written[place] if place < len(written) else ()
        own = typed[place].given if place < len(typed) else ()
        layers = (
            _of_script(options),
            surrounding if place == 0 else Parsed(),
            Parsed(given=own, rest=line.rest),
        )
        given = merged(*layers, aliases=ALIASES)
        found.append(Request(command="sbatch", given=given, call=call, now=now))
    return tuple(found)


def _of_script(options: tuple[str, ...]) -> Parsed:
    found = parsed(OPTIONS, options, Manner(command="sbatch", permute=False, code=255))
    if found.rest:
        problem = f"Invalid directive found in batch script: {found.rest[0]}"
        raise failed("sbatch", problem, code=255)
    return found


def wanted(requests: tuple[Request, ...], script: str, world: World) -> Wanted:
    """Everything together; SlurmError in Slurm's words for what cannot be."""
    request = requests[0]
    warnings = tuple(text for each in requests for text in _deeds(each))
    demand_possible(request, world.machines)
    shapes = _shapes(requests, world)
    groups = tuple(group for each in shapes for group in each.groups)
    for group in groups:
        demand_room(request, group, world.machines)
    indices, at_once = job_details.indices_of(request)
    variables = _described(requests, shapes, world, indices)
    launch = _launch(request, script, exported(request) | variables)
    after = job_details.dependencies_of(request, world.meant, indices)
    if indices and len(requests) > 1:
        raise request.submission_failed("Invalid job array specification")
    labels = labels_of(requests, shapes, world.machines)
    spec = _spec(request, world, groups, (launch, after, labels))
    asked = Wanted(
        spec=spec,
        indices=indices,
        at_once=at_once,
        held=job_details.is_held(request),
        warnings=warnings,
    )
    return in_our_words(asked, request, script, world)


def held_for_steps(requests: tuple[Request, ...], world: World) -> Wanted:
    """A job that runs nothing by itself: srun and salloc start steps in it."""
    request, shapes = requests[0], _shapes(requests, world)
    groups = tuple(group for each in shapes for group in each.groups)
    launch = Launch(
        env=_described(requests, shapes, world, ()),
        workdir=request.call.cwd,
        runs=Runs.STEPS_ONLY,
        warn=job_details.warn_of(request),
        submit_line=submit_line(request),
        script_line=script_line(request),
    )
    after = job_details.dependencies_of(request, world.meant)
    labels = labels_of(requests, shapes, world.machines)
    spec = _spec(request, world, groups, (launch, after, labels))
    held = job_details.is_held(request)
    asked = Wanted(spec=replace(spec, retry=RetryPolicy(requeue=False)), held=held)
    return in_our_words(asked, request, "", world)


def _shapes(requests: tuple[Request, ...], world: World) -> list[TaskLayout]:
    """What each component comes to; the groups of later ones are named after their number."""
    for each in requests:
        # The job goes where the first wants it; what the others name must exist.
        _pools(each, world)
    return [
        _shape(each, world, "main" if place == 0 else f"het{place}")
        for place, each in enumerate(requests)
    ]


def _shape(request: Request, world: World, name: str) -> TaskLayout:
    shape = shape_of(request, world.machines, name)
    if not request.has("exclusive") or request.text("exclusive"):
        return shape
    return widened(shape, _pools(request, world), world.machines)


def _described(
    requests: tuple[Request, ...], shapes: list[TaskLayout], world: World, indices: tuple[int, ...]
) -> dict[str, str]:
    """What the job learns of the request: of the first component, and by number of each."""
    each = [
        described(request, amounts_of(request, world.machines), shape, indices)
        for request, shape in zip(requests, shapes, strict=True)
    ]
    if len(requests) == 1:
        return each[0]
    by_number = {
        f"{name}_HET_GROUP_{number}": text
        for number, described in enumerate(each)
        for name, text in described.items()
        if not name.startswith("SLURM_SUBMIT_")
    }
    return each[0] | by_number


def _typed(call: Call, manner: Manner = SBATCH) -> tuple[Parsed, ...]:
    """The options of each component, which a lone colon separates; the script is with the last."""
    found = [parsed(OPTIONS, call.argv, manner)]
    while found[-1].rest[:1] == (":",):
        found.append(parsed(OPTIONS, found[-1].rest[1:], manner))
    return tuple(found)


def _from_environment(env: Mapping[str, str]) -> Parsed:
    given = [(option, env[name]) for name, option in ENVIRONMENT.items() if name in env]
    return Parsed(given=tuple(given))


def _deeds(request: Request) -> tuple[str, ...]:
    """Warnings for what has no effect; what we cannot do is refused."""
    names = dict.fromkeys(name for name, _ in request.given.given)
    for name in names:
        if name in REFUSED_NAMES:
            raise unsupported(request.command, name)
    job_details.mail_of(request)
    demand_sane(request)
    job_details.demand_group(request)
    return tuple(f"--{name} is ignored by Muster" for name in names if name in IGNORED_NAMES)


def _spec(
    request: Request,
    world: World,
    groups: tuple[TaskGroup, ...],
    rest: tuple[Launch, tuple[Dependency, ...], dict[str, str]],
) -> JobSpec:
    launch, after, labels = rest
    return JobSpec(
        name=job_name(request),
        user=job_details.user(request) or world.user,
        queue=_account(request, world),
        groups=groups,
        job_class=ClassName(request.text("qos") or UNNAMED),
        pools=_pools(request, world),
        priority=job_details.priority_of(request),
        time_limit=_limit(request, world),
        begin_at=request.instant("begin"),
        deadline=request.instant("deadline"),
        reservation=request.text("reservation"),
        after=after,
        cancel_if_hopeless=(request.text("kill-on-invalid-dep") or "").lower() == "yes",
        retry=RetryPolicy(requeue=_requeues(request)),
        labels=labels,
        mail=job_details.mail_of(request),
        launch=launch,
    )


def _pools(request: Request, world: World) -> tuple[PoolName, ...]:
    text = request.text("partition")
    if text is None and world.default is not None:
        return (world.default,)
    pools = tuple(PoolName(each) for each in (text or "").split(",") if each)
    for pool in pools:
        if pool not in world.partitions:
            raise SlurmError(
                f"{request.command}: error: invalid partition specified: {pool}",
                *request.submission_failed("Invalid partition name specified").lines,
            )
    return pools


def _account(request: Request, world: World) -> QueuePath:
    """By its path, or by its last part; what is unknown is refused later, by name."""
    name = request.text("account")
    if not name:
        return NO_QUEUE
    return queue_named(world.accounts, name) or QueuePath(name)


def _limit(request: Request, world: World) -> Duration | None:
    """Who asks for no limit must say so in a number, where others would be given one."""
    limit = request.limit()
    if not limit and request.has("time") and world.has_usual_limit:
        return times.ENDLESS_LIMIT
    return limit or None


def _requeues(request: Request) -> bool:
    """The last word counts; JobRequeue=1 is the default."""
    said = [name for name, _ in request.given.given if name in {"requeue", "no-requeue"}]
    return not said or said[-1] == "requeue"


def _launch(request: Request, script: str, env: dict[str, str]) -> Launch:
    call = request.call
    is_array = request.has("array")
    folder = request.text("chdir")
    return Launch(
        argv=request.given.rest[1:],
        script=script,
        image=request.text("container-image"),
        env=env,
        workdir=os.path.normpath(os.path.join(call.cwd, folder)) if folder else call.cwd,
        runs=Runs.FIRST_TASK,
        stdin=_file(request, "input"),
        stdout=_file(request, "output") or ("slurm-%A_%a.out" if is_array else "slurm-%j.out"),
        stderr=_file(request, "error"),
        append=job_details.appends(request),
        umask=call.umask,
        warn=job_details.warn_of(request),
        submit_line=submit_line(request),
        script_line=script_line(request),
    )


def _file(request: Request, option: str) -> str | None:
    """`none` and an empty name are /dev/null, as in Slurm."""
    text = request.text(option)
    return "/dev/null" if text in {"", "none"} else text
