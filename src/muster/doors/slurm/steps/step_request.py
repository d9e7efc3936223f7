"""From a call of srun to the step that it asks for. Pure."""

import os.path
from collections.abc import Mapping, Sequence

from muster.doors.slurm.call import Conduct, Program, RunStep, StepOutput
from muster.doors.slurm.steps.programs import programs
from muster.doors.slurm.submit.environment import chosen_names
from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.job_details import appends
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.submit.shape import Amounts, amounts_of, node_count
from muster.doors.slurm.words.binding import cpu_bind_of, lacks_binding
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.hostlist import expanded
from muster.model.job import Job
from muster.model.value import NodeId, Value, replace

MPI_TYPES = "MPI plugin types are...\n\tnone\n\tpmi2\n"


PMI = "pmi2"
"""As MPICH and its kin find each other; this name is what Slurm's users give for it."""


class StepJob(Value):
    """The job that a step is part of, and where its supervisor listens.

    nodes: those of one component, if the job has several. owns: the job is there for this step
    alone. beside: how many of the nodes other parts of the step have already.
    """

    job: Job
    nodes: tuple[NodeId, ...]
    address: str
    owns: bool = False
    component: int = 0
    beside: int = 0


def step_of(
    requests: Sequence[Request], places: Sequence[StepJob], machines: Machines
) -> tuple[RunStep, str]:
    """The step, and what its user should know; a request and a place for each component."""
    request, place = requests[0], places[0]
    found = [_program(*each, machines) for each in zip(requests, places, strict=True)]
    # Labels are for the whole step, whichever component asks for them first.
    label = request.has("label")
    step = RunStep(
        job=place.job.id,
        address=place.address,
        names=_names(place.job),
        programs=tuple(
            replace(program, output=replace(program.output, label=label)) for program, _ in found
        ),
        limit_ms=None if place.owns else request.limit() or None,
        owns=place.owns,
        pmi=any(each.text("mpi") == PMI for each in requests),
        conduct=_conduct(request),
    )
    return step, "".join(warnings for _, warnings in found)


def _program(request: Request, place: StepJob, machines: Machines) -> tuple[Program, str]:
    amounts = amounts_of(request, machines)
    tasks, warnings = _tasks(request, place, amounts.tasks)
    rest = request.given.rest
    script = request.call.script if request.has("multi-prog") else None
    keep, extra = chosen_names(request)
    program = Program(
        wish=_wish(request, place, amounts, tasks),
        name=request.text("job-name") or os.path.basename(rest[0]),
        argvs=(rest,) if script is None else programs(script.text, rest, tasks),
        cwd=_folder(request),
        keep=keep,
        env=extra | _request_variables(request),
        output=_output(request),
        before=_beside(request, "task-prolog") or "",
        after=_beside(request, "task-epilog") or "",
        bind=None if lacks_binding(machines) else cpu_bind_of(request, lacks=False),
    )
    return program, warnings


def side_by_side(requests: Sequence[Request], whole: StepJob) -> tuple[StepJob, ...]:
    """Parts of a step in a job of one component: each begins where the one before ended."""
    found: list[StepJob] = []
    taken = 0
    for request in requests:
        nodes = min(
            _tasks(request, whole, request.number("ntasks"))[0],
            _nodes(request, whole) or len(whole.nodes),
        )
        if found and taken + nodes > len(whole.nodes):
            about = f"job size of {len(whole.nodes)}, already allocated {taken} nodes"
            problem = f"Allocation failure of {nodes} nodes: {about} to previous components."
            raise failed("srun", problem)
        found.append(replace(whole, beside=taken))
        taken += nodes
    return tuple(found)


def check_mpi(request: Request) -> None:
    """Tasks that want to find each other through srun would wait for ever."""
    kind = request.text("mpi")
    if kind in {None, "none", "openmpi", PMI}:
        return
    raise SlurmError(
        f"srun: error: Couldn't find the specified plugin name for mpi/{kind} looking at all files",
        f"srun: error: cannot find mpi plugin for mpi/{kind}",
        f"srun: error: MPI: Cannot create context for mpi/{kind}",
        "srun: error: MPI: Unable to load any plugin",
        f"srun: error: Invalid MPI type '{kind}', --mpi=list for acceptable types",
    )


def _tasks(request: Request, place: StepJob, tasks: int | None) -> tuple[int, str]:
    """As asked for, or one for each node; more nodes than tasks are not used."""
    per_node = request.number("ntasks-per-node")
    nodes = _nodes(request, place) or len(place.nodes)
    if tasks is None:
        return nodes * (per_node or 1), ""
    if place.owns:
        return tasks, ""
    if tasks < nodes:
        return tasks, too_many_nodes(tasks, nodes)
    if per_node is not None and tasks > nodes * per_node:
        about = f"the requested tasks {tasks} with the number of requested nodes {nodes}"
        text = f"can't honor --ntasks-per-node set to {per_node} which doesn't match {about}"
        return tasks, f"srun: Warning: {text}. Ignoring --ntasks-per-node.\n"
    return tasks, ""


def too_many_nodes(tasks: int, nodes: int) -> str:
    """Said where nodes would have nothing to run."""
    text = f"can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}"
    return f"srun: Warning: {text}\n"


def _nodes(request: Request, place: StepJob) -> int | None:
    """Of `2-4` as many as the job has."""
    least = node_count(request)
    _, _, most = (request.text("nodes") or "").partition("-")
    if least is None or not most.isdecimal():
        return least
    return max(least, min(int(most), len(place.nodes)))


def _wish(
    request: Request, place: StepJob, amounts: Amounts, tasks: int
) -> dict[str, int | bool | str | tuple[str, ...] | None]:
    nodes = _nodes(request, place)
    relative = request.number("relative", least=0) or 0
    if relative + (nodes or 1) > len(place.nodes):
        counts = f"({relative}+{nodes or 1}>{len(place.nodes)})"
        about = "--relative and SLURM_JOB_NUM_NODES option incompatible"
        if relative:
            raise failed("srun", f"{about} with count of allocated nodes {counts}")
    per_task, in_all = amounts.per_task, amounts.in_all
    is_bare = request.text("gres") in {"none", "NONE"}
    per_node = 0 if is_bare else amounts.per_node and amounts.per_node.count
    # A job of srun's own has just what its step asked for.
    gpus = {
        "gpus": None if place.owns or in_all is None else in_all.count,
        "gpus_per_node": None if place.owns and not is_bare else per_node,
        "gpus_per_task": per_task and per_task.count,
        "gpu_bind": _gpu_bind(request, per_task and per_task.count),
    }
    named: dict[str, int | bool | str | tuple[str, ...] | None] = {
        "tasks": tasks,
        "nodes": nodes,
        "tasks_per_node": amounts.tasks_per_node,
        "cpus_per_task": amounts.cpus_per_task,
        "memory_mib": _memory(request, tasks * amounts.cpus_per_task) if not place.owns else 0,
        "exact": _is_exact(request),
        "overlap": request.has("overlap"),
        "overcommit": request.has("overcommit"),
        "cyclic": (request.text("distribution") or "").lower().startswith("cyclic"),
        "on": () if place.owns else _hosts(request, "nodelist"),
        "off": () if place.owns else _hosts(request, "exclude"),
        "relative": relative + place.beside,
    }
    # A supervisor that is older than we are knows of none.
    return named | gpus | ({"component": place.component} if place.component else {})


def _gpu_bind(request: Request, per_task: int | None) -> str:
    """As it was asked for, or as it follows from how GPUs and tasks go together."""
    text, per_gpu = request.text("gpu-bind"), request.number("ntasks-per-gpu")
    if text is not None:
        return text.lower()
    if per_gpu is not None:
        return f"single:{per_gpu}"
    return f"per_task:{per_task}" if per_task else ""


def _is_exact(request: Request) -> bool:
    """Asking for CPUs by task implies it, since 22.05; the last word counts."""
    said = [name for name, _ in request.given.given if name in {"exact", "whole"}]
    if said and said[-1] == "whole":
        return False
    return any(request.has(name) for name in ("exact", "exclusive", "cpus-per-task"))


def _memory(request: Request, cpus: int) -> int:
    whole, each = request.memory("mem"), request.memory("mem-per-cpu")
    return whole if whole is not None else (each or 0) * cpus


def _hosts(request: Request, option: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(expanded(request.text(option) or "")))


def _names(job: Job) -> dict[str, str]:
    part = job.spec.array
    return {
        "j": str(job.id),
        "A": str(job.id if part is None else part.array),
        "a": "4294967294" if part is None else str(part.index),
        "x": job.spec.name,
        "u": job.spec.user,
    }


def _folder(request: Request) -> str:
    wanted = request.text("chdir")
    cwd = request.call.cwd
    return os.path.normpath(os.path.join(cwd, wanted)) if wanted else cwd


def _request_variables(request: Request) -> dict[str, str]:
    """What of the request tasks can read, only where it was asked for."""
    named: Mapping[str, str | None] = {
        "SLURM_CPUS_PER_TASK": request.text("cpus-per-task"),
        "SLURM_GPUS_PER_TASK": request.text("gpus-per-task"),
        "SLURM_NTASKS_PER_NODE": request.text("ntasks-per-node"),
    }
    return {name: text for name, text in named.items() if text is not None}


def _output(request: Request) -> StepOutput:
    return StepOutput(
        stdin=_mode(request, "input"),
        stdout=_mode(request, "output"),
        stderr=_mode(request, "error"),
        append=appends(request),
        label=request.has("label"),
        unbuffered=request.has("unbuffered"),
        pty=request.has("pty"),
    )


def _mode(request: Request, option: str) -> str | None:
    text = request.text(option)
    return None if text in {None, "all"} else text


def _conduct(request: Request) -> Conduct:
    immediate = request.text("immediate")
    return Conduct(
        immediate_s=(request.number("immediate", least=0) if immediate else 1)
        if request.has("immediate")
        else None,
        wait_s=request.number("wait", least=0) or 0,
        kill_on_bad_exit=request.has("kill-on-bad-exit")
        and request.text("kill-on-bad-exit") != "0",
        quit_on_interrupt=request.has("quit-on-interrupt"),
        shows_status=not request.has("disable-status"),
        quiet=request.has("quiet"),
        verbose=sum(name == "verbose" for name, _ in request.given.given),
        prolog=_beside(request, "prolog"),
        epilog=_beside(request, "epilog"),
    )


def _beside(request: Request, option: str) -> str | None:
    text = request.text(option)
    return None if text in {None, "none"} else text
