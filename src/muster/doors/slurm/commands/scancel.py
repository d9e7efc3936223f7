"""`scancel`: end jobs, or send them a signal."""

from muster.doors.slurm import jobs
from muster.doors.slurm.call import Call, Door, Reply, version, warning
from muster.doors.slurm.changing import NOT_WHOLE
from muster.doors.slurm.choosing import (
    Filter,
    JobName,
    job_name,
    live_views,
    split_ids,
    states_of,
    users_of,
)
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.options import Manner, Parsed, parsed, table
from muster.doors.slurm.scene import Scene
from muster.doors.slurm.states import State
from muster.doors.slurm.trouble import SlurmError, failed
from muster.doors.units import BadTextError, signal_number
from muster.model.value import JobId

NAME = "scancel"
OPTIONS = table("""
    A:account= b:batch cluster= M:clusters= ctld f:full help H:hurry i:interactive jobname= me
    n:name= w:nodelist= p:partition= q:qos= Q:quiet R:reservation= sibling= s:signal= t:state= usage
    u:user= v:verbose V:version wckey=
""")
FILTERS = (
    "account",
    "reservation",
    "jobname",
    "me",
    "name",
    "nodelist",
    "partition",
    "qos",
    "state",
    "user",
    "wckey",
)
IGNORED = "batch cluster clusters ctld full hurry sibling".split()
KILL = 9


def run(call: Call, door: Door) -> Reply:
    """Cancel what is named and what the filters leave."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[OPTIONS] [job_id[_array_id][.step_id]]")
    if line.has("interactive"):
        raise failed(NAME, "--interactive is not supported by Muster")
    if not line.rest and not any(line.has(each) for each in FILTERS):
        raise failed(NAME, "No job identification provided")
    names = _names(line)
    if parts := [name for name in names if name.component is not None]:
        why = f"Kill job error on job id {parts[0].text}: {NOT_WHOLE}"
        raise failed(NAME, why)
    signal = _signal(line)
    steps = tuple(name for name in names if (name.step or "").isdigit())
    whole = tuple(name for name in names if name not in steps)
    refused = "".join(_ended_step(door, line, name, signal or KILL) for name in steps)
    if steps and not whole:
        return Reply(err=refused)
    rows = _chosen(line, call, door, whole)
    told = refused + _told(line, rows, signal)
    ids = tuple(row.job.id for row in rows)
    if not ids:
        return Reply(err=told)
    return Reply(err=told + _acted(door, ids, signal, line))


def _ended_step(door: Door, line: Parsed, name: JobName, signal: int) -> str:
    """A step that runs is sent the signal; what is said if none does, or may not be."""
    step = f"{name.job}.{name.step}"
    running = {(each.job, str(each.number)) for each in door.looking.running_steps(door.caller)}
    why = "Invalid job id specified"
    if (name.job, name.step) in running:
        number = int(name.step or 0)
        outcome = door.service.signal(door.caller, (name.job,), signal, step=number).result()
        if not outcome.failed:
            said = f"scancel: Terminating step {step}\n"
            return said if line.has("verbose") else ""
        why = "Access/permission denied"
    return (
        ""
        if line.has("quiet")
        else f"scancel: error: Kill job error on job step id {step}: {why}\n"
    )


def _acted(door: Door, ids: tuple[JobId, ...], signal: int | None, line: Parsed) -> str:
    """The signal KILL ends a job, whatever its state; others only reach what runs."""
    if signal is None or signal == KILL:
        outcome = door.service.cancel(door.caller, ids).result()
    else:
        outcome = door.service.signal(door.caller, ids, signal).result()
    if line.has("quiet"):
        return ""
    return "".join(
        f"scancel: error: Kill job error on job id {job}: Access/permission denied\n"
        for job, why in outcome.failed.items()
        if "belongs to" in why
    )


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for word in line.rest for each in split_ids(word)):
        name = job_name(text)
        if name is None:
            raise failed(NAME, f"Invalid job id {text}")
        found.append(name)
    return tuple(found)


def _signal(line: Parsed) -> int | None:
    text = line.value("signal")
    if text is None:
        return None
    try:
        return signal_number(text)
    except BadTextError as bad:
        raise SlurmError(f"Unknown job signal: {text}") from bad


def _chosen(line: Parsed, call: Call, door: Door, names: tuple[JobName, ...]) -> list[JobRow]:
    users = users_of(line.words("user"))
    if line.has("me"):
        users = frozenset({door.caller.user})
    states = states_of(line.words("state"))
    if not isinstance(states, frozenset):
        raise failed(NAME, f"Invalid job state specified: {states}")
    wish = Filter(
        names=names,
        users=users,
        accounts=frozenset(line.words("account")),
        qos=frozenset(line.words("qos")),
        job_names=frozenset(line.words("name", "jobname")),
        reservations=frozenset(line.words("reservation")),
        states=states or None,
    )
    scene = Scene(call, door)
    rows = [JobRow(view, scene) for view in live_views(door, wish)]
    return [row for row in rows if _is_there(row, line)]


def _is_there(row: JobRow, line: Parsed) -> bool:
    pools, hosts, wckey = line.words("partition"), line.value("nodelist"), line.value("wckey")
    return (
        (not pools or jobs.partition(row) in pools)
        and (hosts is None or not set(expanded(hosts)).isdisjoint(jobs.nodes(row)))
        and (wckey is None or row.label("wckey") == wckey)
    )


def _told(line: Parsed, rows: list[JobRow], signal: int | None) -> str:
    warned = "".join(warning(NAME, each) for each in IGNORED if line.has(each))
    if not line.has("verbose"):
        return warned
    verb = "Terminating" if signal is None else "Signalling"
    live = [row for row in rows if row.state is not State.COMPLETING]
    return warned + "".join(f"scancel: {verb} job {jobs.id_text(row)}\n" for row in live)
