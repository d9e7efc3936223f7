"""`squeue`: the jobs that wait and run."""

from muster.doors.slurm import clusters
from muster.doors.slurm.call import Again, Call, Door, Reply, lines, version
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists import jobs, squeue_sort
from muster.doors.slurm.lists.components import all_parts
from muster.doors.slurm.lists.filters import (
    KEPT_MS,
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
from muster.doors.slurm.lists.job_json import jobs_json
from muster.doors.slurm.lists.jobs import JobRow, collapsed
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.squeue_fields import LETTERS, NAMES
from muster.doors.slurm.lists.squeue_lines import lines_of
from muster.doors.slurm.lists.squeue_steps import listed_steps
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.formats import bounded, heading, known, long_form, short_form, writer
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.doors.slurm.words.states import LIVE, State
from muster.doors.slurm.words.users import is_user
from muster.model.value import Instant

NAME = "squeue"
MANNER = Manner(command=NAME)
OPTIONS = table("""
    O:Format= A:accounts= a:all r:array array-unique M:cluster= clusters= federation o:format= help
    hide i:iterate= j:jobs? json L:licenses= local l:long me n:name= noconvert node= nodes=
    w:nodelist= h:noheader only-job-state p:partitions= P:priority q:qos= R:reservation= sibling
    S:sort= start s:steps? t:states= usage u:user= U:users= v:verbose V:version yaml
""")
USAGE = """\
Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partitions] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
\t      [-ahjlrsv]
"""

DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"


def run(call: Call, door: Door) -> Reply:
    """List jobs."""
    line = parsed(OPTIONS, call.argv, MANNER)
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out=USAGE)
    if line.has("help"):
        return help_reply(NAME, OPTIONS)
    line, strange = _with_words(line)
    if strange is not None:
        return Reply(out=USAGE, err=f"squeue: error: Unrecognized option: {strange}\n", code=1)
    if line.has("yaml"):
        raise failed(NAME, "--yaml is not supported by Muster")
    every_s = _iterated(line)
    reply = _listed(line, call, door)
    if every_s is None:
        return reply
    then = Again(memo=call.memo, after_ms=every_s * 1_000)
    return Reply(out=f"{reply.out}\n", err=reply.err, then=then)


def _with_words(line: Parsed) -> tuple[Parsed, str | None]:
    """`-j 12`: the value of an optional argument may stand apart. And a word that is none."""
    if not line.rest:
        return line, None
    last = next((name for name, _ in reversed(line.given) if name in {"jobs", "steps"}), None)
    if last is None:
        return line, line.rest[0]
    return Parsed(given=(*line.given, *((last, word) for word in line.rest))), None


def _iterated(line: Parsed) -> int | None:
    text = line.value("iterate")
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise SlurmError(f"squeue: error: --iterate={text}", "")
    return int(text)


def _listed(line: Parsed, call: Call, door: Door) -> Reply:
    listing = Listing(call, door)
    listing.convert = not line.has("noconvert")
    named = clusters.named(NAME, line, listing.clusters)
    if line.has("steps") and not line.has("json"):
        return listed_steps(line, call, door, listing)
    usual = squeue_sort.BY_START if line.has("start") else squeue_sort.USUAL
    order = line.value("sort") or call.env.get("SQUEUE_SORT") or usual
    rows = squeue_sort.ordered(_chosen(line, call, door, listing), order)
    warned = _strangers(line, call, rows)
    if line.has("licenses"):
        # No job here has any.
        rows = []
    if line.has("json"):
        return Reply(out=jobs_json(rows), err=warned)
    with_date = line.has("long") or line.has("iterate")
    above = clusters.heading(named, header=not line.has("noheader"))
    if with_date and not line.has("noheader"):
        above.append(times.heading_text(listing.now, call.zone))
    shown, lost = _table(line, call, rows, door)
    warned += "".join(f"squeue: error: Invalid job format specification: {each}\n" for each in lost)
    return Reply(out=lines([*above, *shown]), err=warned)


def _strangers(line: Parsed, call: Call, rows: list[JobRow]) -> str:
    """Names of users that neither this machine nor any job here knows."""
    found = {row.job.spec.user for row in rows}
    words = _words(line, call, "user", "users", "SQUEUE_USERS") or ()
    strange = [word for word in words if word not in found and not is_user(word)]
    return "".join(f"squeue: error: Invalid user: {word}\n\n" for word in strange)


def _table(line: Parsed, call: Call, rows: list[JobRow], door: Door) -> tuple[list[str], list[str]]:
    """The lines, and the columns that there are not."""
    given = [name for name, _ in line.given if name in {"format", "Format"}]
    if len(set(given)) > 1:
        one, other = ("-O (--Format)", "-o (--format)")[:: 1 if given[-1] == "Format" else -1]
        raise failed(NAME, f"{one} is incompatible with {other}")
    by_name = line.value("Format")
    if by_name is None and not line.has("format"):
        by_name = call.env.get("SQUEUE_FORMAT2")
    form = short_form(_format(line, call)) if by_name is None else long_form(by_name)
    fields = LETTERS if by_name is None else NAMES
    form, lost = known(form, fields)
    above = [] if line.has("noheader") else [heading(form, fields)]
    write = writer(form, fields)
    if by_name is not None:
        return [*above, *map(write, rows)], lost
    return [*above, *bounded(lines_of(rows, form, write, door))], lost


def _format(line: Parsed, call: Call) -> str:
    given = line.value("format")
    if given is None:
        given = call.env.get("SQUEUE_FORMAT")
    if given is not None:
        return given
    if line.has("start"):
        return START
    return LONG if line.has("long") else DEFAULT


def _chosen(line: Parsed, call: Call, door: Door, listing: Listing) -> list[JobRow]:
    wish = _filter(line, call, door)
    if line.has("jobs") and not wish.names:
        return []
    views = live_views(door, wish)
    if wish.states is not None and wish.states - LIVE:
        views += ended_views(door, wish, Instant(max(0, door.now - KEPT_MS)))
    if not views and wish.names:
        _demand_known(door, wish.names)
    rows = _there(rows_of(door, listing, views), line, call, listing)
    if line.has("start"):
        rows = [row for row in rows if row.state is State.PENDING]
    apart = line.has("array") or line.has("array-unique") or "SQUEUE_ARRAY" in call.env
    return all_parts(rows if apart else collapsed(rows))


def _demand_known(door: Door, names: tuple[JobName, ...]) -> None:
    """Of one job that never was, or is long over, Slurm says so; of several it says nothing."""
    if len(names) > 1:
        return
    everything = Filter(names=names, states=frozenset(State))
    if live_views(door, everything):
        return
    if not ended_views(door, everything, Instant(max(0, door.now - KEPT_MS))):
        raise SlurmError(UNKNOWN_JOB)


def _filter(line: Parsed, call: Call, door: Door) -> Filter:
    users = users_of(_words(line, call, "user", "users", "SQUEUE_USERS") or ())
    if line.has("me"):
        users = frozenset({door.caller.user})
    return Filter(
        names=_names(line),
        users=users,
        accounts=frozenset(_words(line, call, "accounts", "SQUEUE_ACCOUNT") or ()),
        qos=frozenset(_words(line, call, "qos", "SQUEUE_QOS") or ()),
        job_names=frozenset(_words(line, call, "name", "SQUEUE_NAMES") or ()),
        reservations=frozenset(line.words("reservation")),
        states=_states(line, call),
    )


def _words(line: Parsed, call: Call, *names: str) -> tuple[str, ...] | None:
    """By an option or its other name, or by the variable that stands for it; None if by neither."""
    *options, variable = names
    if any(line.has(option) for option in options):
        return line.words(*options)
    given = tuple(word for word in call.env.get(variable, "").split(",") if word)
    return given or None


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for value in line.values("jobs") for each in split_ids(value)):
        name = job_name(text)
        if name is None:
            raise failed(NAME, f"Invalid job id: {text}")
        found.append(name)
    return tuple(found)


def _states(line: Parsed, call: Call) -> frozenset[State] | None:
    words = _words(line, call, "states", "SQUEUE_STATES")
    if words is None:
        return None
    found = states_of(words)
    if isinstance(found, frozenset):
        return found
    valid = ",".join(state.name for state in State)
    raise SlurmError(
        f"squeue: error: Invalid job state specified: {found}",
        f"squeue: error: Valid job states include: {valid}",
        "",
    )


def _there(rows: list[JobRow], line: Parsed, call: Call, listing: Listing) -> list[JobRow]:
    """Those in the partitions and on the nodes that are named."""
    pools = set(_words(line, call, "partitions", "SQUEUE_PARTITION") or ())
    if pools:
        rows = [row for row in rows if pools & set(jobs.partition(row).split(","))]
    hosts = line.value("nodelist", "nodes", "node")
    if hosts is None:
        return rows
    names = set(expanded(hosts))
    for name in sorted(names):
        if name not in listing.nodes:
            raise failed(NAME, f"Invalid node name {name}")
    return [row for row in rows if not names.isdisjoint(jobs.nodes(row))]
