"""Labels: what a request says that our own words have no place for, kept for lists to show."""

import os.path

from muster.doors.slurm.submit import directives
from muster.doors.slurm.submit.fleet import Machines
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.submit.shape import Amounts, TaskLayout, amounts_of, node_bounds
from muster.doors.slurm.words.gres import GpuRequest

LABEL = "slurm/"
"""Before the names of labels that keep what our own words have no place for."""

OF_COMPONENT = (
    "cpus-per-task",
    "features",
    "job-name",
    "nodes",
    "ntasks",
    "ntasks-per-node",
    "tres-per-node",
)
"""Labels that each component of a heterogeneous job has of its own, with its number behind."""

LONGEST_NAME = 1_000


def labels_of(
    requests: tuple[Request, ...], shapes: list[TaskLayout], machines: Machines
) -> dict[str, str]:
    """What lists show later: of the job, and of each component of a heterogeneous one."""
    whole = TaskLayout(
        groups=(),
        nodes=sum(each.nodes for each in shapes),
        tasks=sum(each.tasks for each in shapes),
    )
    found = _labels(requests[0], amounts_of(requests[0], machines), whole)
    for place, request in enumerate(requests if len(requests) > 1 else ()):
        own = _labels(request, amounts_of(request, machines), shapes[place])
        if place and request.has("job-name"):
            own[LABEL + "job-name"] = job_name(request)
        for name in OF_COMPONENT:
            if LABEL + name in own:
                found[f"{LABEL}{name}-{place}"] = own[LABEL + name]
    return found


def job_name(request: Request) -> str:
    """As asked for, or as Slurm calls such a job."""
    name = request.text("job-name") or _usual_name(request)
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise request.bad("job-name")
    return name


def _usual_name(request: Request) -> str:
    if request.has("wrap"):
        return "wrap"
    if request.command == "salloc":
        return "no-shell" if request.has("no-shell") else "interactive"
    return os.path.basename(request.given.rest[0]) if request.given.rest else "sbatch"


def _labels(request: Request, amounts: Amounts, shape: TaskLayout) -> dict[str, str]:
    """What lists show later, only where it was asked for."""
    wish = amounts.per_node
    named = {
        "comment": request.text("comment"),
        "wckey": request.text("wckey"),
        "features": request.text("constraint"),
        "tres-per-node": wish and _gres_text(wish),
        "tres-per-task": amounts.per_task and _gres_text(amounts.per_task),
        "tres-per-job": amounts.in_all and _gres_text(amounts.in_all),
        "ntasks": str(shape.tasks) if shape.tasks > 1 else None,
        "nodes": str(shape.nodes) if shape.nodes > 1 else None,
        "max-nodes": _most_nodes(request),
        "mem-per-cpu": _text(amounts.memory_per_cpu),
        "mem-per-gpu": _text(amounts.memory_per_gpu),
        "cpus-per-task": str(amounts.cpus_per_task) if amounts.cpus_per_task > 1 else None,
        "ntasks-per-node": str(amounts.tasks_per_node or "") or None,
        "by": None if request.command == "sbatch" else request.command,
    }
    return {LABEL + name: value for name, value in named.items() if value is not None}


def _most_nodes(request: Request) -> str | None:
    bounds = node_bounds(request)
    return None if bounds is None else str(bounds[1])


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _gres_text(wish: GpuRequest) -> str:
    return wish.text or f"gres:gpu:{wish.count}"


def submit_line(request: Request) -> str:
    """The command as it was typed. It may hold secrets: it belongs to the launch."""
    return directives.joined((request.command, *request.call.argv))


def script_line(request: Request) -> str | None:
    """The script with its arguments, as Slurm shows it; of others than sbatch the program."""
    rest = request.given.rest
    if not rest or request.has("wrap"):
        return None
    if request.command != "sbatch":
        return directives.joined(rest[:1])
    script = os.path.normpath(os.path.join(request.call.cwd, rest[0]))
    return directives.joined((script, *rest[1:]))
