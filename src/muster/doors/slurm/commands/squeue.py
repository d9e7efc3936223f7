"""`squeue`: the jobs that wait and run."""

from collections.abc import Callable

from muster.doors.slurm import jobs, times
from muster.doors.slurm.call import Call, Door, Reply, lines, version, warning
from muster.doors.slurm.choosing import (
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
from muster.doors.slurm.components import all_parts
from muster.doors.slurm.formats import Form, keys_of, known, long_form, rendered, short_form
from muster.doors.slurm.helping import help_reply
from muster.doors.slurm.hostlist import expanded
from muster.doors.slurm.job_json import jobs_json
from muster.doors.slurm.jobs import JobRow, collapsed
from muster.doors.slurm.options import Manner, Parsed, parsed, table
from muster.doors.slurm.scene import Scene
from muster.doors.slurm.squeue_fields import LETTERS, NAMES
from muster.doors.slurm.squeue_steps import listed_steps
from muster.doors.slurm.states import LIVE, ORDER, State
from muster.doors.slurm.trouble import SlurmError, failed
from muster.model.value import Instant

NAME = "squeue"
MANNER = Manner(command=NAME)
OPTIONS = table("""
    O:Format= A:accounts= a:all r:array array-unique M:cluster= clusters= federation o:format= help
    hide i:iterate= j:jobs? json L:licenses= local l:long me n:name= noconvert node= nodes=
    w:nodelist= h:noheader only-job-state p:partitions= P:priority q:qos= R:reservation= sib S:sort=
    start t:states= s:steps? usage u:user= U:users= v:verbose V:version yaml
""")
IGNORED = (
    "iterate",
    "licenses",
    "federation",
    "sib",
    "cluster",
    "clusters",
)

DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"


def run(call: Call, door: Door) -> Reply:
    """List jobs."""
    line = _with_words(parsed(OPTIONS, call.argv, MANNER))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS)
    scene = Scene(call, door)
    scene.convert = not line.has("noconvert")
    if line.has("steps") and not line.has("json"):
        return listed_steps(line, call, door, scene)
    rows = _sorted(_chosen(line, call, door, scene), line.value("sort") or "P,t,-p")
    warned = "".join(warning(NAME, each) for each in IGNORED if line.has(each))
    if line.has("json"):
        return Reply(out=jobs_json(rows), err=warned)
    if line.has("yaml"):
        raise failed(NAME, "--yaml is not supported by Muster")
    return _table(line, call, rows, warned)


def _with_words(line: Parsed) -> Parsed:
    """`-j 12`: the value of an optional argument may stand apart."""
    if not line.rest:
        return line
    last = next((name for name, _ in reversed(line.given) if name in {"jobs", "steps"}), None)
    if last is None:
        raise SlurmError(f"squeue: error: Unrecognized option: {line.rest[0]}")
    return Parsed(given=(*line.given, *((last, word) for word in line.rest)))


def _table(line: Parsed, call: Call, rows: list[JobRow], warned: str) -> Reply:
    by_name = line.value("Format") or (
        None if line.has("format") else call.env.get("SQUEUE_FORMAT2")
    )
    form = long_form(by_name) if by_name else short_form(_format(line, call))
    fields = NAMES if by_name else LETTERS
    form, lost = known(form, fields)
    warned += "".join(f"squeue: error: Invalid job format specification: {each}\n" for each in lost)
    if not form.columns and not form.prefix:
        form = Form(columns=())
    shown = list(rendered(form, fields, rows, header=not line.has("noheader")))
    if line.has("long") and not line.has("noheader"):
        shown.insert(0, times.heading_text(rows[0].scene.now if rows else Instant(0), call.zone))
    return Reply(out=lines(shown), err=warned)


def _format(line: Parsed, call: Call) -> str:
    given = line.value("format") or call.env.get("SQUEUE_FORMAT")
    if given is not None:
        return given
    if line.has("start"):
        return START
    return LONG if line.has("long") else DEFAULT


def _chosen(line: Parsed, call: Call, door: Door, scene: Scene) -> list[JobRow]:
    wish = _filter(line, call, door)
    views = live_views(door, wish)
    if wish.states is not None and wish.states - LIVE:
        views += ended_views(door, wish, Instant(max(0, door.now - KEPT_MS)))
    if not views and wish.names:
        _demand_known(door, wish.names)
    rows = rows_of(door, scene, views)
    rows = _there(rows, line, call)
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
    users = users_of(_words(line, call, "user", "users", "SQUEUE_USERS"))
    if line.has("me"):
        users = frozenset({door.caller.user})
    return Filter(
        names=_names(line),
        users=users,
        accounts=frozenset(_words(line, call, "accounts", "accounts", "SQUEUE_ACCOUNT")),
        qos=frozenset(_words(line, call, "qos", "qos", "SQUEUE_QOS")),
        job_names=frozenset(_words(line, call, "name", "name", "SQUEUE_NAMES")),
        reservations=frozenset(line.words("reservation")),
        states=_states(line, call),
    )


def _words(line: Parsed, call: Call, *names: str) -> tuple[str, ...]:
    """By an option or its other name, or by the variable that stands for it."""
    *options, variable = names
    given = line.words(*options)
    return given or tuple(word for word in call.env.get(variable, "").split(",") if word)


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
    if not words:
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


def _there(rows: list[JobRow], line: Parsed, call: Call) -> list[JobRow]:
    """Those in the partitions and on the nodes that are named."""
    pools = set(_words(line, call, "partitions", "SQUEUE_PARTITION"))
    if pools:
        rows = [row for row in rows if pools & set(jobs.partition(row).split(","))]
    hosts = line.value("nodelist", "nodes", "node")
    if hosts is not None:
        names = set(expanded(hosts))
        rows = [row for row in rows if not names.isdisjoint(jobs.nodes(row))]
    return rows


def _sorted(rows: list[JobRow], order: str) -> list[JobRow]:
    """By each key in turn, the last first, because sorting keeps what was in order."""
    for letter, downwards in reversed(keys_of(order)):
        key = _KEYS.get(letter)
        if key is None and letter in LETTERS:
            key = LETTERS[letter].get
        if key is not None:
            rows.sort(key=key, reverse=downwards)
    return rows


_KEYS: dict[str, Callable[[JobRow], int | str]] = {
    "A": lambda row: row.job.id,
    "i": lambda row: row.job.id,
    "M": jobs.elapsed,
    "D": jobs.node_count,
    "C": jobs.cpus,
    "l": lambda row: row.job.spec.time_limit or 2**62,
    "p": jobs.priority,
    "Q": jobs.priority,
    "S": lambda row: jobs.expected_at(row) or 2**62,
    "V": lambda row: row.job.submitted_at,
    "t": lambda row: ORDER[row.state],
    "T": lambda row: ORDER[row.state],
}
