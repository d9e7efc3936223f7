"""`sprio`: what the priorities of waiting jobs are made of."""

from collections.abc import Callable
from typing import NamedTuple

from muster.doors.slurm.accounting.records import AcctJob
from muster.doors.slurm.call import Call, Door, Reply, lines, version
from muster.doors.slurm.clusters import demand_here
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.filters import (
    Filter,
    JobName,
    job_name,
    live_views,
    split_ids,
    users_of,
)
from muster.doors.slurm.lists.jobs import JobRow, collapsed
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.priority import OWN_FIRST
from muster.doors.slurm.words.errors import failed
from muster.doors.slurm.words.formats import Field, keys_of, rendered, short_form, without_unknown
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.doors.slurm.words.states import State
from muster.doors.slurm.words.users import is_user, uid_of
from muster.model.policy import OrderWeights
from muster.schedule.policy.merit import FULL

NAME = "sprio"
OPTIONS = table("""
    M:cluster= clusters= federation o:format= help j:jobs? local l:long h:noheader n:norm
    p:partition= sibling S:sort= usage u:user= v:verbose V:version w:weights
""")
USAGE = (
    "Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n"
    "   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]"
)
_RULE = "-" * 29
NO_JOBS = "Unable to find jobs matching user/id(s) specified\n"


class Prio(NamedTuple):
    """A job with its points, or, without a job, the weights by which points are given."""

    row: JobRow | None
    weighted: dict[str, int]
    normal: dict[str, float]


def run(call: Call, door: Door) -> Reply:
    """List what counts for whom."""
    line = _with_words(parsed(OPTIONS, call.argv, Manner(command=NAME)))
    if isinstance(line, Reply):
        return line
    if line.has("version"):
        return version()
    if line.has("usage"):
        return Reply(out=f"{USAGE}\n")
    if line.has("help"):
        return help_reply(NAME, OPTIONS)
    listing = Listing(call, door)
    demand_here(NAME, line.words("cluster", "clusters"), listing)
    names = _names(line)
    reply = _listed(line, call, door, (listing, names))
    strange = [each for each in line.words("user") if not is_user(each)]
    # Slurm ends this line twice.
    messages = "".join(f"sprio: error: Invalid user: {each}\n\n" for each in strange)
    return Reply(out=_said(line, call) + reply.out, err=messages + reply.err, code=reply.code)


def _listed(
    line: Parsed, call: Call, door: Door, which: tuple[Listing, tuple[JobName, ...]]
) -> Reply:
    listing, names = which
    weights = listing.site.policy.order
    form, lost = without_unknown(short_form(_format(line, call, weights)), FIELDS)
    messages = "".join(f"sprio: error: Invalid job format specification: {each}\n" for each in lost)
    shown, code = [_weights(weights)], 0
    if not line.has("weights"):
        rows = _chosen(line, door, listing, names)
        if names and not rows:
            return Reply(out=NO_JOBS, err=messages)
        keys = keys_of(line.value("sort") or "")
        wrong = [letter for letter, _ in keys if letter not in FIELDS]
        messages += "".join(
            f"sprio: error: Invalid sort specification: {each}\n" for each in wrong[:1]
        )
        shown, code = ([], 1) if wrong else (_sorted([_prio(row) for row in rows], keys), 0)
    text = rendered(form, FIELDS, shown, header=not line.has("noheader"))
    return Reply(out=lines(list(text)), err=messages, code=code)


def _said(line: Parsed, call: Call) -> str:
    """With -v: what was asked for."""
    if not line.has("verbose"):
        return ""
    words = {name: ",".join(line.words(name)) or "(null)" for name in ("jobs", "partition", "user")}
    named = [each for each in line.words("user") if is_user(each)]
    uids = [f"user_list[{at}] = {uid_of(each)}\n" for at, each in enumerate(named)]
    users = "".join(uids) if line.count("verbose") > 1 else ""
    form = line.value("format") or call.env.get("SPRIO_FORMAT") or "(null)"
    return (
        f"{_RULE}\nformat     = {form}\n"
        f"job_flag   = {int(line.has('jobs'))}\n"
        f"jobs       = {words['jobs']}\n"
        f"partition  = {words['partition']}\n"
        f"users      = {words['user']}\n"
        f"verbose    = {line.count('verbose')}\n{users}{_RULE}\n\n\n"
    )


def _with_words(line: Parsed) -> Parsed | Reply:
    """`-j 12`: the value of an optional argument may stand apart."""
    if not line.rest:
        return line
    if not line.has("jobs"):
        wrong = f"sprio: error: Unrecognized option: {line.rest[0]}\n"
        return Reply(out=f"{USAGE}\n", err=wrong, code=1)
    return Parsed(given=(*line.given, *(("jobs", word) for word in line.rest)))


def _names(line: Parsed) -> tuple[JobName, ...]:
    found: list[JobName] = []
    for text in (each for value in line.values("jobs") for each in split_ids(value)):
        name = job_name(text)
        if name is None or not text.isdecimal():
            raise failed(NAME, f"Invalid job id: {text}")
        found.append(name)
    return tuple(found)


def _chosen(line: Parsed, door: Door, listing: Listing, names: tuple[JobName, ...]) -> list[JobRow]:
    """Jobs that wait for their turn: what is held, or waits for something else, has none."""
    wish = Filter(
        names=names, users=users_of(line.words("user")), states=frozenset({State.PENDING})
    )
    rows = collapsed(
        row for view in live_views(door, wish) if _is_due(row := JobRow(view, listing))
    )
    pools = set(line.words("partition"))
    return [row for row in rows if not pools or pools & set(jobs.partition(row).split(","))]


def _is_due(row: JobRow) -> bool:
    eligible_at = AcctJob(row, row.job.submitted_at).eligible_at
    return eligible_at is not None and eligible_at <= row.listing.now


def _prio(row: JobRow) -> Prio:
    points, weights = jobs.priority_parts(row), row.listing.site.policy.order
    weighted = {
        "Y": jobs.priority(row),
        "S": OWN_FIRST if points.is_own else 0,
        "A": points.age,
        "B": points.queue,
        "F": points.fair_share,
        "J": points.size + points.short + points.service,
        "P": 0,
        "Q": points.job_class,
        "N": -points.asked,
    }
    most = _most(weights)
    normal = {
        letter.lower(): weighted[letter] / most[letter] if most[letter] else 0.0 for letter in most
    }
    return Prio(row, weighted, normal)


def _weights(weights: OrderWeights) -> Prio:
    most = _most(weights)
    return Prio(None, most | {"S": 1}, {letter.lower(): float(most[letter]) for letter in most})


def _most(weights: OrderWeights) -> dict[str, int]:
    """What a full factor brings."""
    return {
        "A": weights.age * FULL,
        "B": weights.queue * FULL,
        "F": weights.fair_share * FULL,
        "J": (weights.size + weights.short + weights.service) * FULL,
        "P": 0,
        "Q": weights.job_class * FULL,
    }


def _format(line: Parsed, call: Call, weights: OrderWeights) -> str:
    """The given columns; else every factor that counts, or all of them in a long list."""
    given = line.value("format") or call.env.get("SPRIO_FORMAT")
    if given is not None:
        return given
    is_long, is_normal = line.has("long"), line.has("norm")
    most = _most(weights)
    factors = [letter for letter in "ABFJPQ" if is_long or most[letter]]
    user = " %.8u" if is_long or line.has("user") else ""
    if is_normal:
        return f"%.15i %9r{user} %10y" + "".join(f" %10{each.lower()}" for each in factors)
    text = f"%.15i %9r{user} %.10Y %.10S" + "".join(f" %.10{each}" for each in factors)
    return f"{text} %.11N %.20T" if is_long else text


def _sorted(rows: list[Prio], keys: list[tuple[str, bool]]) -> list[Prio]:
    """By each key in turn, the last first, because sorting keeps what was in order."""
    for letter, downwards in keys:
        rows.sort(key=_key(letter), reverse=downwards)
    return rows


def _key(letter: str) -> Callable[[Prio], int | float | str]:
    if letter == "i":
        return lambda prio: 0 if prio.row is None else prio.row.job.id
    if letter == "y":
        return lambda prio: prio.weighted["Y"]
    if letter in WEIGHTED:
        return lambda prio: prio.weighted[letter]
    if letter in NORMAL:
        return lambda prio: prio.normal[letter]
    return FIELDS[letter].get


def _weighted(letter: str) -> Callable[[Prio], str]:
    return lambda prio: str(prio.weighted[letter]) if letter in prio.weighted else ""


def _normal(letter: str) -> Callable[[Prio], str]:
    def get(prio: Prio) -> str:
        value = prio.normal[letter]
        return str(int(value)) if prio.row is None else f"{value:.7f}"

    return get


def _of_job(get: Callable[[JobRow], str], otherwise: str = "") -> Callable[[Prio], str]:
    return lambda prio: otherwise if prio.row is None else get(prio.row)


HEADERS = {
    "A": "AGE",
    "B": "ASSOC",
    "F": "FAIRSHARE",
    "J": "JOBSIZE",
    "P": "PARTITION",
    "Q": "QOS",
}
WEIGHTED = {"S": "SITE", "N": "NICE", "Y": "PRIORITY", **HEADERS}
NORMAL = {letter.lower(): header for letter, header in HEADERS.items()}

FIELDS: dict[str, Field[Prio]] = {
    "c": Field(header="CLUSTER", get=_of_job(lambda row: row.listing.cluster)),
    "i": Field(header="JOBID", get=_of_job(jobs.array_id, "Weights")),
    "r": Field(header="PARTITION", get=_of_job(jobs.partition)),
    "u": Field(header="USER", get=_of_job(lambda row: row.job.spec.user)),
    "y": Field(header="PRIORITY", get=_of_job(lambda row: f"{jobs.priority(row) / 2**32:.14f}")),
    "t": Field(header="TRES", get=_of_job(lambda _: "", "(null)")),
    "T": Field(header="TRES", get=_of_job(lambda _: "", "(null)")),
    **{key: Field(header=text, get=_weighted(key)) for key, text in WEIGHTED.items()},
    **{key: Field(header=text, get=_normal(key)) for key, text in NORMAL.items()},
}
