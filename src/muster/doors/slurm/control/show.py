"""`scontrol show`: which things are shown, and what is said when there are none."""

from collections.abc import Callable, Iterable

from muster.doors.slurm.call import Call, Door, Reply
from muster.doors.slurm.control import configuration, show_associations, show_lines
from muster.doors.slurm.control.show_jobs import Patterns
from muster.doors.slurm.control.show_reservations import reservation_lines
from muster.doors.slurm.control.show_steps import batch_lines, step_lines
from muster.doors.slurm.lists import node_rows
from muster.doors.slurm.lists.components import all_parts, steps_in
from muster.doors.slurm.lists.filters import (
    KEPT_MS,
    Filter,
    ended_views,
    job_name,
    live_views,
    rows_of,
)
from muster.doors.slurm.lists.jobs import by_number, collapsed
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.hostlist import BadHostlistError, compressed, expanded
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.states import State
from muster.model.placement import Allocation
from muster.model.value import Instant, replace

UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"

Show = Callable[[tuple[str, ...], Parsed, Call, Door], str]
Held = Allocation | None


def shown(words: tuple[str, ...], line: Parsed, call: Call, door: Door) -> Reply:
    """`show ENTITY [ID]`; `show job=12` is the same as `show job 12`."""
    entity, equals, value = words[0].partition("=")
    ids = (value, *words[1:]) if equals else words[1:]
    if len(ids) > 1:
        raise SlurmError("too many arguments for keyword:show")
    name = entity.lower()
    act = SHOWS.get(name)
    near = [each for each, least in LEAST.items() if each.startswith(name) and len(name) >= least]
    if act is None and near:
        act = SHOWS[near[0]]
    if act is None:
        raise SlurmError(f"invalid entity:{entity} for keyword:show ")
    return Reply(out=act(ids, line, call, door))


def node_names(held: Held) -> str:
    """The nodes that a job holds."""
    if held is None:
        return ""
    return compressed(sorted({placed.node for placed in held.placements}, key=by_number))


def pids(words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    """`listpids [JOB [NODE]]`: processes are the backend's, and no part of what a door may see."""
    messages = "No job steps exist on this node."
    if words:
        job, step = (*words[0].split("."), "")[:2]
        node = words[1] if words[1:] else "(null)"
        what = (
            f"Job step {job}.{step} does not exist" if step else f"There are no steps for job {job}"
        )
        messages = f"{what} on node {node}."
    return Reply(out="PID      JOBID    STEPID   LOCALID GLOBALID\n", err=f"{messages}\n", code=1)


def pid(words: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> Reply:
    """`pidinfo PID`."""
    del words
    raise SlurmError("Failed to locate job for requested pid")


def _jobs(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    listing = Listing(call, door)
    names = tuple(job_name(each) for each in ids)
    wish = Filter(names=tuple(name for name in names if name is not None), states=frozenset(State))
    if ids and not wish.names:
        raise SlurmError("scontrol_print_job error: Invalid job id specified")
    views = live_views(door, wish)
    views += ended_views(door, wish, Instant(max(0, door.now - KEPT_MS)))
    if not views:
        if ids:
            raise _no_job(wish, door)
        return "No jobs in the system\n"
    rows = rows_of(door, listing, views)
    files = door.cache.launches(door.queries, door.caller, [row.job for row in rows])
    for row in rows:
        row.launch_of = lambda job: files.get(job.id)
    if not any(name.indices for name in wish.names):
        rows = collapsed(rows)
    wanted = {name.component for name in wish.names} - {None}
    rows = [row for row in all_parts(rows) if not wanted or row.component in wanted]
    patterns = Patterns(details=line.has("details"), oneliner=line.has("oneliner"))
    return "".join(map(patterns.text, rows))


def _no_job(wish: Filter, door: Door) -> SlurmError:
    """Of an array that is known, a task may not be."""
    [name] = wish.names
    array = replace(wish, names=(replace(name, indices=None),))
    if name.indices is not None and live_views(door, array):
        return SlurmError(f"Job {name.text} not found", on_stdout=True)
    return SlurmError(UNKNOWN_JOB)


def _nodes(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    rows = node_rows.node_rows(Listing(call, door))
    wanted = [name for each in ids for name in expanded(each)]
    known: dict[str, node_rows.NodeRow] = {row.node.id: row for row in rows}
    for name in wanted:
        if name not in known:
            raise SlurmError(f"Node {name} not found", on_stdout=True)
    chosen = [known[name] for name in wanted if name in known] if wanted else rows
    lines = (show_lines.node_lines(row, details=line.has("details")) for row in chosen)
    return _blocks(lines, line, end="") or "No nodes in the system\n"


def _partitions(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    listing = Listing(call, door)
    groups = node_rows.grouped(listing, node_rows.node_rows(listing), lambda _: ())
    known = {group.pool.name for group in groups}
    for name in ids:
        if name not in known:
            raise SlurmError(f"Partition {name} not found", on_stdout=True)
    chosen = [group for group in groups if not ids or group.pool.name in ids]
    return _blocks(map(show_lines.partition_lines, chosen), line, end="")


def _steps(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    names = tuple(job_name(each) for each in ids)
    wish = Filter(
        names=tuple(name for name in names if name is not None), states=frozenset({State.RUNNING})
    )
    if ids and not wish.names:
        raise SlurmError("Invalid job id specified")
    rows = rows_of(door, Listing(call, door), live_views(door, wish))
    lines = [batch_lines(row) for row in rows]
    steps = door.queries.jobs.running_steps(door.caller)
    for row in all_parts(rows):
        own = [each for each in steps if each.job == row.job.id]
        lines += [step_lines(row, each) for each in steps_in(own, row.component)]
    wanted = wish.names[0].step if wish.names else None
    lines = [each for each in lines if each and _is_step(each, wanted)]
    if not lines:
        if ids:
            raise _no_step(wish, door)
        return "No job steps in the system\n"
    return _blocks(lines, line)


def _no_step(wish: Filter, door: Door) -> SlurmError:
    """The job is not known, or has nothing that runs."""
    [name] = wish.names
    everything = replace(wish, states=frozenset(State))
    since = Instant(max(0, door.now - KEPT_MS))
    if live_views(door, everything) or ended_views(door, everything, since):
        job = name.text.partition(".")[0]
        return SlurmError(f"Job step {job}.{name.step or ''} not found", on_stdout=True)
    return SlurmError("slurm_get_job_steps error: Invalid job id specified")


def _is_step(lines: list[str], wanted: str | None) -> bool:
    return wanted is None or lines[0].split()[0].endswith(f".{wanted}")


def _reservations(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    listing = Listing(call, door)
    now = door.now
    live = [each for each in listing.reservations if each.ends_at > now]
    chosen = [each for each in live if not ids or each.name in ids]
    if ids and not chosen:
        raise SlurmError(f"Reservation {ids[0]} not found", on_stdout=True)
    if not chosen:
        return "No reservations in the system\n"
    return _blocks((reservation_lines(each, listing) for each in chosen), line, end="")


def _hostnames(ids: tuple[str, ...], _line: Parsed, call: Call, _door: Door) -> str:
    text = ids[0] if ids else call.env.get("SLURM_NODELIST") or call.env.get("SLURM_JOB_NODELIST")
    if not text:
        # Slurm ends well here, and in what follows.
        raise SlurmError("scontrol: error: host list is empty", code=0)
    try:
        return "".join(f"{name}\n" for name in expanded(text))
    except BadHostlistError as bad:
        raise SlurmError(*bad.lines, code=0) from bad


def _hostlist(ids: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> str:
    if not ids:
        raise SlurmError("invalid encode argument")
    return compressed(expanded(ids[0])) + "\n"


def _sorted_hostlist(ids: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> str:
    if not ids:
        raise SlurmError("invalid encode argument")
    return compressed(sorted(set(expanded(ids[0])), key=by_number)) + "\n"


def _config(_ids: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> str:
    return configuration.as_text(call, door)


def _aliases(ids: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> str:
    """The names of nodes: each is its own alias."""
    names = sorted(door.queries.nodes.all(), key=by_number)
    return "" if ids else " ".join(names) + "\n"


def _topology(_ids: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> str:
    """Each place that nodes share as a switch, coarsest last."""
    listing = Listing(call, door)
    switches: dict[tuple[int, str], set[str]] = {}
    for node in listing.nodes.values():
        for depth in range(len(node.where)):
            name = "/".join(node.where[: depth + 1])
            switches.setdefault((len(node.where) - depth - 1, name), set()).add(node.id)
    if not switches:
        raise SlurmError("scontrol: error: No topology information available", code=0)
    return "".join(
        f"SwitchName={name} Level={level} LinkSpeed=1 "
        f"Nodes={compressed(sorted(nodes, key=by_number))}\n"
        for (level, name), nodes in sorted(switches.items())
    )


def _fixed(text: str) -> Show:
    """What there is always the same of."""
    return lambda _ids, _line, _call, _door: text


def _blocks(things: Iterable[list[str]], line: Parsed, *, end: str = " ") -> str:
    return "".join(
        show_lines.block(each, oneliner=line.has("oneliner"), end=end) for each in things
    )


SHOWS: dict[str, Show] = {
    "aliases": _aliases,
    "assoc_mgr": show_associations.associations,
    "bbstat": _fixed(""),
    "burstbuffer": _fixed(""),
    "config": _config,
    "daemons": _fixed("slurmctld slurmd\n"),
    "dwstat": _fixed(""),
    "federation": _fixed(""),
    "frontend": _fixed("No nodes in the system\n"),
    "hostlistsorted": _sorted_hostlist,
    "hostlist": _hostlist,
    "hostnames": _hostnames,
    "jobs": _jobs,
    "jobid": _jobs,
    "licenses": _fixed("No licenses configured in Slurm.\n"),
    "nodes": _nodes,
    "partitions": _partitions,
    "partitionname": _partitions,
    "reservations": _reservations,
    "reservationname": _reservations,
    "slurmd": _fixed("Slurmd daemon is part of Muster\n"),
    "steps": _steps,
    "topology": _topology,
}

LEAST = dict.fromkeys(("config", "daemons", "frontend", "jobs", "nodes", "topology"), 1) | {
    "aliases": 1,
    "assoc_mgr": 2,
    "bbstat": 2,
    "burstbuffer": 2,
    "dwstat": 2,
    "federation": 2,
    "hostlist": 5,
    "hostlistsorted": 9,
    "hostnames": 5,
    "jobid": 4,
    "licenses": 2,
    "partitions": 2,
    "partitionname": 10,
    "reservations": 1,
    "reservationname": 12,
    "slurmd": 2,
    "steps": 2,
}
"""How many letters of an entity are enough."""
