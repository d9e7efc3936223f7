"""`scontrol show`: which things are shown, and what is said when there are none."""

from collections.abc import Callable, Iterable

from muster.doors.slurm import machines, showing
from muster.doors.slurm.call import VERSION, Call, Door, Reply
from muster.doors.slurm.choosing import (
    KEPT_MS,
    Filter,
    ended_views,
    job_name,
    live_views,
    rows_of,
)
from muster.doors.slurm.hostlist import BadHostlistError, compressed, expanded
from muster.doors.slurm.jobs import by_number, collapsed
from muster.doors.slurm.options import Parsed
from muster.doors.slurm.scene import Scene
from muster.doors.slurm.states import State
from muster.doors.slurm.times import instant_text
from muster.doors.slurm.trouble import SlurmError
from muster.model.value import Instant

UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"

Show = Callable[[tuple[str, ...], Parsed, Call, Door], str]


def shown(words: tuple[str, ...], line: Parsed, call: Call, door: Door) -> Reply:
    """`show ENTITY [ID...]`; `show job=12` is the same as `show job 12`."""
    if not words:
        raise SlurmError("too few arguments for keyword:show")
    entity, equals, value = words[0].partition("=")
    ids = (value, *words[1:]) if equals else words[1:]
    name = entity.lower()
    act = SHOWS.get(name) or SHOWS.get(name.removesuffix("s"))
    near = [each for each in SHOWS if each.startswith(name) and len(name) > 2]
    if act is None and near:
        act = SHOWS[near[0]]
    if act is None:
        raise SlurmError(f"invalid entity:{entity} for keyword:show ")
    return Reply(out=act(ids, line, call, door))


def write_script(words: tuple[str, ...], _call: Call, door: Door) -> Reply:
    """`write batch_script ID -`: the script as it was handed in."""
    name = job_name(words[1]) if len(words) > 1 else None
    if not words or words[0] != "batch_script" or name is None:
        raise SlurmError("invalid write argument: " + " ".join(words[:1]))
    if words[2:] != ("-",):
        raise SlurmError("scontrol: error: only `-`, for stdout, can be written to here")
    launch = door.looking.job(door.caller, name.job).launch
    if launch is None or launch.script is None:
        raise SlurmError("job script retrieval failed: Invalid job id specified")
    return Reply(out=launch.script)


def _jobs(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    scene = Scene(call, door)
    names = tuple(job_name(each) for each in ids[:1])
    wish = Filter(names=tuple(name for name in names if name is not None), states=frozenset(State))
    if ids and not wish.names:
        raise SlurmError(UNKNOWN_JOB)
    views = live_views(door, wish)
    views += ended_views(door, wish, Instant(max(0, door.now - KEPT_MS)))
    if not views:
        if ids:
            raise SlurmError(UNKNOWN_JOB)
        return "No jobs in the system\n"
    rows = rows_of(door, scene, views)
    if not any(name.indices for name in wish.names):
        rows = collapsed(rows)
    return _blocks((showing.job_lines(row, details=line.has("details")) for row in rows), line)


def _nodes(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    rows = machines.node_rows(Scene(call, door))
    wanted = [name for each in ids for name in expanded(each)]
    known: dict[str, machines.NodeRow] = {row.node.id: row for row in rows}
    for name in wanted:
        if name not in known:
            raise SlurmError(f"Node {name} not found")
    chosen = [known[name] for name in wanted if name in known] if wanted else rows
    lines = (showing.node_lines(row, details=line.has("details")) for row in chosen)
    return _blocks(lines, line) or "No nodes in the system\n"


def _partitions(ids: tuple[str, ...], line: Parsed, call: Call, door: Door) -> str:
    scene = Scene(call, door)
    groups = machines.grouped(scene, machines.node_rows(scene), lambda _: ())
    known = {group.pool.name for group in groups}
    for name in ids:
        if name not in known:
            raise SlurmError(f"Partition {name} not found")
    chosen = [group for group in groups if not ids or group.pool.name in ids]
    return _blocks(map(showing.partition_lines, chosen), line)


def _hostnames(ids: tuple[str, ...], _line: Parsed, call: Call, _door: Door) -> str:
    text = ids[0] if ids else call.env.get("SLURM_JOB_NODELIST") or call.env.get("SLURM_NODELIST")
    if not text:
        raise SlurmError("SLURM_JOB_NODELIST environment variable not set")
    try:
        return "".join(f"{name}\n" for name in expanded(text))
    except BadHostlistError as bad:
        # Slurm ends well here.
        raise SlurmError(*bad.lines, code=0) from bad


def _hostlist(ids: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> str:
    if not ids:
        raise SlurmError("hostlist is missing")
    return compressed(expanded(ids[0])) + "\n"


def _sorted_hostlist(ids: tuple[str, ...], _line: Parsed, _call: Call, _door: Door) -> str:
    if not ids:
        raise SlurmError("hostlist is missing")
    return compressed(sorted(expanded(ids[0]), key=by_number)) + "\n"


def _reservations(_ids: tuple[str, ...], _line: Parsed, _call: Call, door: Door) -> str:
    if not door.looking.site().reservations:
        return "No reservations in the system\n"
    return "".join(f"ReservationName={each.name}\n" for each in door.looking.site().reservations)


def _config(_ids: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> str:
    """What clients read of it: the rest of slurm.conf has no counterpart."""
    scene = Scene(call, door)
    found = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "ClusterName": scene.cluster,
        "GresTypes": "gpu",
        "JobRequeue": "1",
        "KillWait": "30 sec",
        "MaxArraySize": "100001",
        "MaxJobCount": "1000000",
        "MinJobAge": f"{KEPT_MS // 1_000} sec",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CORE_MEMORY",
        "SLURM_VERSION": VERSION.rpartition(" ")[2],
    }
    head = f"Configuration data as of {instant_text(door.now, zone=call.zone)}\n"
    body = "".join(f"{name:<23} = {value}\n" for name, value in found.items())
    return f"{head}{body}\nSlurmctld(primary) at {call.host} is UP\n"


def _blocks(things: Iterable[list[str]], line: Parsed) -> str:
    return "".join(showing.block(each, oneliner=line.has("oneliner")) for each in things)


SHOWS: dict[str, Show] = {
    "job": _jobs,
    "node": _nodes,
    "partition": _partitions,
    "hostname": _hostnames,
    "hostnames": _hostnames,
    "hostlist": _hostlist,
    "hostlistsorted": _sorted_hostlist,
    "reservation": _reservations,
    "config": _config,
}
