"""`sacct`: what became of jobs."""

import gc
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from muster.doors.slurm.accounting.records import (
    AcctJob,
    AcctRow,
    RecordKind,
    acct_jobs,
    last_of_each,
    rows_of_job,
)
from muster.doors.slurm.accounting.sacct_fields import FIELDS, LISTED
from muster.doors.slurm.accounting.sacct_json import document
from muster.doors.slurm.accounting.sacct_query import RecordFilter, asked
from muster.doors.slurm.accounting.values import id_text
from muster.doors.slurm.call import Call, Door, Reply, lines, unsupported, version
from muster.doors.slurm.help import columns_of, help_reply
from muster.doors.slurm.lists.filters import Filter, JobName, ended_views, live_views
from muster.doors.slurm.lists.jobs import collapsed
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.usage import UNITS, Scale
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.formats import Form, cut_table, parsable, picked_form
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.doors.slurm.words.states import State
from muster.model.value import replace

NAME = "sacct"
MANNER = Manner(command=NAME, points_to_help=False)
OPTIONS = table("""
    A:accounts= L:allclusters X:allocations a:allusers x:associations= B:batch-script b:brief
    cluster= M:clusters= c:completion C:constraints= delimiter= D:duplicates E:endtime= env-vars
    federation fields= f:file= F:flags= o:format= g:gid= group= h:help e:helpformat j:jobs= json
    local l:long name= i:nnodes= I:ncpus= N:nodelist= noconvert n:noheader p:parsable P:parsable2
    r:partition= q:qos= R:reason= S:starttime= s:state= K:timelimit-max= k:timelimit-min= T:truncate
    u:uid= units= usage U:use-local-uid user= v:verbose V:version W:wckeys= whole-hetjob? yaml
""")
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
NO_COMPLETION = "Slurm job completion is disabled"
NAMED_ONLY = (
    "sacct: fatal: When requesting job {what} you must also request specific jobs "
    "with the '-j' option."
)
_RULE = "-" * 80


def run(call: Call, door: Door) -> Reply:
    """List jobs, live and over."""
    line = parsed(OPTIONS, call.argv, MANNER)
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out="Usage: sacct [options]\n\tUse --help for help\n")
    if line.has("help"):
        return help_reply(NAME, OPTIONS)
    if line.has("helpformat"):
        return Reply(out=columns_of(LISTED))
    _check(line)
    with _uncollected():
        return _answered(line, call, door)


@contextmanager
def _uncollected() -> Generator[None]:
    """A long history is all new objects and no garbage: none is searched for meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _answered(line: Parsed, call: Call, door: Door) -> Reply:
    form = _form(line, call)
    wish = asked(line, call, door)
    listing = Listing(call, door)
    listing.scale = Scale(
        unit=(line.value("units") or "")[:1].upper(), convert=not line.has("noconvert")
    )
    found = _chosen(line, door, listing, wish)
    said = _said(line, call, wish)
    if line.has("json") or line.has("yaml"):
        # What is JSON is YAML too.
        return Reply(out=document(found), err=said)
    if line.has("batch-script") or line.has("env-vars"):
        return Reply(out=_texts(found, env=line.has("env-vars")), err=said)
    rows = _rows(line, wish, found)
    return Reply(out=lines(_table(line, form, rows)), err=said)


def _check(line: Parsed) -> None:
    """What cannot be, before anything is looked up."""
    if line.rest:
        raise SlurmError("sacct: error: Unknown arguments:", f"sacct: error:  {line.rest[0]}")
    if line.has("associations"):
        raise unsupported(NAME, "associations")
    if line.has("completion") or line.has("file"):
        raise SlurmError(NO_COMPLETION)
    _check_texts(line)
    unit = line.value("units")
    if unit is not None and unit[:1].upper() not in set(UNITS):
        raise SlurmError(
            f"sacct: error: Invalid unit type '{unit}'. Possible options are '{UNITS}'",
            "sacct: fatal: Invalid unit type",
        )
    if line.value("whole-hetjob") not in {None, "yes", "no"}:
        wrong = f'Invalid --whole-hetjob value "{line.value("whole-hetjob")}"'
        raise SlurmError(f"sacct: error: {wrong}. Valid values: [yes|no].")


def _check_texts(line: Parsed) -> None:
    """Scripts and environments are large: they are shown of named jobs, and one kind at a time."""
    if line.has("batch-script") and line.has("env-vars"):
        both = "Options --batch-script and --env-vars are mutually exclusive"
        raise SlurmError(f"sacct: fatal: {both}")
    for option, what in (("batch-script", "scripts"), ("env-vars", "environment")):
        if line.has(option) and not line.has("jobs"):
            raise SlurmError(NAMED_ONLY.format(what=what))


def _said(line: Parsed, call: Call, wish: RecordFilter) -> str:
    if not line.has("verbose"):
        return ""
    window = wish.window
    since = times.heading_text(window.since, call.zone) if window.since else "Epoch 0"
    until = times.heading_text(window.until, call.zone)
    what = ",".join(sorted(state.name for state in window.states)) or "Eligible"
    return f"sacct: Jobs {what} in the time window from {since} to {until}\n"


def _form(line: Parsed, call: Call) -> Form:
    """Formats add up, in the order in which they are given, and the usual ones after them."""
    given = list(line.values("format", "fields"))
    given += [text for name, text in (("brief", BRIEF), ("long", LONG)) if line.has(name)]
    text = ",".join(given) if given else call.env.get("SACCT_FORMAT", DEFAULT)
    words = [word for each in text.split(",") if (word := each.strip())]
    if any(word.lower() == "all" for word in words):
        words = list(LISTED)
    form, unknown = picked_form(words, FIELDS)
    if unknown:
        raise SlurmError(f'sacct: error: Invalid field requested: "{unknown[0]}"')
    return form


def _chosen(line: Parsed, door: Door, listing: Listing, wish: RecordFilter) -> list[AcctJob]:
    """The records that are asked for, by job, attempt and component."""
    wish = replace(wish, names=_of_whole_jobs(wish.names, line))
    if not _is_here(line, listing):
        return []
    broad = Filter(
        names=wish.names,
        users=wish.users,
        accounts=wish.accounts,
        qos=wish.qos,
        job_names=wish.job_names,
        states=frozenset(State),
    )
    views = [*live_views(door, broad), *ended_views(door, broad, wish.window.since)]
    views.sort(key=lambda view: view.job.id)
    found = [record for record in acct_jobs(door, listing, views) if wish.has(record)]
    if not line.has("duplicates"):
        found = last_of_each(found)
    if line.has("truncate"):
        for record in found:
            record.cut = (wish.window.since, wish.window.until)
    shown = {id(row) for row in collapsed([record.row for record in found])}
    return [record for record in found if id(record.row) in shown]


def _of_whole_jobs(names: tuple[JobName, ...], line: Parsed) -> tuple[JobName, ...]:
    """--whole-hetjob: all components of a job that one of them names, or the named one alone."""
    if not line.has("whole-hetjob"):
        return names
    if line.value("whole-hetjob") == "no":
        return tuple(replace(name, component=name.component or 0) for name in names)
    return tuple(replace(name, component=None) for name in names)


def _is_here(line: Parsed, listing: Listing) -> bool:
    """Is our cluster among those that are named?"""
    named = line.words("clusters", "cluster")
    return not named or "all" in named or listing.cluster in named


def _rows(line: Parsed, wish: RecordFilter, found: Iterable[AcctJob]) -> list[AcctRow]:
    if line.has("allocations"):
        return [AcctRow(record, RecordKind.JOB) for record in found]
    rows = [row for record in found for row in rows_of_job(record)]
    if any(name.step is not None for name in wish.names):
        return [row for row in rows if wish.shows(row)]
    return rows


def _table(line: Parsed, form: Form, rows: Sequence[AcctRow]) -> list[str]:
    header = not line.has("noheader")
    if line.has("parsable") or line.has("parsable2"):
        given = line.value("delimiter")
        between = "|" if given is None else given
        last = next(name for name, _ in reversed(line.given) if name.startswith("parsable"))
        ends = (between, "" if last == "parsable2" else between)
        return list(parsable(form, FIELDS, rows, header=header, ends=ends))
    return list(cut_table(form, FIELDS, rows, header=header))


def _texts(found: Iterable[AcctJob], *, env: bool) -> str:
    """Scripts or environments, each below its job; for those who may see them."""
    messages: list[str] = []
    for record in found:
        launch = record.row.launch
        name = id_text(AcctRow(record, RecordKind.JOB))
        title = f"Environment used for {name} (must be batch to display)"
        text = "".join(f"{key}={value}\n" for key, value in launch.env.items())
        if not env:
            title, text = f"Batch Script for {name}", launch.script or ""
        messages.append(f"{title}\n{_RULE}\n{text or 'NONE'}\n")
    return "".join(messages)
