"""`sacct`: what became of jobs."""

from datetime import datetime

from muster.controller.asked import JobView
from muster.doors.slurm import times
from muster.doors.slurm.call import Call, Door, Reply, lines, version, warning
from muster.doors.slurm.choosing import (
    Filter,
    JobName,
    ended_views,
    job_name,
    live_views,
    rows_of,
    split_ids,
    states_of,
    users_of,
)
from muster.doors.slurm.formats import cut_table, parsable, picked_form
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.job_json import jobs_json
from muster.doors.slurm.jobs import JobRow, collapsed, nodes, partition, started_at
from muster.doors.slurm.options import Manner, Parsed, parsed, table
from muster.doors.slurm.sacct_fields import FIELDS, LISTED, AcctRow
from muster.doors.slurm.scene import Scene
from muster.doors.slurm.states import State
from muster.doors.slurm.trouble import SlurmError, failed
from muster.model.value import Instant

NAME = "sacct"
MANNER = Manner(command=NAME, points_to_help=False)
OPTIONS = table("""
    A:accounts= L:allclusters X:allocations a:allusers x:associations= B:batch-script b:brief
    cluster= M:clusters= c:completion C:constraints= delimiter= D:duplicates E:endtime= env-vars
    federation fields= f:file= F:flags= o:format= g:gid= h:help e:helpformat j:jobs= json local
    l:long name= i:nnodes= I:ncpus= N:nodelist= noconvert n:noheader p:parsable P:parsable2
    r:partition= q:qos= R:reason= S:starttime= s:state= K:timelimit-max= k:timelimit-min= T:truncate
    u:uid= units= usage U:use-local-uid user= v:verbose V:version W:wckeys= whole-hetjob? yaml
""")
IGNORED = (
    "associations constraints duplicates env-vars federation file flags gid ncpus nnodes reason "
    "timelimit-max timelimit-min"
).split()

DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)


def run(call: Call, door: Door) -> Reply:
    """List jobs, live and over."""
    line = parsed(OPTIONS, call.argv, MANNER)
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS)
    if line.has("helpformat"):
        return Reply(out=_field_names())
    scene = Scene(call, door)
    scene.convert = not line.has("noconvert")
    rows = _chosen(line, call, door, scene)
    warned = "".join(warning(NAME, each) for each in IGNORED if line.has(each))
    if line.has("json"):
        return Reply(out=jobs_json(rows), err=warned)
    if line.has("yaml"):
        raise failed(NAME, "--yaml is not supported by Muster")
    return Reply(out=lines(_table(line, call, rows)), err=warned)


def _table(line: Parsed, call: Call, rows: list[JobRow]) -> list[str]:
    form, unknown = picked_form(_format(line, call).split(","), FIELDS)
    if unknown:
        raise SlurmError(f'sacct: fatal: Invalid field requested: "{unknown[0]}"')
    shown = [AcctRow(row) for row in rows]
    if not line.has("allocations"):
        shown = [each for row in rows for each in _with_steps(row)]
    header = not line.has("noheader")
    if line.has("parsable") or line.has("parsable2"):
        between = line.value("delimiter") or "|"
        ends = (between, "" if line.has("parsable2") else between)
        return list(parsable(form, FIELDS, shown, header=header, ends=ends))
    return list(cut_table(form, FIELDS, shown, header=header))


def _with_steps(row: JobRow) -> list[AcctRow]:
    """A job that began has the step of its script."""
    job = AcctRow(row)
    return [job] if started_at(row) is None else [job, AcctRow(row, is_step=True)]


def _format(line: Parsed, call: Call) -> str:
    given = line.values("format", "fields")
    if given:
        return ",".join(given)
    if line.has("brief"):
        return BRIEF
    if line.has("long"):
        return LONG
    return call.env.get("SACCT_FORMAT", DEFAULT)


def _chosen(line: Parsed, call: Call, door: Door, scene: Scene) -> list[JobRow]:
    wish = _filter(line, door)
    since = _since(line, call, door, has_names=bool(wish.names))
    until = _instant(line, "endtime", call, door) or door.now
    views = [view for view in live_views(door, wish) if view.job.submitted_at <= until]
    views += [view for view in ended_views(door, wish, since) if _began_by(view, until)]
    views.sort(key=lambda view: view.job.id)
    rows = [row for row in rows_of(door, scene, views) if _is_there(row, line)]
    return collapsed(rows)


def _began_by(view: JobView, until: Instant) -> bool:
    return (view.started_at or view.job.submitted_at) <= until


def _is_there(row: JobRow, line: Parsed) -> bool:
    pools, hosts, wckeys = line.words("partition"), line.value("nodelist"), line.words("wckeys")
    return (
        (not pools or partition(row) in pools)
        and (hosts is None or not set(expanded(hosts)).isdisjoint(nodes(row)))
        and (not wckeys or row.label("wckey") in wckeys)
    )


def _filter(line: Parsed, door: Door) -> Filter:
    names = _names(line)
    users = users_of(line.words("user", "uid"))
    sees_all = line.has("allusers") or door.caller.user == "root" or bool(names)
    if not users and not sees_all:
        users = frozenset({door.caller.user})
    states = states_of(line.words("state"))
    if not isinstance(states, frozenset):
        raise SlurmError(f"sacct: error: Invalid state: {states}")
    return Filter(
        names=names,
        users=users,
        accounts=frozenset(line.words("accounts")),
        qos=frozenset(line.words("qos")),
        job_names=frozenset(line.words("name")),
        states=states or frozenset(State),
    )


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for value in line.values("jobs") for each in split_ids(value)):
        name = job_name(text)
        if name is None:
            raise SlurmError(f"sacct: fatal: Bad job/step specified: {text}")
        found.append(name)
    return tuple(found)


def _since(line: Parsed, call: Call, door: Door, *, has_names: bool) -> Instant:
    """Today's midnight, unless a time or jobs are named."""
    given = _instant(line, "starttime", call, door)
    if given is not None:
        return given
    if has_names:
        return Instant(0)
    local = datetime.fromtimestamp(door.now / 1_000, call.zone).astimezone(call.zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return Instant(int(midnight.timestamp()) * 1_000)


def _instant(line: Parsed, option: str, call: Call, door: Door) -> Instant | None:
    text = line.value(option)
    if text is None:
        return None
    try:
        return times.instant(_plain(text), door.now, call.zone)
    except times.BadTimeError as bad:
        raise SlurmError(f"Invalid time specification (pos={bad.place}): {text}") from bad


def _plain(text: str) -> str:
    """`1970-01-01-00:00:01`: a dash may stand between day and time."""
    day, dash, clock = text.rpartition("-")
    return f"{day}T{clock}" if dash and ":" in clock and day.count("-") == 2 else text


def _field_names() -> str:
    """Four in a line, in columns."""
    names = [f"{name:<19}" for name in LISTED]
    rows = [" ".join(names[at : at + 4]) for at in range(0, len(names), 4)]
    return "".join(f"{row}\n" for row in rows)
